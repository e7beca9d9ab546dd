"""Write rows to an Iceberg table without Spark: DuckDB writes the data files, PyIceberg commits them.

Spark's Parquet writer needs three times the CPU for the same file (bench/ingest.py). Spark still writes when a partition
transform needs a hash that only Iceberg's own code computes, when a batch has many partitions, so that a shuffle creates
better files, and when the data files of the table cannot be read without their metadata. Files of a table in an object
store are written to a local folder and uploaded.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import StorageError
from lakehouse.core.files import file_uri, local_path
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.tables import Column
from lakehouse.engines.duckdb import DuckDB, duckdb_type
from lakehouse.storage.s3 import error_code, is_remote
from lakehouse.tables.partition_values import PartitionField, partition_fields, partition_record
from lakehouse.tables.write import StagedRows, needs_spark

#: Each thread keeps one open file per partition; above this number, Spark's shuffle creates better files.
_MAX_PARTITIONS = 256
#: Limits of a row group in rows and bytes: each open file buffers one.
_MIN_ROWS, _MAX_ROWS, _ROW_GROUP_BYTES = 2_048, 122_880, 64 << 20
#: Each thread may buffer the memory limit divided by this.
_BUFFER_SHARE = 16
#: The size at which a file of an unpartitioned table ends.
_FILE_BYTES = 512 << 20
#: Concurrent uploads to an object store, and the bytes that each holds in memory.
_UPLOADS, _UPLOAD_BYTES = 4, 8 << 20
_WRITTEN_TYPES = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|string|date|boolean|timestamp|timestamp_ntz|decimal\(.*\)|binary|(array|map|struct)<.*)"
)


@dataclass(frozen=True)
class _WrittenFile:
    """A Parquet file that DuckDB wrote, and the values of its partition."""

    path: Path
    partition: Mapping[str, str | None]


def preload() -> None:
    """Import PyIceberg in the background; this takes a second, in which DuckDB can read the files."""
    from threading import Thread

    modules = ("pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "pyiceberg.table")
    Thread(target=lambda: [import_module(name) for name in modules], daemon=True).start()


class NativeWriter:
    """Writes to one table of a catalog that PyIceberg can reach."""

    def __init__(self, duckdb: DuckDB, catalog: str, properties: Mapping[str, str], table: TableName) -> None:
        self._duckdb, self._catalog, self._properties, self._name = duckdb, catalog, properties, table
        self._loaded: Any = None
        self._notes: Mapping[str, str] = {}

    @classmethod
    def of(cls, duckdb: DuckDB, table: TableName, loaded: Any, notes: Mapping[str, str]) -> NativeWriter:
        """A writer for a table as PyIceberg has loaded it: a commit fails if it has changed since.

        Args:
            notes: properties of its snapshots.
        """
        writer = cls(duckdb, "", {}, table)
        # PyIceberg would repeat a commit on top of another writer's, and rows that both inserted would be there twice. It
        # reads this property from the loaded metadata; the stored table does not change.
        properties = {**loaded.metadata.properties, "commit.retry.num-retries": "0"}
        loaded.metadata = loaded.metadata.model_copy(update={"properties": properties})
        writer._loaded, writer._notes = loaded, notes
        return writer

    def append(self, rows: StagedRows, columns: Sequence[Column]) -> None:
        with self._load_table(columns) as table:
            files = self._write(table, _select(rows, columns), columns, rows)
            from lakehouse.pyiceberg_internals import merging_append

            with table.transaction() as change, merging_append(change, self._notes) as append:
                for file in files:
                    append.append_data_file(file)

    def merge(self, rows: StagedRows, columns: Sequence[Column], key: Sequence[str]) -> None:
        """Replace the rows with the same key, copy-on-write."""
        with self._load_table(columns) as table:
            data_files = _readable_files(table, self._name)
            affected = self._affected_files(rows, data_files, columns, key)
            files = self._write(table, _merge_query(rows, affected, columns, key), columns, rows)
            self._replace(table, [data_files[path] for path in affected], files)

    def overwrite(self, rows: StagedRows, columns: Sequence[Column]) -> None:
        with self._load_table(columns) as table:
            tasks = list(table.scan().plan_files())
            if any(task.delete_files for task in tasks) or len(table.specs()) > 1:
                raise needs_spark(f"Replacing all rows of {self._name}, which has deletes or was partitioned anew,")
            files = self._write(table, _select(rows, columns), columns, rows)
            self._replace(table, [task.file for task in tasks], files)

    def _replace(self, table: Any, removed: Iterable[Any], added: Iterable[Any]) -> None:
        """Commit data files in place of others."""
        with table.transaction() as change, change.update_snapshot(dict(self._notes)).overwrite() as overwrite:
            for file in removed:
                overwrite.delete_data_file(file)
            for file in added:
                overwrite.append_data_file(file)

    @contextmanager
    def _load_table(self, columns: Sequence[Column]) -> Iterator[Any]:
        """The PyIceberg table."""
        from pyiceberg.catalog import load_catalog

        from lakehouse.pyiceberg_internals import fast_commits

        for column in columns:
            if not _WRITTEN_TYPES.fullmatch(column.type):
                raise needs_spark(f"Writing the {column.type} {column.name} of {self._name}")
        fast_commits()
        with ExitStack() as stack:
            stack.enter_context(_explained(self._name))
            table = self._loaded
            if table is None:
                catalog = stack.enter_context(load_catalog(self._catalog, **self._properties))
                table = catalog.load_table((self._name.namespace, self._name.table))
            if kind := _unwritten_type(table.schema()):
                raise needs_spark(f"Writing to {self._name}, which has a {kind},")
            if not table.sort_order().is_unsorted:  # it may use any transform
                raise needs_spark(f"Writing to {self._name}, which has a sort order,")
            yield table

    def _affected_files(
        self, rows: StagedRows, data_files: Mapping[str, Any], columns: Sequence[Column], key: Sequence[str]
    ) -> list[str]:
        """The data files with a row to replace."""
        if not data_files:
            return []
        listed = ", ".join(_name(column) for column in key)
        keys = [column for column in columns if column.name in key]
        incoming = _select(rows, keys)
        matching = f"{_with_nulls(data_files, keys, ', filename = true')} t SEMI JOIN ({incoming}) s ON {_same(key)}"
        query = f"SELECT list(DISTINCT filename), count(*), count(DISTINCT ({listed})) FROM {matching}"
        files, matches, distinct_keys = self._duckdb.query(query, {}, "ingest").rows()[0]
        if matches != distinct_keys:  # MERGE updates every row that has a key
            raise needs_spark(f"Updating {self._name}, which has a key twice,")
        return sorted(files or [])

    def _write(self, table: Any, query: str, columns: Sequence[Column], rows: StagedRows) -> list[Any]:
        """Write the rows of a query as data files, described for a commit."""
        fields = partition_fields(table, {column.name: column.type for column in columns})
        if fields is None or not self._has_few_partitions(query, fields):
            raise needs_spark(f"Writing to the partitions of {self._name}")
        if not is_remote(table.location()):
            folder = local_path(table.location()) / "data"
            folder.mkdir(parents=True, exist_ok=True)
            return [
                _data_file(table, file, file_uri(file.path)) for file in self._copy(table, query, fields, rows, folder)
            ]
        # Written here first: the counts and bounds come from the file's end, and nothing is in the bucket if this fails.
        with TemporaryDirectory(dir=rows.folder.parent) as scratch, ThreadPoolExecutor(_UPLOADS) as pool:
            written = self._copy(table, query, fields, rows, Path(scratch))
            uris = pool.map(partial(_upload, table), (file.path for file in written))
            return [_data_file(table, file, uri) for file, uri in zip(written, uris, strict=True)]

    def _copy(
        self, table: Any, query: str, fields: Sequence[PartitionField], rows: StagedRows, folder: Path
    ) -> list[_WrittenFile]:
        """Write the rows of a query as Parquet files in a local folder."""
        row_count, row_bytes = _staged_size(rows.folder)
        buffered_rows = max(self._duckdb.memory_limit // _BUFFER_SHARE // row_bytes, _MIN_ROWS)
        row_group = min(max(_ROW_GROUP_BYTES // row_bytes, _MIN_ROWS), buffered_rows, _MAX_ROWS)
        options = ", ".join(f"{name} {value}" for name, value in _copy_options(table, fields, row_group).items())
        selected = ", ".join(["*", *(f"{field.sql} AS {_name(field.alias)}" for field in fields)])
        copied = self._duckdb.execute(
            f"SET partitioned_write_flush_threshold = {buffered_rows};"
            f" COPY (SELECT {selected} FROM ({query})) TO {_text(str(folder))} ({options})",
            size=row_count,
        )
        for path in (row[0] for row in copied if not row[1]):
            Path(path).unlink()  # of a query without rows
        return [
            _WrittenFile(Path(row[0]), {field.name: (row[5] or {})[field.alias] for field in fields})
            for row in copied
            if row[1]
        ]

    def _has_few_partitions(self, query: str, fields: Sequence[PartitionField]) -> bool:
        if not fields:
            return True
        listed = ", ".join(field.sql for field in fields)
        counted = self._duckdb.query(
            f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM ({query}))", {}, "ingest"
        ).rows()
        return int(counted[0][0]) <= _MAX_PARTITIONS


def _select(rows: StagedRows, columns: Sequence[Column]) -> str:
    """A query for the rows in the columns and types of the table."""
    source = f"read_parquet({_text(str(rows.folder / '*.parquet'))}, union_by_name = true, hive_partitioning = false)"
    values = (
        f"CAST({rows.expression(column, _name(column.name))} AS {duckdb_type(column.type)}) AS {_name(column.name)}"
        for column in columns
    )
    return f"SELECT {', '.join(values)} FROM {source}"


def _staged_size(folder: Path) -> tuple[int, int]:
    """The number of rows, and the approximate size of one in memory."""
    from pyarrow import parquet

    files = [parquet.read_metadata(file) for file in folder.glob("*.parquet")]
    rows = sum(file.num_rows for file in files)
    size = sum(file.row_group(at).total_byte_size for file in files for at in range(file.num_row_groups))
    # Dictionary encoding stores repeated values once; in memory each takes its own space.
    return rows, max(size // rows if rows else 0, 100)


def _copy_options(table: Any, fields: Sequence[PartitionField], row_group: int) -> dict[str, str]:
    """Options of DuckDB's COPY for data files of the table."""
    field_ids = ", ".join(_field_id(field.name, field) for field in table.schema().fields)
    options = {
        "FORMAT": "parquet",
        "COMPRESSION": "zstd",
        # On ten million rows a quarter faster than the default level, with files of the same size.
        "COMPRESSION_LEVEL": "1",
        "ROW_GROUP_SIZE": str(row_group),
        "FIELD_IDS": "{" + field_ids + "}",
        "FILENAME_PATTERN": "'{uuid}'",
        "OVERWRITE_OR_IGNORE": "true",
        "RETURN_STATS": "true",
    }
    if fields:
        options["PARTITION_BY"] = "(" + ", ".join(_name(field.alias) for field in fields) + ")"
    else:
        options["FILE_SIZE_BYTES"] = str(_FILE_BYTES)
    return options


