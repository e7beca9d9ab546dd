"""Pipelines of a service: what they declare, without the code that builds their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.pipelines.partitions import Days, Hours, Months, Partitions, Weeks

_SCHEMES: Mapping[str, type[Hours] | type[Days] | type[Weeks] | type[Months]] = {
    "hours": Hours,
    "days": Days,
    "weeks": Weeks,
    "months": Months,
}


@dataclass(frozen=True)
class RemoteTable:
    """A table of a pipeline."""

    name: str
    inputs: tuple[str, ...] = ()
    """Names of sources and of tables."""
    key: tuple[str, ...] = ()
    partition_by: str = ""
    description: str = ""


@dataclass(frozen=True)
class RemotePipeline:
    """A pipeline that a service can run."""

    name: str
    tables: tuple[RemoteTable, ...]
    partitions: Partitions | None = None
    description: str = ""
    known_settings: Mapping[str, str] = field(default_factory=dict)
    """Its settings on the server under `[sources.NAME]`, with their help texts."""

    @classmethod
    def parse(cls, shown: Mapping[str, Any]) -> RemotePipeline:
        """A pipeline as GET /pipelines shows it."""
        tables = tuple(
            RemoteTable(
                table["name"],
                tuple(table["made_from"]),
                tuple(table["key"]),
                table["partitioned_by"],
                table["description"],
            )
            for table in shown["tables"]
        )
        partitions = _partitions(shown["name"], shown.get("partitions"))
        return cls(shown["name"], tables, partitions, shown.get("description", ""), shown["settings"])


@dataclass(frozen=True)
class _UnknownPartitions:
    """A partition scheme that only the service knows."""

    pipeline: str
    column: str
    start: str

    def check(self, key: str) -> str:
        return key

    def between(self, first: str, last: str) -> list[str]:
        if first == last:
            return [first]
        raise NotSupportedError(
            f"The partitions of {self.pipeline} are of a kind that only the service knows.",
            "Name each of them: --partition P",
        )

    def shifted(self, key: str, by: int) -> str:
        raise NotSupportedError(f"The partitions of {self.pipeline} are of a kind that only the service knows.")

    def sql_type(self) -> str:
        return "string"


def _partitions(pipeline: str, shown: Mapping[str, str] | None) -> Partitions | None:
    if shown is None:
        return None
    scheme = _SCHEMES.get(shown["kind"])
    if scheme is None:
        return _UnknownPartitions(pipeline, shown["column"], shown["start"])
    return scheme(shown["column"], shown["start"])
