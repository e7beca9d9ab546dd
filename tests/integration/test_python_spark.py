"""One `Lake` in Python runs pipelines, queries and uses `lake.spark` in any order, also beside others and after its Spark died."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import command_for

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.faults]

#: A pipeline with a row per requested day.
MODULE = """
from lakehouse.pipelines import Days, Pipeline, Source, Table
from lakehouse.pipelines import functions as F

def read(context):
    return context.spark.range(1).select("id", F.lit(context.partition).cast("date").alias("date"))

def landed(rows):
    return rows

{name} = Pipeline("{name}", (Table("{name}.rows", landed, inputs=(Source("days", read),), partition_by="date"),), Days())
"""

RUN_FIRST = """
with open_lake() as lake:
    answers = [lake.run(NAME, "2026-01-14").state, lake.spark.table(TABLE).count()]
    answers += [lake.run(NAME, "2026-01-15").state, lake.spark.table(TABLE).count()]
    answers += [lake.sql(f"select count(*) from {TABLE}", engine="spark").rows()[0][0]]
    lake.spark.stop()  # ends the Spark of nobody else
"""

SPARK_FIRST = """
lake = open_lake()
answers = [lake.spark.range(3).count(), lake.run(NAME, "2026-01-14").state, lake.spark.table(TABLE).count()]
lake.close()
answers += [lake.run(NAME, "2026-01-15").state, lake.spark.table(TABLE).count()]
lake.close()
"""

IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor

def use(number):
    with open_lake() as lake:  # each thread opens the lake, as programs do
        if number == 1:
            return lake.run(NAME, "2026-01-14").state
        return lake.spark.range(number).count()

with ThreadPoolExecutor(4) as threads:
    answers = list(threads.map(use, [5, 1, 6, 7]))
"""

TWO_LAKES = """
with open_lake() as lake, open_lake() as other:
    answers = [lake.spark.range(2).count(), other.run(NAME, "2026-01-14").state]
    other.close()
    answers.append(lake.spark.table(TABLE).count())
    with open_lake(home="elsewhere") as third:
        try:
            third.spark
        except LakeError as error:
            answers.append(error.code)
"""

REPLACED = """
with open_lake() as lake:
    answers = [lake.run(NAME, "2026-01-14").state]
    lake.spark._sc._gateway.shutdown()
    answers += [lake.run(NAME, "2026-01-15").state, lake.spark.table(TABLE).count()]
"""


@pytest.fixture
def project(shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path) -> Path:
    """A folder with a pipeline that has the test's name; the warm Spark runs."""
    shared_lake.sql("select 1", engine="spark")
    name = namespace[:60]
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name))
    (tmp_path / "lake.toml").write_text(f'pipelines = ["{name}"]\nhome = "{shared_settings.home}"\n')
    return tmp_path


def run_script(project: Path, script: str, name: str) -> list[object]:
    """Run Python code in a process of its own; returns its `answers`."""
    names = f"NAME, TABLE = {name!r}, 'lake.{name}.rows'"
    code = f"import json\nfrom lakehouse import LakeError, open_lake\n{names}\n{script}\nprint('answers', json.dumps(answers))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("answers ")]
    return list(json.loads(line.removeprefix("answers ")))


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        (RUN_FIRST, ["published", 1, "published", 2, 2]),
        (SPARK_FIRST, [3, "published", 1, "published", 2]),
        (IN_THREADS, [5, "published", 6, 7]),
        (TWO_LAKES, [2, "published", 1, "spark_in_use"]),
    ],
    ids=["run first", "spark first, closed, again", "in threads", "two lakes"],
)
def test_a_lake_runs_and_uses_spark_in_any_order(
    project: Path, shared_lake: Lake, namespace: str, script: str, answers: list[object]
) -> None:
    assert run_script(project, script, namespace[:60]) == answers
    assert shared_lake.sql("select 2", engine="spark").rows() == [(2,)]


def test_a_dead_spark_is_seen_and_replaced_by_the_same_lake_and_by_the_next_command(
    project: Path, shared_settings: Settings, namespace: str
) -> None:
    assert run_script(project, REPLACED, namespace[:60]) == ["published", "published", 2]
    lake = command_for(shared_settings.home)
    (spark, *_) = json.loads(lake("status", "-o", "json").stdout)
    assert spark["state"] == "stopped"
    assert "not running; it starts on first use" in lake("doctor").stdout
    done = lake("sql", f"create table {namespace}.after (id int)")
    assert done.returncode == 0, done.stderr
    (spark, *_) = json.loads(lake("status", "-o", "json").stdout)
    assert spark["state"] == "running"
    assert "Spark was stopped" in lake("logs", "spark", "-n", "200").stdout
