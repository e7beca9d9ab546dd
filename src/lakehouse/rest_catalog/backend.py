"""What all handlers share: the catalog, its rows and the metadata files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from lakehouse.core.dataclass import dataclass
from lakehouse.rest_catalog.errors import RestError
from lakehouse.rest_catalog.locations import Warehouse
from lakehouse.rest_catalog.names import folder_of, levels_of
from lakehouse.rest_catalog.table_files import ListedFiles, TableFolders

if TYPE_CHECKING:
    from lakehouse.catalogs.sql import SqlCatalog
    from lakehouse.core.names import TableName
    from lakehouse.rest_catalog.metadata_files import MetadataFiles
    from lakehouse.rest_catalog.pointers import Namespaces, Pointers

Model = TypeVar("Model", bound=BaseModel)

_DEFAULT = ".table-default."
#: Attempts at a commit that conflicts with others and whose requirements still hold.
COMMIT_ATTEMPTS = 10


@dataclass(frozen=True)
class CatalogBackend:
    """The catalog, its rows and the metadata files."""

    catalog: SqlCatalog
    pointers: Pointers
    namespaces: Namespaces
    files: MetadataFiles
    allow_file_deletion: bool = False
    """Whether clients may set the properties with which engines delete files."""

    @cached_property
    def warehouse(self) -> Warehouse:
        """The location below which clients may create tables and views."""
        return Warehouse(self.catalog.warehouse)

    @cached_property
    def folders(self) -> TableFolders:
        """The folders of every table."""
        return TableFolders(self.catalog, self.files)

    @cached_property
    def listed(self) -> ListedFiles:
        """The files that manifest lists and manifests name."""
        return ListedFiles(self.files)

    @cached_property
    def default_properties(self) -> dict[str, str]:
        """The default properties of new tables: the same that the lake's own Spark sets."""
        settings = self.catalog.spark_conf()
        defaults = {key.partition(_DEFAULT)[2]: value for key, value in settings.items() if _DEFAULT in key}
        # Without retries, which are for clients of the database: the server itself repeats a commit that still applies, and
        # a client would repeat one that does not thirty times.
        return {key: value for key, value in defaults.items() if not key.startswith("commit.retry.")}

    def default_location(self, branch: str, name: TableName) -> str:
        """Return the location of a new table or view."""
        return f"{self.namespace_location(branch, name.namespace).rstrip('/')}/{folder_of(name.table)}"

    def namespace_location(self, branch: str, namespace: str) -> str:
        """Return the `location` of a namespace, by default a folder of the warehouse."""
        own = self.namespaces.properties(branch, namespace).get("location")
        return own or self.default_namespace_location(namespace)

    def default_namespace_location(self, namespace: str) -> str:
        """Return the folder of a namespace that has no `location` of its own."""
        return "/".join([self.catalog.warehouse.rstrip("/"), *map(folder_of, levels_of(namespace))])


def parse_model(model: type[Model], body: Mapping[str, Any]) -> Model:
    """Parse a body as a model of PyIceberg's; an error names the field and does not repeat the body."""
    try:
        return model.model_validate(body)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])
        raise RestError(f"The request is invalid: {field}: {first['msg']}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise RestError(f"The request is invalid: {exc}") from exc
