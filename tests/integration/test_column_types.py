"""Every column type in both formats: created, appended to, upserted, evolved, read, compared, exported, verified, backed up."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, TimeType, UUIDType
from tests.support.ingest_fixture import IngestFixture, both_formats, counts
from tests.support.small_lake import opened

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.engines.duckdb.types import SPARK_TYPES
from lakehouse.lake import Lake
from lakehouse.lake.backend import open_backend
from lakehouse.lake.copies import restore_lake

pytestmark = pytest.mark.spark

Row = dict[str, Any]


@dataclass(frozen=True)
class Wider:
    """A type that takes the values of a column and more."""

    arrow: Any
    spark: str
    value: Any
    in_hudi: bool = True
    """Whether a Hudi table can change to it; otherwise the ingest is refused."""


@dataclass(frozen=True)
class ColumnType:
    """A column: its Arrow type in a Parquet file, its type in the table, and two values."""

    arrow: Any
    spark: str
    first: Any
    second: Any = None
    wider: Wider | None = None
    stored: Any = None
    """The first value as the table has it, if that is not the same."""


_PART = pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.list_(pyarrow.string()))])
_WIDE_PART = pyarrow.struct([("a", pyarrow.int64()), ("b", pyarrow.list_(pyarrow.string())), ("c", pyarrow.date32())])
_WIDE_PART_SPARK = "struct<a:bigint,b:array<string>,c:date>"
_WIDE_VALUE = {"a": 2**40, "b": None, "c": date(2026, 1, 14)}

#: Every type that a column can have: a type that is not listed is not tested, see `test_every_type_of_parquet_is_listed`.
TYPES: dict[str, ColumnType] = {
    "nothing": ColumnType(pyarrow.null(), "int", None),
    "flag": ColumnType(pyarrow.bool_(), "boolean", True),
    "i8": ColumnType(pyarrow.int8(), "int", -(2**7), 5),
    "i16": ColumnType(pyarrow.int16(), "int", -(2**15), 5),
    "i32": ColumnType(pyarrow.int32(), "int", -(2**31), 5, Wider(pyarrow.int64(), "bigint", 2**40)),
    "i64": ColumnType(pyarrow.int64(), "bigint", 2**63 - 1, -5),
    "u8": ColumnType(pyarrow.uint8(), "int", 2**8 - 1, 5),
    "u16": ColumnType(pyarrow.uint16(), "int", 2**16 - 1, 5),
    "u32": ColumnType(pyarrow.uint32(), "bigint", 2**32 - 1, 5),
    "u64": ColumnType(pyarrow.uint64(), "decimal(20,0)", 2**64 - 1, stored=Decimal(2**64 - 1)),
    "f16": ColumnType(pyarrow.float16(), "float", 0.5),
    "f32": ColumnType(pyarrow.float32(), "float", 0.5, -0.25, Wider(pyarrow.float64(), "double", 1e300)),
    "f64": ColumnType(pyarrow.float64(), "double", 1e300, -0.25),
    "small": ColumnType(
        pyarrow.decimal128(9, 2),
        "decimal(9,2)",
        Decimal("-1234567.89"),
        wider=Wider(pyarrow.decimal128(20, 2), "decimal(38,2)", Decimal("123456789012345678.25"), in_hudi=False),
    ),
    "money": ColumnType(
        pyarrow.decimal128(38, 10), "decimal(38,10)", Decimal("-1234567890123456789012345678.0123456789")
    ),
    "dec32": ColumnType(pyarrow.decimal32(5, 2), "decimal(5,2)", Decimal("-123.45")),
    "dec64": ColumnType(pyarrow.decimal64(12, 2), "decimal(12,2)", Decimal("-123.45")),
    "dec256": ColumnType(pyarrow.decimal256(38, 2), "decimal(38,2)", Decimal("-123.45")),
    "text": ColumnType(pyarrow.string(), "string", "日本 'x' \N{PILE OF POO}", ""),
    "long_text": ColumnType(pyarrow.large_string(), "string", "y"),
    "view_text": ColumnType(pyarrow.string_view(), "string", "z"),
    "words": ColumnType(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), "string", "red", "blue"),
    "raw": ColumnType(pyarrow.binary(), "binary", b"\x00\xff", b""),
    "long_raw": ColumnType(pyarrow.large_binary(), "binary", b"\x01"),
    "view_raw": ColumnType(pyarrow.binary_view(), "binary", b"\x02"),
    "fixed": ColumnType(pyarrow.binary(4), "binary", b"abcd"),
    "day": ColumnType(
        pyarrow.date32(),
        "date",
        date(1500, 2, 28),
        date(1969, 12, 31),
        Wider(pyarrow.timestamp("us"), "timestamp_ntz", datetime(2026, 1, 14, 10), in_hudi=False),
    ),
    "day64": ColumnType(pyarrow.date64(), "date", date(1, 1, 1), date(9999, 12, 31)),
    "at": ColumnType(pyarrow.timestamp("us", "UTC"), "timestamp", datetime(2026, 1, 14, 10, 0, 0, 1, UTC)),
    "old": ColumnType(pyarrow.timestamp("us", "Europe/Berlin"), "timestamp", datetime(1500, 1, 14, 10, tzinfo=UTC)),
    "local": ColumnType(pyarrow.timestamp("us"), "timestamp_ntz", datetime(1500, 1, 14, 10)),
    "fine": ColumnType(pyarrow.timestamp("ns"), "timestamp_ntz", datetime(2026, 1, 14, 10, 0, 0, 1)),
    "clock": ColumnType(pyarrow.time64("us"), "string", time(1, 2, 3), stored="01:02:03"),
    "alarm": ColumnType(pyarrow.time32("ms"), "string", time(1, 2, 3), stored="01:02:03"),
    "span": ColumnType(pyarrow.duration("us"), "bigint", timedelta(seconds=5), stored=5_000_000),
    "code": ColumnType(pyarrow.uuid(), "string", uuid.UUID(int=5).bytes, stored=str(uuid.UUID(int=5))),
    "part": ColumnType(
        _PART,
        "struct<a:int,b:array<string>>",
        {"a": 1, "b": ["x", None]},
        wider=Wider(_WIDE_PART, _WIDE_PART_SPARK, _WIDE_VALUE),
    ),
    "single": ColumnType(
        pyarrow.list_(pyarrow.struct([("a", pyarrow.int32())])), "array<struct<a:int>>", [{"a": 1}, {"a": None}, None]
    ),
    "ints": ColumnType(
        pyarrow.list_(pyarrow.int32()),
        "array<int>",
        [1, None],
        [],
        Wider(pyarrow.list_(pyarrow.int64()), "array<bigint>", [2**40]),
    ),
    "long_list": ColumnType(pyarrow.large_list(pyarrow.int64()), "array<bigint>", [1, None], []),
    "view_list": ColumnType(pyarrow.list_view(pyarrow.int64()), "array<bigint>", [1, None], []),
    "long_view_list": ColumnType(pyarrow.large_list_view(pyarrow.int64()), "array<bigint>", [1, None], []),
    "pair": ColumnType(pyarrow.list_(pyarrow.int64(), 2), "array<bigint>", [1, 2]),
    "grid": ColumnType(
        pyarrow.list_(pyarrow.list_(pyarrow.float64())), "array<array<double>>", [[0.5, None], [], None], []
    ),
    "many": ColumnType(
        pyarrow.list_(_PART),
        "array<struct<a:int,b:array<string>>>",
        [{"a": None, "b": []}, None],
        [],
        Wider(pyarrow.list_(_WIDE_PART), f"array<{_WIDE_PART_SPARK}>", [_WIDE_VALUE]),
    ),
    "pairs": ColumnType(
        pyarrow.map_(pyarrow.string(), pyarrow.int32()),
        "map<string,int>",
        {"k": 7, "l": None},
        {},
        Wider(pyarrow.map_(pyarrow.string(), pyarrow.int64()), "map<string,bigint>", {"k": 2**40}),
    ),
}
#: Arrow's types that Parquet has no place for.
NOT_IN_PARQUET = {"INTERVAL_MONTHS", "INTERVAL_DAY_TIME", "INTERVAL_MONTH_DAY_NANO", "RUN_END_ENCODED"} | {
    "SPARSE_UNION",
    "DENSE_UNION",
}


def write(path: Path, rows: Sequence[Row], kinds: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {name: _array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def _array(values: list[Any], kind: Any) -> Any:
    if isinstance(kind, pyarrow.BaseExtensionType):
        return pyarrow.ExtensionArray.from_storage(kind, pyarrow.array(values, kind.storage_type))
    if pyarrow.types.is_map(kind):
        values = [None if value is None else list(value.items()) for value in values]
    if pyarrow.types.is_float16(kind):
        return pyarrow.array(values, pyarrow.float32()).cast(kind)
    return pyarrow.array(values, kind)


def rows_of(lake: Lake, table: str, engine: str) -> list[tuple[Any, ...]]:
    return lake.sql(f"SELECT * FROM {table} ORDER BY id", engine=engine).rows()


ARROW = {"id": pyarrow.int64()} | {name: kind.arrow for name, kind in TYPES.items()}
SPARK = {"id": "bigint"} | {name: kind.spark for name, kind in TYPES.items()}
FIRST = {"id": 1} | {name: kind.first for name, kind in TYPES.items()}
SECOND = {"id": 2} | {name: kind.second for name, kind in TYPES.items()}
STORED = {"id": 1} | {name: kind.first if kind.stored is None else kind.stored for name, kind in TYPES.items()}


def test_every_type_of_arrow_and_of_an_ingest_is_listed() -> None:
    ids = {
        getattr(pyarrow.lib, name): name.removeprefix("Type_") for name in dir(pyarrow.lib) if name.startswith("Type_")
    }
    listed = {ids[kind.arrow.id] for kind in TYPES.values() if kind.arrow.id in ids}
    assert set(ids.values()) - listed == NOT_IN_PARQUET
    heads = {re.split(r"[<(]", kind.spark)[0] for kind in TYPES.values()}
    assert heads >= {kind.partition("(")[0] for kind in SPARK_TYPES.values()} - {"smallint"}, "Parquet's small integers"
    assert heads >= {"array", "map", "struct", "boolean", "double", "float", "date"}


@both_formats
def test_every_type_survives_every_command(
    fixture: IngestFixture, table_format: str, shared_settings: Settings, tmp_path: Path
) -> None:
    lake, table = fixture.lake, fixture.table
    lake.ingest(write(tmp_path / "1.parquet", [FIRST, SECOND], ARROW), into=table, key=("id",), format=table_format)
    assert fixture.types() == SPARK
    added = lake.ingest(write(tmp_path / "2.parquet", [{**FIRST, "id": 3}], ARROW), into=table, mode="append")
    assert added.inserted == 1

    extended = ARROW | {"extra": pyarrow.string()}
    rows = [{**FIRST, "extra": None}, {**FIRST, "id": 2, "extra": "e"}]
    report = lake.ingest(write(tmp_path / "3.parquet", rows, extended), into=table)
    assert (counts(report), report.changes) == ((2, 0, 1, 1, 0), ("column added: extra string",))
    expected = [
        tuple({**STORED, "id": number, "extra": text}.values()) for number, text in ((1, None), (2, "e"), (3, None))
    ]
    for engine in ("duckdb", "spark"):
        assert rows_of(lake, table, engine) == expected, engine
    again = lake.ingest(write(tmp_path / "4.parquet", rows, extended), into=table, force=True)
    assert (again.updated, again.unchanged) == (0, 2)

    snapshots = [snapshot.id for snapshot in lake.history(table)]
    assert lake.diff(table, snapshots[1], snapshots[2]).changed == 1
    check_widening(fixture, table_format, expected, tmp_path)
    expected = rows_of(lake, table, "duckdb")
    assert lake.export(table, tmp_path / "out.parquet") == len(expected)
    exported = duckdb.sql(f"SET TimeZone = 'UTC'; SELECT * FROM '{tmp_path / 'out.parquet'}' ORDER BY id").fetchall()
    assert exported == expected
    assert lake.verify(table, deep=True).damage == []
    check_backup(lake, table, shared_settings, tmp_path, expected)


def check_widening(fixture: IngestFixture, table_format: str, before: list[tuple[Any, ...]], folder: Path) -> None:
    """Every column with a wider type gets it and keeps its values, or the ingest is refused and changes nothing."""
    lake, table = fixture.lake, fixture.table
    wider = {name: kind.wider for name, kind in TYPES.items() if kind.wider}
    for name, kind in list(wider.items()):
        if table_format == "hudi" and not kind.in_hudi:
            file = write(
                folder / f"{name}.parquet", [{"id": 4, name: kind.value}], {"id": pyarrow.int64(), name: kind.arrow}
            )
            with pytest.raises(NotSupportedError, match=rf"{name} {re.escape(TYPES[name].spark)} -> ") as refused:
                lake.ingest(file, into=table)
            assert "Iceberg" in str(refused.value.hint)
            assert rows_of(lake, table, "duckdb") == before
            del wider[name]
    row = {"id": 4} | {name: kind.value for name, kind in wider.items()}
    file = write(
        folder / "wide.parquet", [row], {"id": pyarrow.int64()} | {name: kind.arrow for name, kind in wider.items()}
    )
    assert lake.ingest(file, into=table).inserted == 1
    assert fixture.types() == SPARK | {name: kind.spark for name, kind in wider.items()} | {"extra": "string"}
    after = rows_of(lake, table, "duckdb")
    assert after == rows_of(lake, table, "spark")
    names = [*SPARK, "extra"]
    assert dict(zip(names, after[3], strict=True)) == dict.fromkeys(names) | row
    unchanged = [place for place, name in enumerate(names) if name not in wider or "struct" not in SPARK[name]]
    for old, new in zip(before, after[:3], strict=True):
        assert [_without_time(new[place]) for place in unchanged] == [_without_time(old[place]) for place in unchanged]


def _without_time(value: Any) -> Any:
    """A date, also of what became midnight of that day."""
    return value.date() if isinstance(value, datetime) and value.tzinfo is None else value


def check_backup(lake: Lake, table: str, settings: Settings, folder: Path, expected: list[tuple[Any, ...]]) -> None:
    """The table is the same after a backup of a lake with it alone, and a restore."""
    name = TableName.parse(table)
    with opened(folder / "lake") as small:
        if lake.describe(table).format == "hudi":
            copied = small.home / "warehouse" / name.namespace / name.table
            shutil.copytree(local_path(lake.describe(table).location), copied)
        else:
            pointer = str(open_backend(settings).catalog.pointers([name])[name])
            small.catalog.load_state(CatalogState((TableEntry(name, pointer),), {name.namespace: {}}))
        small.lake.backup(folder / "backups")
    restore_lake(load_settings({"home": folder / "own"}, folder=folder, environ={}), folder / "backups")
    with opened(folder / "own") as own:
        assert rows_of(own.lake, table, "duckdb") == expected
        assert not own.lake.verify(deep=True).damage


def test_a_decimal_with_too_many_digits_is_refused(fixture: IngestFixture, tmp_path: Path) -> None:
    wide = write(
        tmp_path / "wide.parquet", [{"id": 1, "x": None}], {"id": pyarrow.int64(), "x": pyarrow.decimal256(50, 2)}
    )
    with pytest.raises(NotSupportedError, match=r"wide\.parquet: x is a decimal\(50,2\), .* at most 38 digits"):
        fixture.lake.ingest(wide, into=fixture.table)
    assert not fixture.exists()


#: Types of Iceberg that other programs write: what Spark calls them, and what an ingest finds afterwards.
FOREIGN = {
    "code": (UUIDType(), pyarrow.uuid(), "string", uuid.UUID(int=5).bytes, str(uuid.UUID(int=5))),
    "raw": (FixedType(4), pyarrow.binary(4), "binary", b"abcd", b"abcd"),
}


def test_a_table_of_another_program_keeps_its_types(
    fixture: IngestFixture, shared_settings: Settings, tmp_path: Path
) -> None:
    catalog = open_backend(shared_settings).catalog
    name = TableName.parse(fixture.table)
    catalog.ensure_namespace(name.namespace)
    fields = [NestedField(n, name, FOREIGN[name][0]) for n, name in enumerate(FOREIGN, start=2)]
    with load_catalog(catalog.name, **catalog.pyiceberg_properties()) as writer:
        writer.create_table(fixture.table, Schema(NestedField(1, "id", LongType()), *fields))
        assert fixture.types() == {"id": "bigint"} | {name: kind[2] for name, kind in FOREIGN.items()}
        arrow = {"id": pyarrow.int64()} | {name: kind[1] for name, kind in FOREIGN.items()}
        rows = [{"id": n} | {name: kind[3] for name, kind in FOREIGN.items()} for n in (1, 2)]
        fixture.lake.ingest(write(tmp_path / "1.parquet", rows[:1], arrow), into=fixture.table)
        report = fixture.lake.ingest(write(tmp_path / "2.parquet", rows, arrow), into=fixture.table, key=("id",))
        assert counts(report) == (2, 1, 0, 1, 0)
        schema = writer.load_table(fixture.table).schema()
        assert [schema.find_type(name) for name in FOREIGN] == [kind[0] for kind in FOREIGN.values()]
    for engine in ("duckdb", "spark"):
        values = [tuple(map(_text_of_uuid, row[1:])) for row in rows_of(fixture.lake, fixture.table, engine)]
        assert values == [tuple(kind[4] for kind in FOREIGN.values())] * 2


def _text_of_uuid(value: Any) -> Any:
    return str(value) if isinstance(value, uuid.UUID) else value


def test_a_time_of_another_program_is_not_written_and_ends_no_other_command(tmp_path: Path) -> None:
    with opened(tmp_path / "lake") as small:
        small.catalog.ensure_namespace("n")
        clock = small.writer().create_table(
            "n.clock", Schema(NestedField(1, "id", LongType()), NestedField(2, "x", TimeType()))
        )
        row = {"id": 1, "x": time(1, 2, 3)}
        file = write(tmp_path / "clock.parquet", [row], {"id": pyarrow.int64(), "x": pyarrow.time64("us")})
        clock.append(pyarrow.parquet.read_table(file))
        with pytest.raises(NotSupportedError, match=r"n\.clock has the column x of the type time"):
            small.lake.ingest(file, into="n.clock")
        assert small.lake.export("n.clock", tmp_path / "out.parquet") == 1
        assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist() == [row]
        assert not small.lake.verify(deep=True).findings
