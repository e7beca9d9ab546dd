"""Where Hudi tables lie and how they are found: by their folders on this machine, or by their entries in a metastore."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lakehouse.core.errors import TableExistsError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.uris import file_uri, local_path


class Places(Protocol):
    """The folders of a lake's Hudi tables."""

    @property
    def registered(self) -> bool:
        """Whether a metastore knows the tables, and so does every session of Spark that is told of it."""

    @property
    def access(self) -> Mapping[str, str]:
        """What hudi-rs needs to read them."""

    def tables(self) -> Sequence[TableName]:
        """Every table, by name."""

    def find(self, table: TableName) -> str | None:
        """The URI of a table's folder, or None if there is no such table."""

    def folder(self, namespace: str) -> str:
        """The URI of the folder that a namespace's new tables go to."""

    def place_for_new(self, table: TableName) -> str:
        """The URI of a folder for a new table, if its usual one is taken; else nothing."""

    def file(self, place: str, relative: str) -> str:
        """One of the files of a table that lies there, as DuckDB names it."""

    def read(self, uri: str) -> bytes:
        """The content of a small file."""

    def version(self, table: TableName) -> str:
        """Changes whenever the table does; nothing if that is not cheap to tell."""

    def drop(self, table: TableName) -> bool: ...
    def undrop(self, table: TableName) -> bool: ...
    def dropped(self) -> Sequence[TableName]: ...


@dataclass(frozen=True)
class LocalFolders:
    """Tables in `warehouse/namespace/table`; dropped ones are moved to the trash."""

    warehouse: Path
    trash: Path
    registered: bool = False
    access: Mapping[str, str] = field(default_factory=dict)

    def tables(self) -> Sequence[TableName]:
        found = sorted(path.parents[1] for path in self.warehouse.glob("*/*/.hoodie/hoodie.properties"))
        return [TableName(folder.parent.name, folder.name) for folder in found]

    def find(self, table: TableName) -> str | None:
        folder = self._folder(table)
        return file_uri(folder) if (folder / ".hoodie" / "hoodie.properties").is_file() else None

    def folder(self, namespace: str) -> str:
        return file_uri(self.warehouse / namespace)

    def place_for_new(self, table: TableName) -> str:
        return ""  # a dropped table's folder has been moved away

    def file(self, place: str, relative: str) -> str:
        return str(local_path(place) / relative)

    def read(self, uri: str) -> bytes:
        return LOCAL.read(uri)

    def version(self, table: TableName) -> str:
        folder = self._folder(table) / ".hoodie" / "timeline"
        return max((entry.name for entry in folder.glob("*_*.*")), default="") if folder.is_dir() else ""

    def drop(self, table: TableName) -> bool:
        if self.find(table) is None:
            return False
        place = self.trash / table.namespace
        place.mkdir(parents=True, exist_ok=True)
        # Numbered, so that dropping two tables of one name one after the other keeps both.
        number = 1 + max((int(entry.suffix[1:]) for entry in place.glob(f"{table.table}.*")), default=0)
        self._folder(table).rename(place / f"{table.table}.{number}")
        return True

    def undrop(self, table: TableName) -> bool:
        kept = sorted(self.trash.glob(f"{table.namespace}/{table.table}.*"), key=lambda entry: int(entry.suffix[1:]))
        if not kept:
            return False
        folder = self._folder(table)
        if folder.exists():
            raise TableExistsError(
                f"There is something at {folder} again, so the dropped {table} cannot come back.",
                f"Drop the new one first: lake drop {table}",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(kept[-1], folder)
        return True

    def dropped(self) -> Sequence[TableName]:
        names = {(entry.parent.name, entry.stem) for entry in self.trash.glob("*/*.*")}
        return [TableName(*name) for name in sorted(names)]

    def _folder(self, table: TableName) -> Path:
        return self.warehouse / table.namespace / table.table


class Entries(Protocol):
    """The Hudi tables that a metastore knows."""

    @property
    def warehouse(self) -> str: ...

    def tables(self) -> Sequence[TableName]: ...
    def location(self, table: TableName) -> str | None: ...
    def drop(self, table: TableName) -> bool: ...
    def undrop(self, table: TableName) -> bool: ...
    def dropped(self) -> Sequence[TableName]: ...


@dataclass(frozen=True)
class MetastoreEntries:
    """Tables whose folders a metastore tells, mostly in an object store."""

    entries: Entries
    files: Files
    access: Mapping[str, str] = field(repr=False)
    registered: bool = True

    def tables(self) -> Sequence[TableName]:
        return self.entries.tables()

    def find(self, table: TableName) -> str | None:
        return self.entries.location(table)

    def folder(self, namespace: str) -> str:
        return f"{self.entries.warehouse.rstrip('/')}/{namespace}.db"

    def place_for_new(self, table: TableName) -> str:
        usual = f"{self.folder(table.namespace)}/{table.table}"
        try:
            self.read(f"{usual}/.hoodie/hoodie.properties")
        except FileNotFoundError:
            return ""
        return f"{usual}_{uuid.uuid4().hex[:8]}"  # a dropped table is still there, to be brought back

    def file(self, place: str, relative: str) -> str:
        return f"{place}/{relative}"

    def read(self, uri: str) -> bytes:
        return self.files.read(uri)

    def version(self, table: TableName) -> str:
        return ""

    def drop(self, table: TableName) -> bool:
        return self.entries.drop(table)

    def undrop(self, table: TableName) -> bool:
        return self.entries.undrop(table)

    def dropped(self) -> Sequence[TableName]:
        return self.entries.dropped()
