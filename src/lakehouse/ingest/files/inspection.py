"""Inspect one file: kind, dialect, column names and statistics of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakehouse.core.errors import EmptyFileError, JsonArrayError, NotSupportedError
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.casts import is_nested, spark_type
from lakehouse.ingest.files.column_stats import ColumnStats
from lakehouse.ingest.files.dialect import InferredDialect, detect_dialect, has_header
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.encoding import decode_head
from lakehouse.ingest.files.file_kind import detect_kind
from lakehouse.ingest.files.inference import stats_of_file, stats_of_head
from lakehouse.ingest.files.model import Compression, Dialect, FilePlan, RecordedColumn
from lakehouse.ingest.files.names import clean_names
from lakehouse.ingest.files.workspace import RowQuery, Workspace

#: Bytes to read from the start of a file; a larger size is tried if the first has fewer than three rows.
_HEAD_SIZES = (1 << 20, 16 << 20, 192 << 20)


@dataclass(frozen=True)
class FileInspection:
    """The plan of a file and statistics of its columns, from the first rows or, if `whole`, from all."""

    plan: FilePlan
    stats: Mapping[str, ColumnStats] = field(default_factory=dict)
    whole: bool = False
    notes: tuple[str, ...] = ()


def inspect_file(space: Workspace, file: SourceFile, known: Sequence[RecordedColumn]) -> FileInspection:
    """Inspect a file before it is staged."""
    kind, compression, notes = detect_kind(file)
    inspect = {"csv": _inspect_csv, "json": _inspect_json, "parquet": _inspect_parquet}[kind]
    inspection = inspect(space, file, compression, known)
    return replace(inspection, notes=(*notes, *inspection.notes))


def _inspect_csv(
    space: Workspace, file: SourceFile, compression: Compression, known: Sequence[RecordedColumn]
) -> FileInspection:
    head, encoding, whole, inferred = _first_rows(space, file, compression)
    header = space.settings.header
    if header is None:
        names = _recorded_names(inferred.rows[0], known)
        header = has_header(inferred.rows, frozenset(column.name for column in known), names, space.settings.null_words)
    fields = _fields(inferred.rows, header)
    names = _recorded_names(fields, known) if header else _names_by_position(fields, known)
    row_bytes = len(head) // max(1, head.count("\n")) + 1
    dialect = Dialect(inferred.delimiter, inferred.quote, inferred.escape, encoding, header, row_bytes)
    plan = FilePlan(file, "csv", compression, dialect, tuple(fields), tuple(names))
    notes = () if encoding == "utf-8" else (f"{file.name}: its encoding is {encoding}.",)
    if space.settings.all_text:
        return FileInspection(plan, whole=True, notes=notes)
    return FileInspection(plan, stats_of_head(space, plan, head, whole), notes=notes)


def _first_rows(space: Workspace, file: SourceFile, compression: Compression) -> tuple[str, str, bool, InferredDialect]:
    for size in _HEAD_SIZES:
        head, encoding, whole = decode_head(file, compression, space.settings.encoding, size)
        inferred = detect_dialect(head, whole, space.settings)
        if whole or len(inferred.rows) > 2:
            break
    if not inferred.rows:
        raise _blank_file(file)
    return head, encoding, whole, inferred


def _fields(rows: Sequence[Sequence[str]], header: bool) -> list[str]:
    """The headers, plus empty ones if all rows have the same larger number of fields."""
    widths = [len(row) for row in rows]
    if not header:
        return [""] * max(widths, key=widths.count)
    below = set(widths[1:])
    return [*rows[0], *[""] * (min(below) - widths[0] if len(below) == 1 else 0)]


def _inspect_json(
    space: Workspace, file: SourceFile, compression: Compression, known: Sequence[RecordedColumn]
) -> FileInspection:
    head, encoding, _ = decode_head(file, compression, space.settings.encoding, 1 << 16)
    start = head.lstrip()
    if not start:
        raise _blank_file(file)
    if start[0] == "[":
        raise _json_array(file)
    row_bytes = len(head) // max(1, head.count("\n")) + 1
    plan = FilePlan(file, "json", compression, Dialect("\x01", "", "", encoding, False, row_bytes), (), ())
    with duckdb_scan.translate_errors(file):
        keys = space.scan(plan, lambda rows: _json_keys(space, rows))
    if not keys:
        hint = f"Each line must be one object. Convert the file: jq -c . '{file.name}' > lines.jsonl"
        raise JsonArrayError(f"{file.name} has no line that is a JSON object.", hint, file=file.name)
    plan = replace(plan, fields=tuple(keys), names=tuple(_recorded_names(keys, known)))
    if space.settings.all_text:
        return FileInspection(plan, whole=True)
    # The keys come from all lines anyway, so a sample of the values would save little.
    return FileInspection(plan, stats_of_file(space, plan, plan.names), whole=True)


def _json_keys(space: Workspace, rows: RowQuery) -> list[str]:
    """The keys of all objects, in order of their first occurrence."""
    keys = space.connection.execute(
        f"""SELECT k FROM (SELECT n, unnest(json_keys(f0)) AS k, unnest(range(len(json_keys(f0)))) AS position
              FROM (SELECT f0, row_number() OVER () AS n FROM ({rows.query}) WHERE {rows.good}))
            GROUP BY k ORDER BY min([n, position])"""
    )
    return [key for (key,) in keys.fetchall()]


def _blank_file(file: SourceFile) -> EmptyFileError:
    hint = "Choose a file with data."
    return EmptyFileError(f"{file.name} has only blank lines.", hint, file=file.name)


def _json_array(file: SourceFile) -> JsonArrayError:
    return JsonArrayError(
        f"{file.name} is one JSON array, not one object per line.",
        f"Convert it to JSON lines: jq -c '.[]' '{file.name}' > lines.jsonl",
        file=file.name,
    )


def _inspect_parquet(
    space: Workspace, file: SourceFile, compression: Compression, known: Sequence[RecordedColumn]
) -> FileInspection:
    if compression:
        raise NotSupportedError(
            f"{file.name} is Parquet inside {compression}.", "Decompress it; Parquet compresses its own data."
        )
    with duckdb_scan.translate_errors(file):
        described = space.connection.execute(
            f"DESCRIBE SELECT * FROM {duckdb_scan.parquet(duckdb_scan.literal_path(file.path, space.folder))}"
        ).fetchall()
    fields, types = [row[0] for row in described], [str(row[1]) for row in described]
    names = _recorded_names(fields, known)
    spark_types = tuple(spark_type(type) for type in types)
    plan = FilePlan(file, "parquet", "", Dialect(), tuple(fields), tuple(names), spark_types)
    notes = [
        f"{name}: {type} becomes {spark}."
        for name, type, spark in zip(names, types, spark_types, strict=True)
        if type == "TIMESTAMP_NS" or (spark == "string" and type != "VARCHAR" and not is_nested(type))
    ]
    return FileInspection(plan, whole=True, notes=tuple(notes))


def _recorded_names(headers: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """Column names: the table's name for a header that it has recorded, ignoring case, else the clean name."""
    by_header = {column.header.strip().casefold(): column.name for column in known if column.header}
    clean = clean_names(headers)
    names = [by_header.get(header.strip().casefold(), name) for header, name in zip(headers, clean, strict=True)]
    return names if len(set(names)) == len(names) else clean


def _names_by_position(fields: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """Names for a file without header: those of the table if it has as many columns."""
    return [column.name for column in known] if len(known) == len(fields) else clean_names(fields)