def _field_id(name: str, field: Any) -> str:
    """A column's id of COPY's option FIELD_IDS, with those of the fields inside of it."""
    kind = field.field_type
    inside = ("element_field", "key_field", "value_field")
    inner = getattr(kind, "fields", None) or [getattr(kind, part) for part in inside if hasattr(kind, part)]
    if not inner:
        return f"{_name(name)}: {field.field_id}"
    parts = ", ".join(_field_id(part.name, part) for part in inner)
    return f"{_name(name)}: {{__duckdb_field_id: {field.field_id}, {parts}}}"


def _unwritten_type(schema: Any) -> str:
    """A type in the schema that Spark has as text or bytes, so that DuckDB would write another one; empty if there is none."""
    from pyiceberg.types import FixedType, UUIDType

    kinds = (schema.find_type(name) for name in schema.column_names)
    return next((str(kind) for kind in kinds if isinstance(kind, FixedType | UUIDType)), "")


def _merge_query(rows: StagedRows, affected: Sequence[str], columns: Sequence[Column], key: Sequence[str]) -> str:
    """A query for the rows that replace the affected files: their unchanged rows and all incoming rows."""
    names = ", ".join(f"t.{_name(column.name)}" for column in columns)
    marked = [*columns, Column(rows.deleted, "boolean")] if rows.deleted else columns
    added = f"SELECT {names} FROM incoming t" + (f" WHERE NOT t.{_name(rows.deleted)}" if rows.deleted else "")
    unchanged = ""
    if affected:
        unchanged = (
            f"SELECT {names} FROM {_with_nulls(affected, columns)} t"
            f" WHERE NOT EXISTS (SELECT 1 FROM incoming s WHERE {_same(key)}) UNION ALL "
        )
    return f"WITH incoming AS ({_select(rows, marked)}) {unchanged}{added}"


