"""What the guard refuses does harm without it: each statement runs in the bare engine, then is refused by the lake."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from lakehouse.core.errors import LakeError
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECRET = "the-secret-line"


@dataclass(frozen=True)
class Scene:
    """A table with two snapshots, and a folder outside the lake with a file."""

    lake: Lake
    spark: SparkSession
    table: str
    outside: Path

    def files(self) -> int:
        info = self.lake.describe(self.table)
        return sum(len(names) for _, _, names in os.walk(info.location.removeprefix("file://")))

    def properties(self) -> dict[str, str]:
        rows = self.spark.sql(f"show tblproperties lake.{self.table}").collect()
        return {row[0]: row[1] for row in rows}


@pytest.fixture
def scene(local_lake: Lake, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    table = f"{namespace[:40]}.t"
    local_lake.sql(f"drop table if exists {table}")
    local_lake.sql(f"create table {table} as select 1 as id, 'a' as name")
    local_lake.sql(f"insert overwrite {table} select 2, 'b'")
    (tmp_path / "secret.csv").write_text(SECRET + "\n")
    yield Scene(local_lake, local_lake.spark.newSession(), table, tmp_path)
    local_lake.drop(table)


def shows_the_secret(scene: Scene, sql: str) -> bool:
    return SECRET in str(scene.spark.sql(sql).collect())


def runs_code(scene: Scene, sql: str) -> bool:
    return str(scene.spark.sql(sql).collect()[0][0]) != ""


def sets_a_property(scene: Scene, sql: str) -> bool:
    before = scene.properties()
    scene.spark.sql(sql)
    return scene.properties() != before


def writes_outside(scene: Scene, sql: str) -> bool:
    scene.spark.sql(sql)
    return len([file for file in scene.outside.rglob("*") if file.suffix in (".parquet", ".json")]) > 0


def deletes_files(scene: Scene, sql: str) -> bool:
    scene.spark.sql(f"alter table lake.{scene.table} set tblproperties ('gc.enabled' = 'true')")
    before = scene.files()
    scene.spark.sql(sql)
    return scene.files() < before


def deletes_outside(scene: Scene, sql: str) -> bool:
    scene.spark.sql(f"alter table lake.{scene.table} set tblproperties ('gc.enabled' = 'true')")
    os.utime(scene.outside / "secret.csv", (0, 0))
    scene.spark.sql(sql)
    return not (scene.outside / "secret.csv").exists()


def changes_settings(scene: Scene, sql: str) -> bool:
    scene.spark.sql(sql)
    return scene.spark.conf.get("spark.sql.catalog.other", "") == "x.Y"


LATER = "timestamp '2100-01-01 00:00:00'"
HARM: list[tuple[Callable[[Scene, str], bool], str]] = [
    (deletes_files, f"call lake.system.expire_snapshots(table => '{{t}}', older_than => {LATER})"),
    (deletes_files, f"/* x */ call lake.system.expire_snapshots(table => '{{t}}', older_than => {LATER})"),
    (deletes_files, f"-- x\nCALL lake.system.expire_snapshots('{{t}}', {LATER}, 1)"),
    (deletes_files, f"CALL `lake`.`system`.`expire_snapshots`(table => '{{t}}', older_than => {LATER})"),
    (deletes_outside, "call lake.system.remove_orphan_files(table => '{t}', location => '{outside}')"),
    (deletes_outside, "/**/call lake.system.remove_orphan_files(table=>'{t}', location=>'{outside}')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('gc.enabled' = 'true')"),
    (sets_a_property, "alter table lake.{t} set tblproperties (gc.enabled = true)"),
    (sets_a_property, "/* x */ alter table lake.{t} set tblproperties ('gc.enabled' 'true')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('team' = 'me', 'gc.enabled' = 'true')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('write.metadata.delete-after-commit.enabled' = 'true')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('write.data.path' = '{outside}')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('write.metadata.path' = '{outside}')"),
    (sets_a_property, "alter table lake.{t} set tblproperties ('history.expire.max-snapshot-age-ms' = '1')"),
    (sets_a_property, "alter table lake.{t} unset tblproperties ('gc.enabled')"),
    (writes_outside, "create table lake.{t}_2 (id int) using iceberg location '{outside}/x'"),
    (writes_outside, "create table lake.{t}_3 using iceberg tblproperties ('write.data.path' = '{outside}/y') as select 1 id"),
    (writes_outside, "insert overwrite directory '{outside}/z' using parquet select 1"),
    (shows_the_secret, "select * from csv.`{outside}/secret.csv`"),
    (shows_the_secret, "select * from text.`{outside}/secret.csv`"),
    (shows_the_secret, "with a as (select * from text.`{outside}/secret.csv`) select * from a"),
    (shows_the_secret, "select transform(id) using 'cat {outside}/secret.csv' as (x) from (select 1 as id)"),
    (runs_code, "select reflect('java.lang.System', 'getProperty', 'user.dir')"),
    (runs_code, "select java_method('java.lang.System', 'getProperty', 'user.dir')"),
    (runs_code, "select `reflect`('java.util.UUID', 'randomUUID')"),
    (runs_code, "select /* x */ Java_Method('java.lang.System', 'getProperty', 'user.dir')"),
    (runs_code, "set -v"),
    (changes_settings, "set spark.sql.catalog.other = x.Y"),
]  # fmt: skip


@pytest.mark.parametrize(("harm", "statement"), HARM, ids=[statement[:60] for _, statement in HARM])
def test_a_refused_statement_does_harm_without_the_guard(
    scene: Scene, harm: Callable[[Scene, str], bool], statement: str
) -> None:
    sql = statement.format(t=scene.table, outside=scene.outside)
    with pytest.raises(LakeError) as refused:
        scene.lake.sql(sql)
    assert refused.value.is_user_error
    assert harm(scene, sql), "the engine alone does it"


FILES = [
    "select content from read_text('{file}')",
    "select content::varchar from read_blob('{file}')",
    "select * from read_csv('{file}', header = false)",
    "select * from '{file}'",
    "select * from \"{file}\"",
    "/* x */ select * from read_csv('{file}', header = false)",
    "select * from query('select * from ''{file}''')",
    "with a as (select * from read_text('{file}')) select content from a",
]  # fmt: skip


@pytest.mark.parametrize("statement", FILES)
def test_a_bare_duckdb_shows_files_and_the_lake_does_not(local_lake: Lake, tmp_path: Path, statement: str) -> None:
    (tmp_path / "secret.csv").write_text(f"{SECRET},1\n{SECRET},2\n")
    sql = statement.format(file=tmp_path / "secret.csv")
    assert SECRET in str(duckdb.connect().execute(sql).fetchall()) + str(duckdb.connect().execute(sql).description)
    for engine in ("duckdb", "auto"):
        with pytest.raises(LakeError) as refused:
            local_lake.sql(sql, engine=engine)
        assert refused.value.is_user_error


def test_at_least_thirty_refused_statements_are_shown_to_do_harm() -> None:
    assert len(HARM) + len(FILES) >= 30


def test_a_hudi_table_is_not_truncated_because_its_history_would_be_lost(local_lake: Lake, namespace: str) -> None:
    table = f"{namespace[:40]}.h"
    local_lake.sql(f"create table {table} (id int) using hudi tblproperties (primaryKey = 'id')")
    local_lake.sql(f"insert into {table} values (1)")
    with pytest.raises(LakeError, match="its history included"):
        local_lake.sql(f"truncate table {table}")
    assert local_lake.sql(f"select id from {table}").rows() == [(1,)]
    local_lake.drop(table)
