"""The Spark statements of an ingest are valid Spark SQL."""

from __future__ import annotations

import pytest
import sqlglot

from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.tables import Column
from lakehouse.ingest import statements
from lakehouse.ingest.files import PlannedColumn, RecordedColumn
from lakehouse.ingest.schema import SchemaChanges

LEADS = TableName("crm", "leads")
ID, NAME = PlannedColumn("id", "ID", "bigint"), PlannedColumn("name", "O'Brien\\s", "string")
COLUMNS = [Column("id", "bigint"), Column("name", "string")]


@pytest.mark.parametrize("value", ["plain", "it's", "back\\slash", "\\'", "two\nlines", "👍", ""])
def test_a_text_comes_back_as_it_was(value: str) -> None:
    parsed = sqlglot.parse_one(f"SELECT {spark_text(value)}", dialect="spark").expressions[0]
    assert parsed.this == value


def test_a_table_is_created_with_its_headers_as_comments() -> None:
    sql = statements.create(LEADS, [ID, NAME], "iceberg", "days(ts), bucket(4, id)", {"lake.key": "id"})
    assert sql == (
        "CREATE TABLE `crm`.`leads` (`id` bigint COMMENT 'ID', `name` string COMMENT 'O\\'Brien\\\\s') USING iceberg"
        " PARTITIONED BY (days(ts), bucket(4, id)) TBLPROPERTIES ('lake.key' = 'id')"
    )


def test_a_rewritten_column_keeps_its_position() -> None:
    changed = PlannedColumn("name", "Name", "string", recorded="bigint")
    sql = list(statements.evolve(LEADS, SchemaChanges(rewritten=(changed,)), ["id", "name"]))
    assert [statement.split(" ", 3)[0] for statement in sql] == ["ALTER", "UPDATE", "ALTER", "ALTER", "ALTER"]
    assert sql[-1] == "ALTER TABLE `crm`.`leads` ALTER COLUMN `name` AFTER `id`"
    first = list(statements.evolve(LEADS, SchemaChanges(rewritten=(changed,)), ["name", "id"]))
    assert first[-1].endswith("FIRST")


def test_a_rewritten_column_does_not_collide_with_another() -> None:
    changed = PlannedColumn("a", "a", "string", recorded="bigint")
    sql = list(statements.evolve(LEADS, SchemaChanges(rewritten=(changed,)), ["a", "a__new"]))
    assert "`a__new`" not in sql[0]


def test_how_files_are_read_survives_serialization() -> None:
    columns = [ID, PlannedColumn("day", 'Tag "d\'"', "date", format="%d.%m.%Y")]
    assert statements.parse_recorded_columns(statements.dump_recorded_columns(columns)) == (
        RecordedColumn("id", "bigint", "ID"),
        RecordedColumn("day", "date", 'Tag "d\'"', "%d.%m.%Y"),
    )


def test_existing_rows_come_in_the_new_types_without_those_that_are_replaced() -> None:
    sql = statements.rows_with_existing(LEADS, COLUMNS, COLUMNS[:1], ["id", "name"], ["id"])
    assert sql == (
        "SELECT CAST(`id` AS bigint) AS `id`, CAST(NULL AS string) AS `name` FROM `crm`.`leads` t"
        " LEFT ANTI JOIN lake_staged s ON CAST(t.`id` AS bigint) = s.`id`"
        " UNION ALL SELECT CAST(`id` AS bigint) AS `id`, CAST(`name` AS string) AS `name` FROM lake_staged"
    )
    assert "JOIN" not in statements.rows_with_existing(LEADS, COLUMNS, COLUMNS[:1], ["id"], [])


def test_existing_structs_get_new_fields_inside_of_lists_and_maps() -> None:
    old, new = "array<map<string,struct<a:int>>>", "array<map<string,struct<a:bigint,b:date>>>"
    sql = statements.rows_with_existing(LEADS, [Column("x", new)], [Column("x", old)], ["x"], [])
    struct = "IF(v1 IS NULL, NULL, named_struct('a', CAST(v1.`a` AS bigint), 'b', CAST(NULL AS date)))"
    assert f"(k1, v1) -> {struct})) AS `x` FROM `crm`.`leads`" in sql
    assert sqlglot.parse_one(sql, dialect="spark")
