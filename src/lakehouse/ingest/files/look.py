"""One file, looked at: what it is, how it is written, what its columns are called and what they seem to hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakehouse.core.errors import NotSupportedError
from lakehouse.ingest.files import duck
from lakehouse.ingest.files.casts import is_nested, spark_type
from lakehouse.ingest.files.dialect import Guess, find_dialect, has_header
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.errors import EmptyFileError, JsonArrayError
from lakehouse.ingest.files.features import Features
from lakehouse.ingest.files.infer import features_of_all, features_of_head
from lakehouse.ingest.files.kinds import look
from lakehouse.ingest.files.model import Compression, Dialect, FilePlan, RecordedColumn
from lakehouse.ingest.files.names import clean_names
from lakehouse.ingest.files.text import decode_head
from lakehouse.ingest.files.workspace import Rows, Workspace

#: How much of a file is looked at first; more only if not even two rows fit in.
_HEADS = (1 << 20, 16 << 20, 192 << 20)


@dataclass(frozen=True)
class Looked:
    """A file's plan, and the features of its columns: of the first rows, or of all if `whole`."""

    plan: FilePlan
    features: Mapping[str, Features] = field(default_factory=dict)
    whole: bool = False
    notes: tuple[str, ...] = ()


def look_at(space: Workspace, file: SourceFile, known: Sequence[RecordedColumn]) -> Looked:
    """Everything about one file that can be said before it is staged."""
    kind, packed, notes = look(file)
    read = {"csv": _look_at_csv, "json": _look_at_json, "parquet": _look_at_parquet}[kind]
    looked = read(space, file, packed, known)
    return replace(looked, notes=(*notes, *looked.notes))


def _look_at_csv(space: Workspace, file: SourceFile, packed: Compression, known: Sequence[RecordedColumn]) -> Looked:
    head, encoding, whole, guess = _first_rows(space, file, packed)
    header = space.settings.header
    if header is None:
        told = _recorded_names(guess.rows[0], known)
        header = has_header(guess.rows, frozenset(column.name for column in known), told, space.settings.null_words)
    fields = _fields(guess.rows, header)
    names = _recorded_names(fields, known) if header else _positional(fields, known)
    row_bytes = len(head) // max(1, head.count("\n")) + 1
    dialect = Dialect(guess.delimiter, guess.quote, guess.escape, encoding, header, row_bytes)
    plan = FilePlan(file, "csv", packed, dialect, tuple(fields), tuple(names))
    notes = () if encoding == "utf-8" else (f"{file.name}: its encoding is {encoding}.",)
    if space.settings.all_text:
        return Looked(plan, whole=True, notes=notes)
    return Looked(plan, features_of_head(space, plan, head, whole), notes=notes)


def _first_rows(space: Workspace, file: SourceFile, packed: Compression) -> tuple[str, str, bool, Guess]:
    for size in _HEADS:
        head, encoding, whole = decode_head(file, packed, space.settings.encoding, size)
        guess = find_dialect(head, whole, space.settings)
        if whole or len(guess.rows) > 2:
            break
    if not guess.rows:
        raise _blank(file)
    return head, encoding, whole, guess


def _fields(rows: Sequence[Sequence[str]], header: bool) -> list[str]:
    """The headers; where all rows have the same number of fields more than that, so many without a name."""
    widths = [len(row) for row in rows]
    if not header:
        return [""] * max(widths, key=widths.count)
    below = set(widths[1:])
    return [*rows[0], *[""] * (min(below) - widths[0] if len(below) == 1 else 0)]


def _look_at_json(space: Workspace, file: SourceFile, packed: Compression, known: Sequence[RecordedColumn]) -> Looked:
    head, encoding, _ = decode_head(file, packed, space.settings.encoding, 1 << 16)
    start = head.lstrip()
    if not start:
        raise _blank(file)
    if start[0] == "[":
        raise _json_array(file)
    row_bytes = len(head) // max(1, head.count("\n")) + 1
    plan = FilePlan(file, "json", packed, Dialect("\x01", "", "", encoding, False, row_bytes), (), ())
    with duck.translated(file):
        keys = space.scan(plan, lambda rows: _json_keys(space, rows))
    if not keys:
        hint = f"Each line must hold one object. To make it so: jq -c . '{file.name}' > lines.jsonl"
        raise JsonArrayError(f"{file.name} has no line that is a JSON object.", hint, file=file.name)
    plan = replace(plan, fields=tuple(keys), names=tuple(_recorded_names(keys, known)))
    if space.settings.all_text:
        return Looked(plan, whole=True)
    # Keys had to be read from every line, so the values may as well be: a guess would save little here.
    return Looked(plan, features_of_all(space, plan, plan.names), whole=True)


def _json_keys(space: Workspace, rows: Rows) -> list[str]:
    """Every key of every object, in the order in which they first come."""
    found = space.connection.execute(
        f"""SELECT k FROM (SELECT n, unnest(json_keys(f0)) AS k, unnest(range(len(json_keys(f0)))) AS place
              FROM (SELECT f0, row_number() OVER () AS n FROM ({rows.query}) WHERE {rows.good}))
            GROUP BY k ORDER BY min([n, place])"""
    )
    return [key for (key,) in found.fetchall()]


def _blank(file: SourceFile) -> EmptyFileError:
    hint = "There is nothing to read in it."
    return EmptyFileError(f"{file.name} holds nothing but blank lines.", hint, file=file.name)


def _json_array(file: SourceFile) -> JsonArrayError:
    return JsonArrayError(
        f"{file.name} is one JSON array, not one object per line.",
        f"Turn it into JSON lines: jq -c '.[]' '{file.name}' > lines.jsonl",
        file=file.name,
    )


def _look_at_parquet(
    space: Workspace, file: SourceFile, packed: Compression, known: Sequence[RecordedColumn]
) -> Looked:
    if packed:
        raise NotSupportedError(f"{file.name} is Parquet inside {packed}.", "Unpack it; Parquet is packed already.")
    with duck.translated(file):
        told = space.connection.execute(
            f"DESCRIBE SELECT * FROM {duck.parquet(duck.reachable(file.path, space.folder))}"
        ).fetchall()
    fields, types = [row[0] for row in told], [str(row[1]) for row in told]
    names = _recorded_names(fields, known)
    spark_types = tuple(spark_type(type) for type in types)
    plan = FilePlan(file, "parquet", "", Dialect(), tuple(fields), tuple(names), spark_types)
    notes = [
        f"{name}: {type} becomes {spark}."
        for name, type, spark in zip(names, types, spark_types, strict=True)
        if type == "TIMESTAMP_NS" or (spark == "string" and type != "VARCHAR" and not is_nested(type))
    ]
    return Looked(plan, whole=True, notes=tuple(notes))


def _recorded_names(headers: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """The columns' names: those of the table where a header or its clean name is known there, whatever its case."""
    by_header = {column.header.strip().casefold(): column.name for column in known if column.header}
    clean = clean_names(headers)
    told = [by_header.get(header.strip().casefold(), name) for header, name in zip(headers, clean, strict=True)]
    return told if len(set(told)) == len(told) else clean


def _positional(fields: Sequence[str], known: Sequence[RecordedColumn]) -> list[str]:
    """Without a header, the table's columns in their order, if there are as many."""
    return [column.name for column in known] if len(known) == len(fields) else clean_names(fields)
