"""The folders of Hudi tables: in the local warehouse, or as a catalog registers them."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from lakehouse.core.catalog import FormatEntries
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError, TableExistsError
from lakehouse.core.files import LOCAL, Files, file_uri, local_path
from lakehouse.core.names import TableName
from lakehouse.core.tables import Drop
from lakehouse.core.when import iso_time

#: What Java encodes in the path of a URI. Spark gives Hudi the encoded path as the name of the folder.
_ENCODED = re.compile(r"[\s%<>\[\]\\^`{|}]")


class Locations(Protocol):
    """The folders of a lake's Hudi tables."""

    @property
    def registered(self) -> bool:
        """Whether a metastore registers the tables, so that every Spark session with this metastore has them."""

    @property
    def access(self) -> Mapping[str, str]:
        """The options of hudi-rs to read them."""

    def tables(self) -> Sequence[TableName]:
        """Return every table, sorted by name."""

    def find(self, table: TableName) -> str | None:
        """Return the URI of a table's folder, or None if there is no such table."""

    def folder(self, namespace: str) -> str:
        """Return the URI of the folder for new tables of a namespace."""

    def new_location(self, table: TableName) -> str:
        """Return the URI of a folder for a new table if its default one is taken; else an empty string."""

    def file(self, location: str, relative: str) -> str:
        """Return the name of a table's file for DuckDB."""

    def read(self, uri: str) -> bytes:
        """Return the content of a small file."""

    def version(self, table: TableName) -> str:
        """Return a value that changes whenever the table does; empty if that is not cheap to find out."""

    def drop(self, table: TableName) -> bool:
        """Remove a table and keep it for `undrop`; False if there is no such table."""

    def undrop(self, table: TableName, drop: str = "") -> bool:
        """Restore the table that was dropped last under this name, or by the drop of an id; False if there is none."""

    def dropped(self) -> Sequence[TableName]:
        """Return the names that `undrop` can restore."""

    def drops(self) -> Sequence[Drop]:
        """Return all that `undrop` can restore, with the ids and times of the drops."""


@dataclass(frozen=True)
class LocalFolders:
    """Tables in `warehouse/namespace/table`; dropped ones are moved to the trash."""

    warehouse: Path
    trash: Path
    registered: bool = False
    access: Mapping[str, str] = field(default_factory=dict)

    def tables(self) -> Sequence[TableName]:
        folders = sorted(path.parents[1] for path in self.warehouse.glob("*/*/.hoodie/hoodie.properties"))
        return [TableName(folder.parent.name, folder.name) for folder in folders]

    def find(self, table: TableName) -> str | None:
        folder = self._folder(table)
        return file_uri(folder) if (folder / ".hoodie" / "hoodie.properties").is_file() else None

    def folder(self, namespace: str) -> str:
        unusable = _ENCODED.search(str(self.warehouse))
        if unusable:
            raise NotSupportedError(
                f"Hudi cannot write to {self.warehouse}: it would encode {unusable[0]!r} and create another folder.",
                "Move the lake to a folder without it, or create an Iceberg table.",
            )
        return file_uri(self.warehouse / namespace)

    def new_location(self, table: TableName) -> str:
        return ""  # the folders of dropped tables are in the trash

    def file(self, location: str, relative: str) -> str:
        return str(local_path(location) / relative)

    def read(self, uri: str) -> bytes:
        return LOCAL.read(uri)

    def version(self, table: TableName) -> str:
        folder = self._folder(table) / ".hoodie" / "timeline"
        return max((entry.name for entry in folder.glob("*_*.*")), default="") if folder.is_dir() else ""

    def drop(self, table: TableName) -> bool:
        if self.find(table) is None:
            return False
        folder = self.trash / table.namespace
        folder.mkdir(parents=True, exist_ok=True)
        # Numbered, so that two dropped tables of one name are both kept.
        number = 1 + max((int(entry.suffix[1:]) for entry in folder.glob(f"{table.table}.*")), default=0)
        self._folder(table).rename(folder / f"{table.table}.{number}")
        return True

    def undrop(self, table: TableName, drop: str = "") -> bool:
        entries = self.trash.glob(f"{table.namespace}/{table.table}.{drop or '*'}")
        dropped = sorted(entries, key=lambda entry: int(entry.suffix[1:]))
        if not dropped:
            return False
        folder = self._folder(table)
        if folder.exists():
            raise TableExistsError(
                f"{folder} exists again, so the dropped {table} cannot be restored.",
                f"Drop the new one first: lake drop {table}",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(dropped[-1], folder)
        return True

    def dropped(self) -> Sequence[TableName]:
        names = {(entry.parent.name, entry.stem) for entry in self.trash.glob("*/*.*")}
        return [TableName(*name) for name in sorted(names)]

    def drops(self) -> Sequence[Drop]:
        entries = sorted(
            self.trash.glob("*/*.*"), key=lambda entry: (entry.parent.name, entry.stem, int(entry.suffix[1:]))
        )
        # A folder that is moved has another time of change, not of modification.
        return [
            Drop(TableName(entry.parent.name, entry.stem), entry.suffix[1:], iso_time(entry.stat().st_ctime_ns))
            for entry in entries
        ]

    def _folder(self, table: TableName) -> Path:
        return self.warehouse / table.namespace / table.table


@dataclass(frozen=True)
class RegisteredFolders:
    """Tables that a catalog registers, mostly in an object store."""

    entries: FormatEntries
    files: Files
    access: Mapping[str, str] = field(repr=False)
    registered: bool = True

    def tables(self) -> Sequence[TableName]:
        return self.entries.tables()

    def find(self, table: TableName) -> str | None:
        return self.entries.location(table)

    def folder(self, namespace: str) -> str:
        return f"{self.entries.warehouse.rstrip('/')}/{namespace}.db"

    def new_location(self, table: TableName) -> str:
        default = f"{self.folder(table.namespace)}/{table.table}"
        try:
            self.read(f"{default}/.hoodie/hoodie.properties")
        except FileNotFoundError:
            return ""
        return f"{default}_{uuid.uuid4().hex[:8]}"  # the folder of a dropped table stays, so that it can be restored

    def file(self, location: str, relative: str) -> str:
        return f"{location}/{relative}"

    def read(self, uri: str) -> bytes:
        return self.files.read(uri)

    def version(self, table: TableName) -> str:
        return ""

    def drop(self, table: TableName) -> bool:
        return self.entries.drop(table)

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return self.entries.undrop(table, drop)

    def dropped(self) -> Sequence[TableName]:
        return self.entries.dropped()

    def drops(self) -> Sequence[Drop]:
        return self.entries.drops()
