"""`LAKE_CATALOG__KIND=json lake tables`: a catalog whose pointers are in a JSON file. Branches are in the lake's folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from lake_plugin.pointers import PointerFile
from lakehouse.catalogs.overlay import add_branches
from lakehouse.config.profiles import Profile
from lakehouse.core.catalog import Catalog, CatalogCapabilities, CatalogContext, NoClients
from lakehouse.core.errors import BadSettingError, TableExistsError
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import Change, hash_pointers
from lakehouse.core.setting import read_options, setting
from lakehouse.core.state import TableEntry
from lakehouse.core.tables import Drop

#: `lake --profile json`: a lake in a folder, with this catalog.
PROFILE = Profile("json")


@dataclass(frozen=True)
class JsonSettings:
    """`[catalog.properties]` in lake.toml, `LAKE_CATALOG__PROPERTIES__*` in the environment."""

    wait_s: float = setting(10.0, "Seconds to wait for another writer.")


def open_catalog(context: CatalogContext) -> Catalog:
    """Open the catalog in the file `catalog.uri`, by default catalog.json in the lake's folder."""
    if "://" in context.uri:
        raise BadSettingError("catalog.uri is not a path.", "A json catalog is a file of this machine.")
    settings = read_options(JsonSettings, context.properties, "catalog.properties")
    path = Path(context.uri) if context.uri else context.folder / "catalog.json"
    base = JsonCatalog(PointerFile(path.absolute(), settings.wait_s), context.warehouse, context.io)
    return add_branches(base, context)


@dataclass(frozen=True)
class JsonCatalog(NoClients):
    """Implements `BaseCatalog`. Only PyIceberg has a client for it; Spark works on branches."""

    file: PointerFile
    warehouse: str
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    name: str = CATALOG
    display_name: ClassVar[str] = "The JSON catalog"
    capabilities: ClassVar[CatalogCapabilities] = CatalogCapabilities(multi_table_publish=True)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        return {
            "py-catalog-impl": "lake_plugin.for_pyiceberg.JsonTables",
            "path": str(self.file.path),
            "wait-s": str(self.file.wait_s),
            "warehouse": self.warehouse,
            **self.io,
        }

    def ensure_ready(self) -> None:
        self.file.read()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        return sorted(self.all_pointers())

    def all_pointers(self) -> dict[TableName, str]:
        return {TableName.parse(name): pointer for name, pointer in self.file.read()["tables"].items()}

    def pointer(self, table: TableName) -> str | None:
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        stored = self.file.read()["tables"]
        return {table: stored.get(str(table)) for table in tables}

    def has_view(self, name: TableName) -> bool:
        return False

    def ensure_namespace(self, namespace: str) -> None:
        with self.file.changing() as content:
            content["namespaces"].setdefault(namespace, {})

    def state_hash(self) -> str:
        return hash_pointers(self.all_pointers())

    # ---- changes ------------------------------------------------------------------------------------------------

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        with self.file.changing() as content:
            if content["tables"].get(str(table)) != expected:
                return False
            _set(content, table, new)
        return True

    def commit(self, changes: Sequence[Change]) -> bool:
        with self.file.changing() as content:
            if any(content["tables"].get(str(change.table)) != change.before for change in changes):
                return False
            for change in changes:
                if change.after is None:
                    _keep_dropped(content, change.table, "")
                _set(content, change.table, change.after)
        return True

    def is_committed(self, change: Change) -> bool:
        return self.pointer(change.table) == change.after

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        with self.file.changing() as content:
            if str(table) not in content["tables"]:
                return False
            _keep_dropped(content, table, at)
            _set(content, table, None)
        return True

    def undrop(self, table: TableName, drop: str = "") -> bool:
        with self.file.changing() as content:
            own = [entry for entry in content["dropped"] if entry["table"] == str(table)]
            pointers = [entry["pointer"] for entry in own if drop in ("", entry["pointer"])]
            if pointers and str(table) in content["tables"]:
                raise TableExistsError(f"There is another table {table} by now.", "Rename or drop it first.")
            if pointers:
                _set(content, table, pointers[-1])
        return bool(pointers)

    def dropped(self) -> Sequence[TableName]:
        return sorted({entry.table for entry in self.dropped_entries()})

    def drops(self) -> Sequence[Drop]:
        dropped = self.file.read()["dropped"]
        return [Drop(TableName.parse(entry["table"]), entry["pointer"], entry.get("at", "")) for entry in dropped]

    def dropped_entries(self) -> Sequence[TableEntry]:
        dropped = self.file.read()["dropped"]
        return [TableEntry(TableName.parse(entry["table"]), entry["pointer"]) for entry in dropped]


def _set(content: dict[str, Any], table: TableName, pointer: str | None) -> None:
    """Set or remove a pointer. A table that is there is not a dropped one any more."""
    if pointer is None:
        del content["tables"][str(table)]
        return
    content["namespaces"].setdefault(table.namespace, {})
    content["tables"][str(table)] = pointer
    content["dropped"] = [entry for entry in content["dropped"] if entry["pointer"] != pointer]


def _keep_dropped(content: dict[str, Any], table: TableName, at: str) -> None:
    content["dropped"].append({"table": str(table), "pointer": content["tables"][str(table)], "at": at})
