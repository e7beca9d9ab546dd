"""Inspect one file: kind, dialect, column names and statistics of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import EmptyFileError, JsonArrayError, NotSupportedError
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.column_stats import ColumnStats
from lakehouse.ingest.files.dialect import InferredDialect, after_lines, count_blank_lines, detect_dialect, has_header
from lakehouse.ingest.files.discover import SourceFile, nothing_below
from lakehouse.ingest.files.encoding import decode_head
from lakehouse.ingest.files.file_kind import detect_kind, json_layout
from lakehouse.ingest.files.inference import stats_of_file, stats_of_head
from lakehouse.ingest.files.model import Compression, Dialect, FileKind, FilePlan, RecordedColumn
from lakehouse.ingest.files.names import clean_names
from lakehouse.ingest.files.nested import TypeTree, json_trees, tree_of
from lakehouse.ingest.files.workspace import RowQuery, Workspace

#: Bytes to read from the start of a file; a larger size is tried if the first has fewer than three rows.
_HEAD_SIZES = (1 << 20, 16 << 20, 192 << 20)
#: The digits of the largest decimal.
_MAX_DIGITS = 38


@dataclass(frozen=True)
class FileInspection:
    """The plan of a file and statistics of its columns, from the first rows or, if `whole`, from all."""

    plan: FilePlan
    stats: Mapping[str, ColumnStats] = field(default_factory=dict)
    whole: bool = False
    notes: tuple[str, ...] = ()


def inspect_file(space: Workspace, file: SourceFile, known: Sequence[RecordedColumn]) -> FileInspection:
    """Inspect a file before it is staged."""
    kind, compression, notes = detect_kind(file, space.settings.skip_rows)
    if space.settings.skip_rows and kind not in ("csv", "workbook"):
        raise NotSupportedError(
            f"{file.name} is {kind.upper()}: only a CSV and a sheet of a workbook have lines above the header.",
            "Leave out skip_rows.",
        )
    inspections: dict[FileKind, Callable[..., FileInspection]] = {
        "csv": _inspect_csv,
        "json": _inspect_json,
        "parquet": _inspect_parquet,
        "arrow": partial(_inspect_parquet, kind="arrow"),
        "workbook": _inspect_workbook,
    }
    inspection = inspections[kind](space, file, compression, known)
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
    lines_above = space.settings.skip_rows + count_blank_lines(head)
    dialect = Dialect(inferred.delimiter, inferred.quote, inferred.escape, encoding, header, row_bytes, lines_above)
    plan = FilePlan(file, "csv", compression, dialect, tuple(fields), tuple(names))
    notes = () if encoding == "utf-8" else (f"{file.name}: its encoding is {encoding}.",)
    if space.settings.all_text:
        return FileInspection(plan, whole=True, notes=notes)
    return FileInspection(plan, stats_of_head(space, plan, head, whole), notes=notes)


def _first_rows(space: Workspace, file: SourceFile, compression: Compression) -> tuple[str, str, bool, InferredDialect]:
    for size in _HEAD_SIZES:
        head, encoding, whole = decode_head(file, compression, space.settings.encoding, size)
        head = after_lines(head, space.settings.skip_rows)
        inferred = detect_dialect(head, whole, space.settings)
        if whole or len(inferred.rows) > 2:
            break
    if not inferred.rows and space.settings.skip_rows:
        raise nothing_below(file.name, "lines", space.settings.skip_rows, file)
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
    head, encoding, whole = decode_head(file, compression, space.settings.encoding, 1 << 16)
    if not head.strip():
        raise _blank_file(file)
    row_bytes = len(head) // max(1, head.count("\n")) + 1
    dialect = Dialect("\x01", "", "", encoding, False, row_bytes)
    plan = FilePlan(file, "json", compression, dialect, (), (), layout=json_layout(head, whole) or "lines")
    with duckdb_scan.translate_errors(file):
        trees = space.scan(plan, lambda rows: _json_trees(space, rows))
        if not trees and plan.layout == "lines" and space.count_lines(plan) > 1:
            # The first object is longer than what decided the layout, and may go on after its first line.
            plan, trees = space.over_several_lines(plan, lambda rows: _json_trees(space, rows)) or (plan, trees)
    if not trees and space.count_lines(plan):
        raise JsonArrayError(
            f"{file.name} has no JSON object.",
            "Each line, or each element of an array, must be one object.",
            file=file.name,
        )
    return _with_columns(space, plan, trees, known)


def _inspect_workbook(
    space: Workspace, file: SourceFile, compression: Compression, known: Sequence[RecordedColumn]
) -> FileInspection:
    plan = FilePlan(file, "json", compression, Dialect("\x01", "", "", header=False), (), (), layout="workbook")
    with duckdb_scan.translate_errors(file):
        trees = space.scan(plan, lambda rows: _json_trees(space, rows))
    return _with_columns(space, plan, trees, known)


def _with_columns(
    space: Workspace, plan: FilePlan, trees: Mapping[str, TypeTree], known: Sequence[RecordedColumn]
) -> FileInspection:
    """Add the columns of a JSON or Parquet file, with `flatten` one for each value inside of its structs."""
    columns: dict[tuple[str, ...], TypeTree] = {(key,): tree for key, tree in trees.items()}
    if space.settings.flatten:
        columns = {path: leaf for key, tree in trees.items() for path, leaf in tree.leaves((key,))}
    fields = tuple(".".join(path) for path in columns)
    plan = replace(
        plan,
        fields=fields,
        names=tuple(_recorded_names(fields, known)),
        paths=tuple(columns),
        trees=tuple(
            tree if plan.is_typed or (tree.nested and not space.settings.all_text) else None
            for tree in columns.values()
        ),
    )
    if plan.is_typed or space.settings.all_text:
        return FileInspection(plan, whole=True)
    # The keys come from all lines anyway, so a sample of the values would save little.
    inferred = [name for name, tree in zip(plan.names, plan.trees, strict=True) if tree is None]
    return FileInspection(plan, stats_of_file(space, plan, inferred), whole=True)


def _json_trees(space: Workspace, rows: RowQuery) -> dict[str, TypeTree]:
    """The types of all keys, in order of their first occurrence."""
    good = f"FROM (SELECT f0, row_number() OVER () AS n FROM ({rows.query}) WHERE {rows.good})"
    keys = space.connection.execute(
        f"""SELECT k FROM (SELECT n, unnest(json_keys(f0)) AS k, unnest(range(len(json_keys(f0)))) AS position {good})
            GROUP BY k ORDER BY min([n, position])"""
    ).fetchall()
    structure = space.connection.execute(f"SELECT json_group_structure(CAST(f0 AS JSON)) {good}").fetchone()
    trees = json_trees(structure[0]) if keys and structure else {}
    return {key: trees[key] for (key,) in keys}


def _blank_file(file: SourceFile) -> EmptyFileError:
    hint = "Choose a file with data."
    return EmptyFileError(f"{file.name} has only blank lines.", hint, file=file.name)


def _inspect_parquet(
    space: Workspace,
    file: SourceFile,
    compression: Compression,
    known: Sequence[RecordedColumn],
    kind: FileKind = "parquet",
) -> FileInspection:
    if compression:
        raise NotSupportedError(
            f"{file.name} is a binary file inside {compression}.",
            "Decompress it; Parquet and Arrow files compress their own data.",
        )
    plan = FilePlan(file, kind, "", Dialect(), (), ())
    path = space.parquet_path(plan)
    with duckdb_scan.translate_errors(file):
        scanned = space.connection.sql(f"SELECT * FROM {duckdb_scan.parquet(path)}")
        _check_digits(space, file, path)
    trees = {name: tree_of(kind) for name, kind in zip(scanned.columns, scanned.types, strict=True)}
    inspection = _with_columns(space, plan, trees, known)
    plan = inspection.plan
    notes = [
        f"{name}: {tree.kind} becomes {tree.spark}."
        for name, tree in zip(plan.names, plan.trees, strict=True)
        if tree and (tree.kind == "TIMESTAMP_NS" or (tree.spark == "string" and tree.kind != "VARCHAR"))
    ]
    return replace(inspection, notes=tuple(notes))


def _check_digits(space: Workspace, file: SourceFile, path: str) -> None:
    """Refuse decimals of more digits than any engine has: DuckDB would read them as doubles."""
    wide = f"SELECT name, precision, scale FROM parquet_schema({quoting.text(path)}) WHERE precision > {_MAX_DIGITS}"
    for name, precision, scale in space.connection.execute(wide).fetchall():
        raise NotSupportedError(
            f"{file.name}: {name} is a decimal({precision},{scale}), and a table has at most {_MAX_DIGITS} digits.",
            f"Write it to the file as decimal({_MAX_DIGITS},{scale}), double or text.",
        )


def _recorded_names(headers: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """Column names: the table's name for a header that it has recorded, ignoring case, else the clean name."""
    by_header = {column.header.strip().casefold(): column.name for column in known if column.header}
    clean = clean_names(headers)
    names = [by_header.get(header.strip().casefold(), name) for header, name in zip(headers, clean, strict=True)]
    return names if len(set(names)) == len(names) else clean


def _names_by_position(fields: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """Names for a file without header: those of the table if it has as many columns."""
    return [column.name for column in known] if len(known) == len(fields) else clean_names(fields)
