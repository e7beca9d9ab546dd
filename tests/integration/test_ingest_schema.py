"""`lake ingest` and the schema of the table: evolve, freeze and quarantine in both formats, with a real Spark."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.ingest_fixture import IngestFixture, both_formats, counts, one_format_or_both
from tests.support.repetitions import repetitions

from lakehouse.core.errors import BadRowError, ContractError, NotSupportedError

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]


def rows_in_both(fixture: IngestFixture, as_of: str = "", where: str = "") -> Rows:
    """The rows of the table, which DuckDB and Spark must read alike."""
    query = f"SELECT * FROM {fixture.table} {where} ORDER BY 1"
    rows, same = (fixture.lake.sql(query, engine=engine, as_of=as_of).rows() for engine in ("duckdb", "spark"))
    assert rows == same
    return rows


# ---- new columns ------------------------------------------------------------------------------------------------


@both_formats
def test_a_new_column_is_one_snapshot_with_its_rows(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id\n1\n2\n", "one.csv", key=("id",), format=table_format)
    report = fixture.ingest("id,The V\n2,b\n3,c\n", "two.csv")
    assert (report.changes, report.inserted, report.updated) == (("column added: the_v string",), 1, 1)
    first, second = fixture.lake.history(fixture.table)
    assert (second.id, second.notes["mode"], second.rows_total) == (report.snapshot, "upsert", 3)
    assert rows_in_both(fixture) == [(1, None), (2, "b"), (3, "c")]
    assert rows_in_both(fixture, as_of=first.id) == [(1,), (2,)]
    assert rows_in_both(fixture, where="WHERE the_v = 'c'") == [(3, "c")]
    assert [column.comment for column in fixture.lake.describe(fixture.table).columns] == ["id", "The V"]


@both_formats
def test_a_table_with_a_new_column_takes_statements_and_files_as_before(
    fixture: IngestFixture, table_format: str
) -> None:
    fixture.ingest("id\n1\n2\n", "one.csv", key=("id",), format=table_format)
    fixture.ingest("id,The V\n2,b\n", "two.csv")
    fixture.lake.sql(f"UPDATE {fixture.table} SET the_v = 'u' WHERE id = 1")
    fixture.lake.sql(f"INSERT INTO {fixture.table} VALUES (4, 'd')")
    assert fixture.ingest("id,the_v\n1,a\n4,d\n", "three.csv").updated == 1
    assert rows_in_both(fixture) == [(1, "a"), (2, "b"), (4, "d")]
    assert [column.comment for column in fixture.lake.describe(fixture.table).columns] == ["id", "The V"]


@one_format_or_both
@pytest.mark.faults
def test_a_new_column_without_a_value_is_a_snapshot_too(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id\n1\n", "one.csv", key=("id",), format=table_format)
    report = fixture.ingest("id,v\n1,\n", "two.csv")
    assert (counts(report), fixture.types()) == ((1, 0, 0, 1, 0), {"id": "bigint", "v": "string"})
    assert len(fixture.lake.history(fixture.table)) == 2
    assert rows_in_both(fixture) == [(1, None)]
    assert fixture.ingest("id,v\n1,\n", "two.csv").skipped != ()


@one_format_or_both
@pytest.mark.faults
@pytest.mark.parametrize("mode", repetitions(smoke=["replace"], full=["append", "replace"]))
def test_a_new_column_comes_with_every_mode(fixture: IngestFixture, table_format: str, mode: str) -> None:
    fixture.ingest("id\n1\n", "one.csv", format=table_format)
    fixture.ingest("id,v\n2,b\n", "two.csv", mode=mode)
    assert rows_in_both(fixture) == ([(1, None), (2, "b")] if mode == "append" else [(2, "b")])
    assert len(fixture.lake.history(fixture.table)) == 2


@both_formats
@pytest.mark.faults
@pytest.mark.parametrize(
    "values", repetitions(smoke=[("2026-01-01", "2026-01-02")], full=[("a", "b"), ("2026-01-01", "2026-01-02")])
)
def test_rows_of_a_partitioned_table_are_found_again_after_a_new_column(
    fixture: IngestFixture, table_format: str, values: tuple[str, str]
) -> None:
    west, east = values
    partitioned = {"key": ("id",), "format": table_format, "partition_by": "p"}
    fixture.ingest(f"id,p,n\n1,{west},10\n2,{east},20\n", "one.csv", **partitioned)
    fixture.ingest(f"id,p,n,v\n2,{east},21,x\n3,{west},30,y\n", "two.csv")
    fixture.lake.sql(f"UPDATE {fixture.table} SET v = 'u' WHERE id = 1")
    assert fixture.ingest(f"id,p,n,v\n3,{west},31,z\n", "three.csv").updated == 1
    if table_format == "hudi":
        fixture.ingest(f"id,p,n\n2,{east},many\n", "four.csv")
        assert fixture.ingest(f"id,p,n\n2,{east},21\n1,{west},10\n", "five.csv").updated == 1
    rows = fixture.lake.sql(f"SELECT id, CAST(n AS BIGINT), v FROM {fixture.table} ORDER BY id", engine="duckdb").rows()
    assert rows == [(1, 10, "u"), (2, 21, "x"), (3, 31, "z")]
    assert len(rows_in_both(fixture)) == 3


# ---- changed types ----------------------------------------------------------------------------------------------


@both_formats
def test_numbers_widen_to_strings_if_necessary_and_old_values_stay(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,n,m\n1,10,7\n", "one.csv", format=table_format)
    whole = fixture.ingest("id,n,m\n2,2.5,8\n", "two.csv")
    assert whole.changes == ("column changed: n bigint -> double",)
    text = fixture.ingest("id,n,m\n3,many,9\n", "three.csv")
    assert text.changes == ("column changed: n double -> string",)
    assert fixture.types() == {"id": "bigint", "n": "string", "m": "bigint"}
    # A value that looks like a number is a string now, because the column is.
    assert fixture.ingest("id,n,m\n4,4,10\n", "four.csv").changes == ()
    assert rows_in_both(fixture) == [(1, "10.0", 7), (2, "2.5", 8), (3, "many", 9), (4, "4", 10)]
    assert rows_in_both(fixture, where="WHERE n = 'many'") == [(3, "many", 9)]
    history = fixture.lake.history(fixture.table)
    assert len(history) == 4, "one snapshot per ingest, also where the schema changed"
    assert rows_in_both(fixture, as_of=history[0].id) == [(1, 10, 7)]
    assert rows_in_both(fixture, as_of=history[1].id, where="WHERE n > 3") == [(1, 10.0, 7)]


@both_formats
def test_a_changed_type_counts_what_is_new_changed_and_the_same(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,n,note\n1,10,a\n2,20,b\n3,30,c\n", "one.csv", key=("id",), format=table_format)
    report = fixture.ingest("id,n\n2,20\n3,many\n4,40\n", "two.csv")
    assert counts(report) == (3, 1, 1, 1, 0)
    assert rows_in_both(fixture) == [(1, "10", "a"), (2, "20", "b"), (3, "many", "c"), (4, "40", None)]
    fixture.lake.sql(f"UPDATE {fixture.table} SET n = 'few' WHERE id = 1")
    assert fixture.ingest("id,n\n1,few\n2,more\n", "three.csv").updated == 1
    assert [row[1] for row in rows_in_both(fixture)] == ["few", "more", "many", "40"]


@one_format_or_both
@pytest.mark.faults
def test_files_from_before_a_changed_type_are_still_skipped(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv", format=table_format)
    fixture.ingest("id,n\n2,many\n", "two.csv")
    assert fixture.ingest("id,n\n1,10\n", "one.csv").skipped != ()
    assert fixture.ingest("id,n\n2,many\n", "two.csv").skipped != ()
    assert len(fixture.lake.history(fixture.table)) == 2
    fixture.ingest("id,n\n9,9\n", "three.csv", mode="replace")
    assert fixture.ingest("id,n\n1,10\n", "one.csv").inserted == 1


@one_format_or_both
@pytest.mark.faults
def test_a_number_that_is_too_big_for_an_int_column_is_not_wrapped_around(
    fixture: IngestFixture, table_format: str
) -> None:
    fixture.lake.sql(f"CREATE TABLE {fixture.table} (id INT, v STRING) USING {table_format}")
    fixture.ingest("id,v\n3000000000,a\n", "one.csv")
    fixture.lake.sql(f"INSERT INTO {fixture.table} VALUES (1, 'b')")
    assert rows_in_both(fixture) == [(1, "b"), (3000000000, "a")]


@both_formats
def test_a_key_that_becomes_text_still_finds_its_rows(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,v\n1,a\n2,b\n", "one.csv", key=("id",), format=table_format)
    report = fixture.ingest("id,v\n1,z\nx9,n\n", "two.csv", key=("id",))
    assert (report.inserted, report.updated) == (1, 1)
    assert rows_in_both(fixture) == [("1", "z"), ("2", "b"), ("x9", "n")]
    assert fixture.ingest("id,v\nx9,m\n", "three.csv").updated == 1


@one_format_or_both
@pytest.mark.faults
def test_a_replace_may_change_the_types(fixture: IngestFixture, table_format: str) -> None:
    # A date cannot become a string in Hudi; see the next test.
    fixture.ingest(
        "id,at\n1,2026-01-01\n" if table_format == "iceberg" else "id,at\n1,2\n", "one.csv", format=table_format
    )
    fixture.ingest("id,at\nx,hello\n", "two.csv", mode="replace")
    assert rows_in_both(fixture) == [("x", "hello")]


def test_a_hudi_table_says_that_a_date_cannot_become_text(fixture: IngestFixture) -> None:
    fixture.ingest("id,at\n1,2026-01-01\n", "one.csv", format="hudi")
    with pytest.raises(NotSupportedError, match="at date -> string") as caught:
        fixture.ingest("id,at\n2,soon\n", "two.csv")
    assert "--contract quarantine" in caught.value.hint
    assert len(fixture.lake.history(fixture.table)) == 1


@one_format_or_both
@pytest.mark.faults
def test_a_rollback_over_a_changed_type_restores_the_old_values_in_the_new_type(
    fixture: IngestFixture, table_format: str
) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv", format=table_format)
    fixture.ingest("id,n\n2,many\n", "two.csv")
    fixture.lake.rollback(fixture.table, fixture.lake.history(fixture.table)[0].id)
    assert rows_in_both(fixture) == [(1, "10")]
    fixture.lake.rollback(fixture.table, fixture.lake.history(fixture.table)[1].id)
    assert rows_in_both(fixture) == [(1, "10"), (2, "many")]


def test_a_hudi_table_says_that_the_type_of_a_partition_column_cannot_change(fixture: IngestFixture) -> None:
    fixture.ingest("id,p\n1,10\n", "one.csv", key=("id",), format="hudi", partition_by="p")
    with pytest.raises(NotSupportedError, match="partitioned by p") as caught:
        fixture.ingest("id,p\n2,west\n", "two.csv")
    assert "--contract quarantine" in caught.value.hint
    assert (fixture.rows(), len(fixture.lake.history(fixture.table))) == ([(1, 10)], 1)


# ---- names and contracts ----------------------------------------------------------------------------------------


def test_leading_zeros_are_text_and_stay_text(fixture: IngestFixture) -> None:
    fixture.ingest("zip\n01234\n", "one.csv")
    fixture.ingest("zip\n99999\n", "two.csv")
    assert (fixture.types(), fixture.rows("zip, zip")) == ({"zip": "string"}, [("01234", "01234"), ("99999", "99999")])


def test_a_frozen_table_refuses_new_columns_and_bad_values(fixture: IngestFixture) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv")
    before = fixture.lake.describe(fixture.table)
    with pytest.raises(ContractError, match="column added: extra"):
        fixture.ingest("id,n,extra\n2,20,x\n", "two.csv", contract="freeze")
    with pytest.raises(BadRowError, match="three.csv, line 3.*many"):
        fixture.ingest("id,n\n2,20\n3,many\n", "three.csv", contract="freeze")
    assert fixture.lake.describe(fixture.table) == before
    assert not fixture.exists("__rejected")
    assert fixture.ingest("N,ID\n20,2\n", "four.csv", contract="freeze").inserted == 1
    assert fixture.rows() == [(1, 10), (2, 20)]


@one_format_or_both
@pytest.mark.faults
def test_quarantine_rejects_bad_rows_with_file_line_and_reason(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv", key=("id",), format=table_format)
    report = fixture.ingest("id,n\n2,20\n3,many\n", "two.csv", contract="quarantine")
    assert counts(report) == (2, 1, 0, 0, 1)
    assert fixture.rows() == [(1, 10), (2, 20)]
    assert fixture.rows("file, line, reason, raw", f"{fixture.table}__rejected") == [
        (str(fixture.folder / "two.csv"), 3, "n: 'many' is not a valid bigint", "3,many")
    ]
    fixture.ingest("id,n\n4,lots\n", "three.csv", contract="quarantine")
    assert fixture.rows("line, raw", f"{fixture.table}__rejected") == [(2, "4,lots"), (3, "3,many")]


def test_strange_headers_are_found_again_in_the_comments(fixture: IngestFixture) -> None:
    fixture.ingest("it's,a\\b,Größe (m²),👍,select\n1,2,3,4,5\n")
    assert [(column.name, column.comment) for column in fixture.lake.describe(fixture.table).columns] == [
        ("it_s", "it's"),
        ("a_b", "a\\b"),
        ("größe_m2", "Größe (m²)"),
        ("column_4", "👍"),
        ("select_", "select"),
    ]
    assert fixture.ingest("👍,it's\n40,10\n", "again.csv").changes == ()
    assert fixture.rows("it_s, column_4") == [(1, 4), (10, 40)]
