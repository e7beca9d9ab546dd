"""Results: rows for people, Arrow for programs, HTML for notebooks."""

from __future__ import annotations

import pyarrow

from lakehouse.core.result import MAX_ROWS_SHOWN, ArrowRows, Explain, ListedRows, Result, Row, html_table
from lakehouse.core.tables import Column

COLUMNS = (Column("id", "int"), Column("name", "string"))
HOW = Explain("duckdb", "asked for")


def listed(rows: list[Row]) -> Result:
    return Result(COLUMNS, ListedRows(["id", "name"], rows), HOW)


def test_rows_come_as_tuples_dicts_and_arrow() -> None:
    result = listed([(1, "a"), (2, None)])
    assert result.rows() == list(result) == [(1, "a"), (2, None)]
    assert result.dicts() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert result.to_arrow().to_pylist() == result.dicts()
    assert len(result) == 2
    assert result.engine == "duckdb"
    assert result.to_pandas().shape == (2, 2)
    assert result.to_polars().rows() == [(1, "a"), (2, None)]


def test_arrow_becomes_rows() -> None:
    table = pyarrow.table({"id": [1, 2], "name": ["a", None]})
    result = Result(COLUMNS, ArrowRows(table), HOW)
    assert result.rows() == [(1, "a"), (2, None)]
    assert result.to_arrow() is table


def test_a_map_is_a_dict_wherever_it_is_and_pairs_if_no_dict_holds_it() -> None:
    import duckdb

    kind = pyarrow.map_(pyarrow.string(), pyarrow.int64())
    table = pyarrow.table({"m": pyarrow.array([[("a", 1)], [], None], kind)})
    table = table.append_column("l", pyarrow.array([[[("b", 2)]], None, []], pyarrow.list_(kind)))
    rows = Result(COLUMNS, ArrowRows(table), HOW).rows()
    assert rows == [({"a": 1}, [{"b": 2}]), ({}, None), (None, [])]
    assert rows[0] == duckdb.sql("select map {'a': 1}, [map {'b': 2}]").fetchall()[0]
    twice = pyarrow.table({"m": pyarrow.array([[("a", 1), ("a", 2)]], kind)})
    assert ArrowRows(twice).fetch() == [([("a", 1), ("a", 2)],)]


def test_a_result_without_rows_keeps_its_columns() -> None:
    result = listed([])
    assert result.rows() == []
    assert result.to_arrow().column_names == ["id", "name"]
    assert Result(COLUMNS, ArrowRows(result.to_arrow()), HOW).rows() == []


def test_two_columns_of_one_name_both_reach_arrow() -> None:
    rows = ListedRows(["a", "a"], [(1, 2)])
    assert rows.arrow().columns[1].to_pylist() == [2]


def test_a_notebook_gets_escaped_html() -> None:
    html = listed([(1, "<script>"), (2, None)])._repr_html_()
    assert "<th>name</th>" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "<td></td>" in html
    assert "<caption>" not in html


def test_a_notebook_gets_the_first_rows_of_many() -> None:
    html = html_table(["n"], [(number,) for number in range(MAX_ROWS_SHOWN + 1)])
    assert html.count("<td>") == MAX_ROWS_SHOWN
    assert f"{MAX_ROWS_SHOWN + 1} rows, {MAX_ROWS_SHOWN} shown" in html
