"""The statements with which Spark writes staged rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lakehouse.core.names import TableName
from lakehouse.core.tables import Column
from lakehouse.tables.spark import StatementWriter
from lakehouse.tables.write import StagedRows

COLUMNS = [Column("id", "bigint"), Column("name", "string"), Column("at", "timestamp")]
FOLDER = Path("/staged")
ROWS = StagedRows(FOLDER, ["id"], {"at": "now()"})


def statement(kind: str, *options: list[str], rows: StagedRows = ROWS) -> str:
    ran: list[tuple[str, Path]] = []
    writer = StatementWriter(TableName("crm", "leads"), lambda sql, folder: ran.append((sql, folder)))
    getattr(writer, kind)(rows, COLUMNS, *options)
    ((sql, folder),) = ran
    assert folder == FOLDER
    return sql


def test_a_column_that_did_not_come_is_null_or_computed() -> None:
    selected = (
        "SELECT CAST(`id` AS bigint) AS `id`, CAST(NULL AS string) AS `name`, CAST(now() AS timestamp) AS `at`"
        " FROM lake_staged"
    )
    assert statement("append") == f"INSERT INTO `crm`.`leads` {selected}"
    assert statement("overwrite") == f"INSERT OVERWRITE TABLE `crm`.`leads` {selected}"


def test_a_merge_joins_by_every_column_of_the_key() -> None:
    sql = statement("merge", ["id", "name"])
    assert " s ON t.`id` <=> s.`id` AND t.`name` <=> s.`name` WHEN MATCHED THEN UPDATE SET" in sql
    assert sql.endswith("WHEN NOT MATCHED THEN INSERT (`id`, `name`, `at`) VALUES (s.`id`, s.`name`, s.`at`)")


def test_a_merge_only_removes_what_is_marked_as_deleted() -> None:
    sql = statement("merge", ["id"], rows=replace(ROWS, deleted="gone"))
    assert "CAST(`gone` AS boolean) AS `gone` FROM lake_staged) s ON" in sql
    assert "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE" in sql
    assert "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (`id`, `name`, `at`)" in sql
