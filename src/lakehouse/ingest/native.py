"""Rows into an Iceberg table without the JVM's Parquet writer: DuckDB writes the data files, PyIceberg commits them.

Spark's writer takes rows one by one and needs three times the CPU of this for the same file (bench/ingest.py). It is
still what writes when a partition needs a hash that only Iceberg's own code computes, when a batch meets so many
partitions that files would be better made by a shuffle, and when the table's files cannot be read as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.tables import Column
from lakehouse.core.uris import file_uri, local_path
from lakehouse.engines.duckdb import DuckDB, duckdb_type
from lakehouse.storage.s3 import is_remote

#: Every partition keeps a file open on each thread; beyond that many, Spark's shuffle makes better files.
_MOST_PARTITIONS = 256
#: How many rows go into one row group, and how much memory it may take: every open file holds one.
_FEWEST_ROWS, _MOST_ROWS, _GROUP_BYTES = 2_048, 122_880, 64 << 20
#: What of the memory limit may wait to be written, for each thread.
_WAITING_SHARE = 16
#: Where a table is not partitioned, a file is ended when it has grown to that.
_FILE_BYTES = 512 << 20
#: A partition field as SQL that gives the text which Iceberg has in its paths. Buckets need a hash that DuckDB lacks.
_TRANSFORMS = {
    "identity": "CAST({0} AS VARCHAR)",
    "year": "strftime(CAST({0} AS TIMESTAMP), '%Y')",
    "month": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m')",
    "day": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m-%d')",
    "hour": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m-%d-%H')",
}
#: Types whose text in a path is the same in DuckDB as in Iceberg, so that identity partitions can be named by it.
_PLAIN = re.compile(r"(tinyint|smallint|int|bigint|string|date|boolean)")
_FLAT = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|string|date|boolean|timestamp|timestamp_ntz|decimal\(.*\))"
)


@dataclass(frozen=True)
class Rows:
    """Parquet files whose rows are to be added to a table."""

    folder: Path
    brought: Sequence[str]
    """The columns that they have; the table's others are null."""

    @property
    def source(self) -> str:
        return f"read_parquet({_text(str(self.folder / '*.parquet'))}, union_by_name = true, hive_partitioning = false)"

    def typed(self, columns: Sequence[Column]) -> str:
        """The query that gives them in a table's columns."""
        return f"SELECT {', '.join(_picked(column, self.brought) for column in columns)} FROM {self.source}"

    def row_bytes(self) -> int:
        """What a row takes in memory, about."""
        from pyarrow import parquet

        found = [parquet.read_metadata(file) for file in self.folder.glob("*.parquet")]
        rows = sum(each.num_rows for each in found)
        held = sum(each.row_group(at).total_byte_size for each in found for at in range(each.num_row_groups))
        # Repeated values are stored once, but held as often as they occur.
        return max(held // rows if rows else 0, 100)


@dataclass(frozen=True)
class _Part:
    """A field of the table's partitioning, and the SQL of the text that stands for a value."""

    name: str
    alias: str
    """What the text is called beside the table's columns, one of which may have the field's name."""
    sql: str


def wake() -> None:
    """Begin to load what committing takes: a second in which DuckDB can read the files."""
    from threading import Thread

    modules = ("pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "pyiceberg.table")
    Thread(target=lambda: [import_module(name) for name in modules], daemon=True).start()


class NativeWriter:
    """Changes one table of a catalog that PyIceberg reaches."""

    def __init__(self, duckdb: DuckDB, catalog: str, properties: Mapping[str, str], table: TableName) -> None:
        self._duckdb, self._catalog, self._properties, self._name = duckdb, catalog, properties, table

    def append(self, rows: Rows, columns: Sequence[Column]) -> bool:
        """Add the rows in one snapshot; False, with nothing done, if this table or these rows need Spark."""
        with self._opened(columns) as table:
            files = self._write(table, rows.typed(columns), columns, rows.row_bytes()) if table is not None else None
            if files is None:
                return False
            with table.transaction() as change, change.update_snapshot().fast_append() as append:
                for file in files:
                    append.append_data_file(file)
        return True

    def merge(self, rows: Rows, columns: Sequence[Column], key: Sequence[str]) -> bool:
        """Rows instead of those with the same key, in one snapshot; only files that hold one of them are written anew."""
        with self._opened(columns) as table:
            held = _plain_files(table, columns) if table is not None else None
            touched = self._touched(rows, held, columns, key) if held is not None else None
            if held is None or touched is None:
                return False
            files = self._write(table, _merged(rows, touched, columns, key), columns, rows.row_bytes())
            if files is None:
                return False
            with table.transaction() as change, change.update_snapshot().overwrite() as overwrite:
                for path in touched:
                    overwrite.delete_data_file(held[path])
                for file in files:
                    overwrite.append_data_file(file)
        return True

    @contextmanager
    def _opened(self, columns: Sequence[Column]) -> Iterator[Any]:
        """The table, or None if Spark must write it."""
        from pyiceberg.catalog import load_catalog

        if not all(_FLAT.fullmatch(column.type) for column in columns):
            yield None
            return
        with load_catalog(self._catalog, **self._properties) as catalog:
            table = catalog.load_table((self._name.namespace, self._name.table))
            # An order may be by an expression; Spark knows them all. So it does object stores.
            yield table if table.sort_order().is_unsorted and not is_remote(table.location()) else None

    def _touched(
        self, rows: Rows, held: Mapping[str, Any], columns: Sequence[Column], key: Sequence[str]
    ) -> list[str] | None:
        """The files that hold a row with one of the keys; None if a key is there twice: then all of them are updated."""
        if not held:
            return []
        listed = ", ".join(_name(each) for each in key)
        came = rows.typed([column for column in columns if column.name in key])
        there = f"{_parquet(held, ', filename = true')} t SEMI JOIN ({came}) s USING ({listed})"
        asked = f"SELECT list(DISTINCT filename), count(*), count(DISTINCT ({listed})) FROM {there}"
        files, found, different = self._duckdb.run(asked, {}, "ingest").rows()[0]
        return sorted(files or []) if found == different else None

    def _write(self, table: Any, query: str, columns: Sequence[Column], row_bytes: int) -> list[Any] | None:
        """Write the rows of a query into data files, and describe them as Iceberg wants them described; None: not so."""
        parts = _parts(table, {column.name: column.type for column in columns})
        if parts is None or not self._few_partitions(query, parts):
            return None
        ids = {field.name: field.field_id for field in table.schema().fields}
        folder = local_path(table.location()) / "data"
        folder.mkdir(parents=True, exist_ok=True)
        waiting = max(self._duckdb.memory_limit // _WAITING_SHARE // row_bytes, _FEWEST_ROWS)
        options = {
            "FORMAT": "parquet",
            "COMPRESSION": "zstd",
            # Measured on ten million rows: a quarter faster than the default level, and no larger.
            "COMPRESSION_LEVEL": "1",
            "ROW_GROUP_SIZE": str(min(max(_GROUP_BYTES // row_bytes, _FEWEST_ROWS), waiting, _MOST_ROWS)),
            "FIELD_IDS": "{" + ", ".join(f"{_name(each)}: {number}" for each, number in ids.items()) + "}",
            "FILENAME_PATTERN": "'{uuid}'",
            "OVERWRITE_OR_IGNORE": "true",
            "RETURN_STATS": "true",
        }
        if parts:
            options["PARTITION_BY"] = "(" + ", ".join(_name(part.alias) for part in parts) + ")"
        else:
            options["FILE_SIZE_BYTES"] = str(_FILE_BYTES)
        listed = ", ".join(f"{name} {value}" for name, value in options.items())
        picked = ", ".join(["*", *(f"{part.sql} AS {_name(part.alias)}" for part in parts)])
        copied = self._duckdb.run(
            f"SET partitioned_write_flush_threshold = {waiting};"
            f" COPY (SELECT {picked} FROM ({query})) TO {_text(str(folder))} ({listed})",
            {},
            "ingest",
        )
        return [
            _data_file(table, Path(row[0]), {part.name: (row[5] or {})[part.alias] for part in parts})
            for row in copied.rows()
        ]

    def _few_partitions(self, query: str, parts: Sequence[_Part]) -> bool:
        if not parts:
            return True
        listed = ", ".join(part.sql for part in parts)
        counted = self._duckdb.run(
            f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM ({query}))", {}, "ingest"
        ).rows()
        return int(counted[0][0]) <= _MOST_PARTITIONS


def _merged(rows: Rows, touched: Sequence[str], columns: Sequence[Column], key: Sequence[str]) -> str:
    """The query of all rows that the touched files' successors hold: what came, and what nobody brought anew."""
    same = " AND ".join(f"t.{_name(each)} = s.{_name(each)}" for each in key)
    names = ", ".join(f"t.{_name(column.name)}" for column in columns)
    kept = f"SELECT {names} FROM {_parquet(touched)} t WHERE NOT EXISTS (SELECT 1 FROM came s WHERE {same})"
    return f"WITH came AS ({rows.typed(columns)}) {kept if touched else 'SELECT * FROM came WHERE false'} UNION ALL FROM came"


def _plain_files(table: Any, columns: Sequence[Column]) -> dict[str, Any] | None:
    """The table's data files by their paths; None if reading them as they are would not give its rows."""
    tasks = list(table.scan().plan_files())
    merges_on_read = table.properties.get("write.merge.mode", "copy-on-write") != "copy-on-write"
    if merges_on_read or any(task.delete_files for task in tasks) or len(table.specs()) > 1:
        return None
    # Files are read by the names in them, which are the table's only if no column was ever changed or taken away.
    fields = {field.field_id: (field.name, str(field.field_type)) for field in table.schema().fields}
    if any(
        fields.get(field.field_id) != (field.name, str(field.field_type))
        for schema in table.schemas().values()
        for field in schema.fields
    ):
        return None
    found = {str(local_path(task.file.file_path)): task.file for task in tasks}
    # A column that some files lack must come from another that has it.
    return found if len(table.schemas()) == 1 or all(_has_all(path, columns) for path in found) else None


def _has_all(path: str, columns: Sequence[Column]) -> bool:
    from pyarrow import parquet

    return {column.name for column in columns} <= set(parquet.read_schema(path).names)


def _parquet(paths: Iterable[str], more: str = "") -> str:
    """Files as a table; folders named `day=1` above them are no columns of it."""
    return f"read_parquet([{', '.join(_text(path) for path in paths)}], hive_partitioning = false{more})"


def _parts(table: Any, types: Mapping[str, str]) -> list[_Part] | None:
    """The table's partitioning in DuckDB's words; None if it has no words for it."""
    found = []
    for field in table.spec().fields:
        column = table.schema().find_column_name(field.source_id)
        transform = str(field.transform)
        if transform not in _TRANSFORMS or (transform == "identity" and not _PLAIN.fullmatch(types.get(column, ""))):
            return None
        alias = field.name
        while alias in types:
            alias += "_"
        found.append(_Part(field.name, alias, _TRANSFORMS[transform].format(_name(column))))
    return found


def _picked(column: Column, brought: Sequence[str]) -> str:
    value = _name(column.name) if column.name in brought else "NULL"
    return f"CAST({value} AS {duckdb_type(column.type)}) AS {_name(column.name)}"


def _data_file(table: Any, path: Path, partition: Mapping[str, str | None]) -> Any:
    """A data file with the counts and bounds that let readers skip it."""
    from lakehouse.pyiceberg_internals import parquet_data_file

    return parquet_data_file(table, str(path), file_uri(path), path.stat().st_size, _record(table, partition))


def _record(table: Any, texts: Mapping[str, str | None]) -> Any:
    """The partition's values, from the texts that stand for them."""
    from pyiceberg.typedef import Record

    return Record(*(_value(str(field.transform), texts.get(field.name), table, field) for field in table.spec().fields))


def _value(transform: str, text: str | None, table: Any, field: Any) -> Any:
    from datetime import date, datetime

    if text is None:
        return None
    if transform == "identity":
        return _identity(text, str(table.schema().find_type(field.source_id)))
    if transform == "year":
        return int(text) - 1970
    if transform == "month":
        year, month = text.split("-")
        return (int(year) - 1970) * 12 + int(month) - 1
    if transform == "day":
        return (date.fromisoformat(text) - date(1970, 1, 1)).days
    since = datetime.strptime(text, "%Y-%m-%d-%H") - datetime(1970, 1, 1)
    return since.days * 24 + since.seconds // 3600


def _identity(text: str, kind: str) -> Any:
    from datetime import date

    if kind == "date":
        return (date.fromisoformat(text) - date(1970, 1, 1)).days
    return text if kind == "string" else json.loads(text)