def _same(key: Sequence[str]) -> str:
    return " AND ".join(f"t.{_name(column)} IS NOT DISTINCT FROM s.{_name(column)}" for column in key)


def _readable_files(table: Any, name: TableName) -> dict[str, Any]:
    """The data files by path, if DuckDB can get the rows of the table from the files alone."""
    tasks = list(table.scan().plan_files())
    merges_on_read = table.properties.get("write.merge.mode", "copy-on-write") != "copy-on-write"
    if merges_on_read or any(task.delete_files for task in tasks) or len(table.specs()) > 1:
        raise needs_spark(f"Updating {name}, which merges on read or was partitioned anew,")
    # DuckDB matches columns by name, which is wrong once a column was renamed, retyped or dropped.
    fields = {field.field_id: (field.name, str(field.field_type)) for field in table.schema().fields}
    if any(
        fields.get(field.field_id) != (field.name, str(field.field_type))
        for schema in table.schemas().values()
        for field in schema.fields
    ):
        raise needs_spark(f"Updating {name}, whose columns were changed,")
    return {_for_duckdb(task.file.file_path): task.file for task in tasks}


def _for_duckdb(uri: str) -> str:
    return uri if is_remote(uri) else str(local_path(uri))


def _with_nulls(paths: Iterable[str], columns: Sequence[Column], more: str = "") -> str:
    """SQL that reads files by column name; files from before a column was added have NULL there."""
    # Folders named like `day=1` do not become columns.
    files = f"read_parquet([{', '.join(_text(path) for path in paths)}], hive_partitioning = false, union_by_name = true{more})"
    nulls = ", ".join(f"CAST(NULL AS {duckdb_type(column.type)}) AS {_name(column.name)}" for column in columns)
    return f"(SELECT * FROM {files} UNION ALL BY NAME SELECT {nulls} WHERE false)"


@contextmanager
def _explained(table: TableName) -> Iterator[None]:
    """Name the cause if an object store fails."""
    try:
        yield
    except OSError as exc:
        code = error_code(exc)
        if not code:
            raise
        raise StorageError(
            f"The object store of {table} failed: {code}.", "Nothing was changed. lake doctor checks the storage."
        ) from exc


def _upload(table: Any, path: Path) -> str:
    """Copy a file into the table's storage; returns its URI there."""
    uri = f"{table.location().rstrip('/')}/data/{path.stem}-{uuid4().hex}.parquet"
    with path.open("rb") as source, table.io.new_output(uri).create() as target:
        shutil.copyfileobj(source, target, _UPLOAD_BYTES)
    return uri


def _data_file(table: Any, file: _WrittenFile, uri: str) -> Any:
    """Describe a data file with the counts and bounds that let readers skip it."""
    from lakehouse.pyiceberg_internals import parquet_data_file

    record = partition_record(table, file.partition)
    return parquet_data_file(table, str(file.path), uri, file.path.stat().st_size, record)
