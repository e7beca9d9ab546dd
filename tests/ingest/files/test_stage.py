"""Staged files have every row of the source, typed, in order, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from lakehouse.core.errors import JsonArrayError
from lakehouse.ingest.files import (
    RecordedColumn,
    StageOptions,
    discover,
    plan_files,
    stage_files,
)

from .conftest import SMALL, read_back, read_paths

Reader = Callable[..., Any]


def test_staging_leaves_nothing_but_the_staged_file(read: Reader, tmp_path: Path) -> None:
    read("a,b\n1,2\n")
    assert [path.name for path in (tmp_path / "staged").iterdir()] == ["00000.parquet"]


def test_rows_keep_their_order_and_get_their_number(read: Reader) -> None:
    text = "a,b\n" + "".join(f"{number},x\n" for number in range(300_000))
    result = read(text, options=StageOptions(400 << 20, 2, with_line=True))
    assert result.rows == [(number, "x", number + 1) for number in range(300_000)]


@pytest.mark.slow
def test_ten_thousand_columns_are_read(read: Reader) -> None:
    headers = ",".join(f"Column {number}" for number in range(10_000))
    result = read(f"{headers}\n" + (",".join(["1"] * 9_999) + ",x\n") * 3)
    assert len(result.types) == 10_000
    assert result.types["column_0"] == "bigint"
    assert result.rows == [(*[1] * 9_999, "x")] * 3


@pytest.mark.parametrize("size", [1_000_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
def test_huge_cells_are_read(read: Reader, size: int) -> None:
    wide, long = "x" * size, "y\n" * (size // 2)
    result = read(f'id,text\n1,{wide}\n2,"{long}"\n3,z\n')
    assert result.rows == [(1, wide), (2, long), (3, "z")]
    assert result.rejects == []


def test_a_huge_cell_that_comes_late_is_read(read: Reader) -> None:
    result = read("id,text\n" + "1,x\n" * 300_000 + f"2,{'y' * 3_000_000}\n")
    assert result.values("text")[-1] == "y" * 3_000_000
    assert result.rejects == []


@pytest.mark.slow
def test_a_file_of_ten_times_the_memory_is_staged(tmp_path: Path) -> None:
    block = "".join(f"{at},{at * 7919 % 100_003},some text to fill line {at}\n" * 10 for at in range(2_000)) * 20
    with open(tmp_path / "big.csv", "w") as out:
        out.write("id,n,text\n")
        for _ in range(20):
            out.write(block)
    limit = (tmp_path / "big.csv").stat().st_size // 10
    plan = plan_files(discover([str(tmp_path / "big.csv")]))
    staged = stage_files(plan, tmp_path / "staged", StageOptions(memory_limit=limit, threads=2))
    assert staged.rows == 20 * 400_000


@pytest.mark.slow
def test_rows_inside_a_quoted_value_are_not_taken_for_rows(read: Reader) -> None:
    # DuckDB's threads start in the middle of the file, where each line of the long value looks like a row.
    value = "\n".join(["7,plain"] * 100_000)
    text = "a,b\n" + "".join(f'{number},"{value}"\n' for number in range(30))
    result = read(text)
    assert result.rows == [(number, value) for number in range(30)]
    assert result.rejects == []


def test_files_of_one_plan_share_their_types_and_columns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ID,Name\n1,a\n")
    (tmp_path / "2.csv").write_text("name;id;extra\nb;2.5;x\n")
    (tmp_path / "3.jsonl").write_text('{"id": 3, "extra": {"k": [1]}}\n')
    pyarrow.parquet.write_table(pyarrow.table({"Id": pyarrow.array([4], "int32")}), tmp_path / "4.parquet")
    result = read_paths([tmp_path / name for name in ("1.csv", "2.csv", "3.jsonl", "4.parquet")], tmp_path / "staged")
    assert result.types == {"id": "double", "name": "string", "extra": "string"}
    assert result.rows == [(1.0, "a", None), (2.5, "b", "x"), (3.0, None, '{"k":[1]}'), (4.0, None, None)]
    assert result.rejects == []


def test_a_late_value_in_the_second_file_changes_the_type_in_the_first(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("v,w\n1.50,1\n")
    (tmp_path / "2.csv").write_text("v,w\n" + "1,1\n" * 40_000 + "oops,2\n")
    result = read_paths([tmp_path / "1.csv", tmp_path / "2.csv"], tmp_path / "staged")
    assert result.rows[0] == ("1.50", 1)
    assert result.rows[-1] == ("oops", 2)


def test_a_name_that_looks_like_a_pattern_is_read(read: Reader) -> None:
    assert read("a,b\n1,2\n", "x[1]*.csv").rows == [(1, 2)]


def test_a_whole_plan_says_at_once_what_staging_finds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v,w\n" + "1,\n" * 40_000 + "x,5\n")
    plan = plan_files(discover([str(tmp_path / "a.csv")]), whole=True)
    assert plan.confirmed
    assert [column.type for column in plan.columns] == ["string", "bigint"]
    assert [column.type for column in stage_files(plan, tmp_path / "staged", SMALL).plan.columns] == [
        "string",
        "bigint",
    ]


JSON_ROWS = [
    {"id": 1, "zip": "007", "n": "5", "at": "2024-01-01T10:00:00", "ok": True, "tags": ["a", 1], "x.y": None},
    {"id": 2, "zip": "", "n": 6, "at": None, "ok": False, "x.y": 'q"z'},
    {"id": 12345678901234567890123, "zip": "NA", 'o"dd/~': 1.5},
]


def test_json_strings_stay_strings(read: Reader) -> None:
    result = read("\n".join(json.dumps(row) for row in JSON_ROWS), "a.jsonl")
    assert result.types == {
        "id": "decimal(38,0)",
        "zip": "string",
        "n": "string",
        "at": "timestamp_ntz",
        "ok": "boolean",
        "tags": "array<string>",
        "x_y": "string",
        "o_dd": "double",
    }
    assert result.rows == [
        (Decimal(1), "007", "5", datetime(2024, 1, 1, 10), True, ["a", "1"], None, None),
        (Decimal(2), "", "6", None, False, None, 'q"z', None),
        (Decimal("12345678901234567890123"), "NA", None, None, None, None, None, 1.5),
    ]


def test_a_key_that_comes_late_is_a_column(read: Reader) -> None:
    result = read('{"a": 1}\n' * 50_000 + '{"b": 2}\n', "a.jsonl")
    assert result.types == {"a": "bigint", "b": "bigint"}
    assert result.rows[-1] == (None, 2)


def test_lines_that_are_no_object_are_rejected_with_their_line(read: Reader) -> None:
    result = read('{"a": 1}\n\n{"a": \n[1]\n{"a": 2}\n', "a.jsonl")
    assert result.rows == [(1,), (2,)]
    assert [(reject.line, reject.raw) for reject in result.rejects] == [(3, '{"a": '), (4, "[1]")]


def test_parquet_keeps_its_types_where_spark_has_them(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "Small": pyarrow.array([1], "int16"),
            "Big Unsigned": pyarrow.array([2**64 - 1], "uint64"),
            "nanos": pyarrow.array([1_700_000_000_123_456_789], pyarrow.timestamp("ns")),
            "list": pyarrow.array([[1, 2]]),
            "money": pyarrow.array([Decimal("1.25")], pyarrow.decimal128(10, 2)),
            "day": pyarrow.array([date(2024, 1, 1)]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    result = read_paths([tmp_path / "a.parquet"], tmp_path / "staged")
    assert result.types == {
        "small": "smallint",
        "big_unsigned": "decimal(20,0)",
        "nanos": "timestamp_ntz",
        "list": "array<bigint>",
        "money": "decimal(10,2)",
        "day": "date",
    }
    nanos = datetime(2023, 11, 14, 22, 13, 20, 123456)
    assert result.rows == [(1, Decimal(2**64 - 1), nanos, [1, 2], Decimal("1.25"), date(2024, 1, 1))]
    assert "TIMESTAMP_NS" in result.plan.notes[0]


NESTED_LINES = """{"id": 1, "Kunde": {"Name": "Ann", "größe": 1.7}, "items": [{"sku": "a", "n": 1}, {"sku": "b"}], "mixed": {"a": 1}}
{"id": 2, "Kunde": null, "items": [], "mixed": "text"}
{"id": 3, "Kunde": {"Name": "Bob", "ort": {"plz": "0815"}}, "mixed": [1]}
"""


def test_nested_json_is_kept_as_structs_and_lists(read: Reader) -> None:
    result = read(NESTED_LINES, "a.jsonl")
    assert result.types == {
        "id": "bigint",
        "kunde": "struct<name:string,größe:double,ort:struct<plz:string>>",
        "items": "array<struct<sku:string,n:bigint>>",
        "mixed": "string",
    }
    assert result.values("kunde") == [
        {"name": "Ann", "größe": 1.7, "ort": None},
        None,
        {"name": "Bob", "größe": None, "ort": {"plz": "0815"}},
    ]
    assert result.values("items") == [[{"sku": "a", "n": 1}, {"sku": "b", "n": None}], [], None]
    assert result.values("mixed") == ['{"a":1}', "text", "[1]"]
    assert result.rejects == []


def test_one_long_object_over_several_lines_is_read_and_damaged_lines_are_not_taken_for_one(read: Reader) -> None:
    features = ",\n".join(json.dumps({"type": "Feature", "at": [number, 0.5]}) for number in range(3_000))
    collection = f'{{"type":"FeatureCollection","features":[{features}]}}\n'
    result = read(collection, "a.json")
    assert result.types == {"type": "string", "features": "array<struct<type:string,at:array<double>>>"}
    ((kind, read_features),) = result.rows
    assert (kind, len(read_features), read_features[-1]["at"]) == ("FeatureCollection", 3_000, [2_999, 0.5])
    with pytest.raises(JsonArrayError, match="no JSON object"):
        read(collection[:-6], "a.json")


def test_flatten_unpacks_structs_and_leaves_lists(read: Reader) -> None:
    result = read(NESTED_LINES, "a.jsonl", flatten=True)
    assert result.types == {
        "id": "bigint",
        "kunde_name": "string",
        "kunde_größe": "double",
        "kunde_ort_plz": "string",
        "items": "array<struct<sku:string,n:bigint>>",
        "mixed": "string",
    }
    assert [row[:4] for row in result.rows] == [(1, "Ann", 1.7, None), (2, None, None, None), (3, "Bob", None, "0815")]


def test_a_number_in_a_struct_beyond_its_type_rejects_its_row(read: Reader) -> None:
    result = read('{"a": {"n": 1}}\n{"a": {"n": 18446744073709551615}}\n', "a.jsonl")
    assert result.rows == [({"n": 1},)]
    assert [reject.line for reject in result.rejects] == [2]


def test_an_object_with_very_many_keys_stays_text(read: Reader) -> None:
    wide = json.dumps({"d": {f"k{number}": number for number in range(201)}})
    assert read(wide, "a.jsonl").types == {"d": "string"}


@pytest.mark.parametrize(
    ("recorded", "widen", "rows", "types"),
    [
        ("struct<n:bigint>", False, [{"n": 1}], "struct<n:bigint>"),
        ("struct<n:bigint>", True, [{"n": 1.0, "m": None}, {"n": 2.5, "m": None}, {"n": 3.0, "m": "x"}], None),
        (
            "struct<n:double,m:string>",
            False,
            [{"n": 1.0, "m": None}, {"n": 2.5, "m": None}, {"n": 3.0, "m": "x"}],
            None,
        ),
        ("string", False, ['{"n":1}', '{"n":2.5}', '{"n":3,"m":"x"}'], "string"),
    ],
    ids=["no fraction and no field is lost", "the type widens", "everything fits", "a table that has it as text"],
)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_nested_values_follow_the_recorded_type(
    tmp_path: Path, recorded: str, widen: bool, rows: list[Any], types: str | None, kind: str
) -> None:
    values = [{"n": 1}, {"n": 2.5}, {"n": 3, "m": "x"}]
    if kind == "jsonl":
        (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"a": value}) for value in values))
    else:
        kinds = pyarrow.struct([("n", pyarrow.float64()), ("m", pyarrow.string())])
        pyarrow.parquet.write_table(pyarrow.table({"a": pyarrow.array(values, kinds)}), tmp_path / "a.parquet")
        if recorded == "string":
            rows = ['{"n":1.0,"m":null}', '{"n":2.5,"m":null}', '{"n":3.0,"m":"x"}']
    result = read_paths(
        [tmp_path / f"a.{kind}"], tmp_path / "staged", recorded=[RecordedColumn("a", recorded)], widen=widen
    )
    assert result.values("a") == rows
    assert result.types["a"] == (types or "struct<n:double,m:string>")
    assert len(result.rejects) == 3 - len(rows)


def test_a_parquet_file_widens_a_recorded_type_and_loses_no_digit(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"n": [1.0, 2.5]}), tmp_path / "a.parquet")
    recorded = [RecordedColumn("n", "bigint")]
    widened = read_paths([tmp_path / "a.parquet"], tmp_path / "wide", recorded=recorded, widen=True)
    assert (widened.types, widened.rows) == ({"n": "double"}, [(1.0,), (2.5,)])
    fixed = read_paths([tmp_path / "a.parquet"], tmp_path / "fixed", recorded=recorded)
    assert (fixed.rows, len(fixed.rejects)) == ([(1,)], 1)


def test_nested_parquet_gets_clean_names_and_types_that_spark_has(tmp_path: Path) -> None:
    kind = pyarrow.struct([("Größe X", pyarrow.uint8()), ("at", pyarrow.timestamp("ns"))])
    table = pyarrow.table(
        {
            "S": pyarrow.array([{"Größe X": 7, "at": None}, None], kind),
            "L": pyarrow.array([[{"Größe X": 1, "at": None}, None], []], pyarrow.list_(kind)),
            "M": pyarrow.array([[("k", {"Größe X": 2, "at": None})], None], pyarrow.map_(pyarrow.string(), kind)),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    result = read_paths([tmp_path / "a.parquet"], tmp_path / "staged")
    inner = "struct<größe_x:smallint,at:timestamp_ntz>"
    assert result.types == {"s": inner, "l": f"array<{inner}>", "m": f"map<string,{inner}>"}
    assert result.rows == [
        (
            {"größe_x": 7, "at": None},
            [{"größe_x": 1, "at": None}, None],
            [("k", {"größe_x": 2, "at": None})],
        ),
        (None, [], None),
    ]
    flat = read_paths([tmp_path / "a.parquet"], tmp_path / "flat", flatten=True)
    assert flat.types == {
        "s_größe_x": "smallint",
        "s_at": "timestamp_ntz",
        "l": f"array<{inner}>",
        "m": f"map<string,{inner}>",
    }
    assert [row[0] for row in flat.rows] == [7, None]


RECORDED = [
    RecordedColumn("id", "bigint", "ID"),
    RecordedColumn("amount", "double", "Amount €"),
    RecordedColumn("day", "date", "Day"),
    RecordedColumn("gone", "string", "Gone"),
]


def test_a_later_file_is_read_by_the_recorded_columns(read: Reader) -> None:
    result = read("day,AMOUNT €,id,Extra\n31/12/2024,5,1,x\n2024-01-02,1.1234567890123456789,2,y\n", recorded=RECORDED)
    assert result.types == {"id": "bigint", "amount": "double", "day": "date", "gone": "string", "extra": "string"}
    assert result.rows == [(2, 1.1234567890123457, date(2024, 1, 2), None, "y")]
    assert [column.name for column in result.plan.columns if column.new] == ["extra"]
    assert [column.name for column in result.plan.columns if column.missing] == ["gone"]
    assert result.rejects[0].reason == "day: '31/12/2024' is not a valid date"


def test_a_recorded_date_may_come_in_the_local_order(read: Reader) -> None:
    result = read("id,day\n1,31/12/2024\n2,01/02/2024\n", recorded=RECORDED)
    assert result.values("day") == [date(2024, 12, 31), date(2024, 2, 1)]
    kept = [RecordedColumn("day", "date", "day", "%d/%m/%Y")]
    assert read("day,x\n01/02/2024,1\n2024-03-04,2\n", recorded=kept).values("day") == [
        date(2024, 2, 1),
        date(2024, 3, 4),
    ]


def test_a_file_without_header_takes_the_recorded_names(read: Reader) -> None:
    recorded = [RecordedColumn("id", "bigint"), RecordedColumn("name", "string")]
    assert read("1,ann\n2,bob\n", recorded=recorded).types == {"id": "bigint", "name": "string"}


def test_values_that_do_not_fit_a_recorded_type_are_rejected_rows(read: Reader) -> None:
    text = 'id,amount\n1,5\n2,"a\nb"\n\n007,1\n3\n4,x\n5,6\n'
    result = read(text, recorded=RECORDED[:2])
    assert result.values("id") == [1, 5]
    assert {(reject.line, reject.reason, reject.raw) for reject in result.rejects} == {
        (3, "amount: 'a\nb' is not a valid double", '2,"a\nb"'),
        (6, "id: '007' is not a valid bigint", "007,1"),
        (7, "has 1 field instead of 2", "3"),
        (8, "amount: 'x' is not a valid double", "4,x"),
    }


def test_recorded_types_widen_if_they_may(read: Reader) -> None:
    recorded = [RecordedColumn("a", "bigint"), RecordedColumn("b", "date"), RecordedColumn("c", "string")]
    result = read("a,b,c\n1.5,x,5\n2,2024-01-01,6\n", recorded=recorded, widen=True)
    assert result.types == {"a": "double", "b": "string", "c": "string"}
    assert result.rows == [(1.5, "x", "5"), (2.0, "2024-01-01", "6")]
    assert [column.recorded for column in result.plan.columns] == ["bigint", "date", "string"]


def test_recorded_types_stay_if_everything_fits(read: Reader) -> None:
    recorded = [RecordedColumn("a", "bigint"), RecordedColumn("b", "double"), RecordedColumn("c", "int")]
    assert read("a,b,c\n1,2,3\n,,\n", recorded=recorded, widen=True).types == {"a": "bigint", "b": "double", "c": "int"}


def test_parquet_values_that_do_not_fit_are_rejected_too(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": ["1", "x"], "n": [1, 2]}), tmp_path / "a.parquet")
    result = read_paths([tmp_path / "a.parquet"], tmp_path / "staged", recorded=[RecordedColumn("id", "bigint")])
    assert result.rows == [(1, 1)]
    assert (result.rejects[0].line, result.rejects[0].reason) == (2, "id: 'x' is not a valid bigint")
    assert read_back(result.staged) == result.rows
