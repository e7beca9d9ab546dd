"""What all handlers stand on: the catalog, its rows, and the metadata files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from lakehouse.rest_catalog.names import folder_of, levels_of
from lakehouse.rest_catalog.problems import Problem

if TYPE_CHECKING:
    from lakehouse.catalogs.sql import SqlCatalog
    from lakehouse.core.names import TableName
    from lakehouse.rest_catalog.files import MetadataFiles
    from lakehouse.rest_catalog.namespace_rows import Namespaces
    from lakehouse.rest_catalog.pointers import Pointers

Model = TypeVar("Model", bound=BaseModel)

_DEFAULT = ".table-default."
#: How often a commit that still fits is applied again when others were faster.
COMMIT_TRIES = 10


@dataclass(frozen=True)
class Backing:
    """The parts that a handler needs."""

    catalog: SqlCatalog
    pointers: Pointers
    namespaces: Namespaces
    files: MetadataFiles

    @cached_property
    def default_properties(self) -> dict[str, str]:
        """What a new table has unless its maker says otherwise: the same as one that the lake's own Spark makes."""
        settings = self.catalog.spark_conf()
        found = {key.partition(_DEFAULT)[2]: value for key, value in settings.items() if _DEFAULT in key}
        # Retries are for clients that reach the database by themselves. A commit that still fits is applied again here,
        # and one that does not would be sent thirty times before its maker learns it.
        return {key: value for key, value in found.items() if not key.startswith("commit.retry.")}

    def default_location(self, branch: str, name: TableName) -> str:
        """Where a new table or view goes: below its namespace's `location`, or below the warehouse."""
        return f"{self.folder(branch, name.namespace).rstrip('/')}/{folder_of(name.table)}"

    def folder(self, branch: str, namespace: str) -> str:
        """Where the tables of a namespace go."""
        own = self.namespaces.properties(branch, namespace).get("location")
        return own or "/".join([self.catalog.warehouse.rstrip("/"), *map(folder_of, levels_of(namespace))])


def parsed(model: type[Model], body: Mapping[str, Any]) -> Model:
    """The body as a model of PyIceberg's; what is wrong with it is told without a dump of it."""
    try:
        return model.model_validate(body)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise Problem(f"The request cannot be understood: {place}: {first['msg']}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise Problem(f"The request cannot be understood: {exc}") from exc
