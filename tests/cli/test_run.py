"""`lake run` without Spark: retries, errors of user code, Ctrl-C, progress, and what is imported."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from tests.support.transaction_pipelines import ROOT, failing_first, opened, writing

from lakehouse.cli.run import run_pipeline
from lakehouse.cli.templates import FILES
from lakehouse.core.errors import CatalogUnreachableError, RunConflictError
from lakehouse.core.requests import RunRequest
from lakehouse.pipelines import LightContext, Pipeline, Table

pytestmark = pytest.mark.slow

LIGHT = RunRequest(light=True)

#: A user's module with three pipelines that need no Spark: one succeeds, one fails, one waits to be interrupted.
MODULE = """
import time
from dataclasses import replace
from pathlib import Path

from tests.support.transaction_pipelines import writing


def divide(context):
    return 1 // 0


def wait(context):
    Path("waiting").touch()
    time.sleep(300)


def with_work(name, work):
    pipeline = writing(name, name, [f"{name}.one"])
    return replace(pipeline, tables=tuple(replace(table, light=work) for table in pipeline.tables))


fine = writing("fine", "first", ["fine.one", "fine.two"])
broken = with_work("broken", divide)
slow = with_work("slow", wait)
"""


# ---- retries ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse.cli.run._RETRY_AFTER_S", 0)


@pytest.mark.usefixtures("no_delay")
def test_a_run_that_a_retry_saves_is_one_published_run(home: Path) -> None:
    steps: list[str] = []
    with opened(home) as lake:
        record = run_pipeline(lake, failing_first(1), LIGHT, steps.append)
        assert record.state == "published"
        assert lake.sql("select run from shop.one").rows() == [("first",)]
        assert [run.id for run in lake.runs()] == [record.id]
    assert any(step.startswith("The catalog does not answer. Retrying") for step in steps)


@pytest.mark.usefixtures("no_delay")
def test_an_error_that_outlasts_the_retries_is_raised(home: Path) -> None:
    with opened(home) as lake, pytest.raises(CatalogUnreachableError, match="does not answer"):
        run_pipeline(lake, failing_first(9), LIGHT)


@pytest.mark.usefixtures("no_delay")
def test_a_run_that_others_disturb_every_time_is_not_repeated_again_by_the_command(home: Path) -> None:
    """Three attempts, and not three times three."""
    attempts: list[str] = []
    with opened(home) as lake, opened(home) as other:
        (table,) = writing("shop", "first", ["shop.one"]).tables
        assert isinstance(table, Table) and table.light
        work = table.light

        def disturbed(context: LightContext) -> int:
            attempts.append("attempt")
            other.run(writing("other", f"other_{len(attempts)}", ["shop.one"]), light=True)
            return work(context)

        with pytest.raises(RunConflictError, match="3 times during this run"):
            run_pipeline(lake, Pipeline("shop", (replace(table, light=disturbed),)), LIGHT)
        assert [run for (run,) in lake.sql("select run from shop.one").rows()].count("first") == 0
    assert len(attempts) == 3


# ---- the command ------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a lake.toml that names the module."""
    (tmp_path / "lake.toml").write_text('home = "lake"\npipelines = ["own_pipelines"]\n')
    (tmp_path / "own_pipelines.py").write_text(MODULE)
    return tmp_path


def start(project: Path, *arguments: str, program: tuple[str, ...] = ("-m", "lakehouse")) -> subprocess.Popen[str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lake(project: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(project, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_run_reports_its_steps_on_stderr_and_its_tables_on_stdout(project: Path) -> None:
    code, out, err = lake(project, "run", "fine", "--light")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["fine.one", "fine.two"]
    steps = err.splitlines()
    assert steps[:3] == ["fine.one", "fine.two", "Publishing"]
    assert steps[-1].startswith("Published to all tables at once: run ")
    code, out, _ = lake(project, "run", "fine", "--light", "--table", "fine.two", "-o", "json")
    (record,) = json.loads(out)
    assert (code, record["state"], [table["table"] for table in record["tables"]]) == (0, "published", ["fine.two"])


def test_show_without_an_id_shows_the_newest_run(project: Path) -> None:
    for command in ("show", "log"):
        code, out, err = lake(project, "runs", command)
        assert (code, out, err) == (2, "", "Error: There are no runs yet.\nStart one: lake run market\n")
    lake(project, "run", "fine", "--light")
    lake(project, "run", "fine", "--light", "--table", "fine.two")
    newest, other = (run["run"] for run in json.loads(lake(project, "runs", "-o", "json")[1]))
    assert newest != other
    for command in ("show", "log"):
        assert lake(project, "runs", command, "-o", "json") == lake(project, "runs", command, newest, "-o", "json")
    (record,) = json.loads(lake(project, "runs", "show", "-o", "json")[1])
    assert record["id"] == newest


def test_an_error_of_user_code_has_its_place_and_exit_code_1(project: Path) -> None:
    code, out, err = lake(project, "run", "broken", "--light", "-o", "json")
    assert (code, out) == (1, "")
    error = json.loads(err.splitlines()[-1])
    message, place, *code_lines = error["message"].splitlines()
    assert message == "The run of broken failed: ZeroDivisionError: integer division or modulo by zero"
    assert place.startswith("broken.one: divide in ") and "own_pipelines.py, line 10" in place
    assert code_lines[-1] == ">   10 |     return 1 // 0"
    run_id = error["hint"].removeprefix("lake runs show ").partition(";")[0]
    code, out, _ = lake(project, "runs", "show", run_id, "-o", "json")
    assert (code, json.loads(out)[0]["state"]) == (0, "failed")
    code, out, err = lake(project, "run", "--resume", run_id, "-o", "json")
    assert (code, out, json.loads(err.splitlines()[-1])) == (1, "", error)


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        pytest.param(["nosuch"], "no_such_pipeline", "broken, files, fine", id="pipeline"),
        pytest.param(["fine", "--table", "fine.three"], "unknown_choice", "fine.one, fine.two", id="table"),
        pytest.param(["fine", "--from", "2026-01-14"], "bad_usage", "no partitions", id="partitions"),
    ],
)
def test_a_wrong_name_is_a_usage_error(project: Path, arguments: list[str], error: str, named: str) -> None:
    code, out, err = lake(project, "run", *arguments, "--light", "-o", "json")
    assert (code, out) == (2, "")
    reported = json.loads(err.splitlines()[-1])
    assert reported["error"] == error
    assert named in reported["message"] + reported["hint"]


def test_ctrl_c_stops_a_run_and_publishes_nothing(project: Path) -> None:
    process = start(project, "run", "slow", "--light")
    deadline = time.monotonic() + 60
    while not (project / "waiting").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.endswith("\nStopped.\n")
    assert "Traceback" not in err
    code, out, _ = lake(project, "runs", "-o", "json")
    assert [(run["pipeline"], run["state"]) for run in json.loads(out)] == [("slow", "failed")]
    assert json.loads(lake(project, "tables", "-o", "json")[1]) == []


# ---- imports ----------------------------------------------------------------------------------------------------


def packages_of_a_run(project: Path, *arguments: str) -> set[str]:
    """The packages that a process has imported at the end of `lake run`."""
    program = """
import sys
from lakehouse.cli.app import run
code = run(["run", *sys.argv[1:]])
sys.stdout.write("\\n" + " ".join({name.split(".")[0] for name in sys.modules}))
sys.exit(code)
"""
    process = start(project, *arguments, program=("-c", program))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return set(out.splitlines()[-1].split())


def test_a_run_does_not_load_dagster(project: Path) -> None:
    assert "dagster" not in packages_of_a_run(project, "fine", "--light")


@pytest.fixture
def built_shop(tmp_path: Path) -> Path:
    """The sample project of `lake init` with tables of its only file, as a run would have written them, but without a JVM."""
    file = tmp_path / "sales" / "2026-01-14.csv"
    file.parent.mkdir()
    file.write_text("1,tea,250\n")
    fingerprints = json.dumps({file.stem: f"{file.stat().st_size} {file.stat().st_mtime}"})
    rows = pyarrow.table({"id": [1], "item": ["tea"], "cents": [250], "date": [date(2026, 1, 14)]})

    def by_date(table: Any) -> Any:
        with table.update_spec() as spec:
            spec.add_identity("date")
        return table

    def sales(context: LightContext) -> int:
        table = by_date(context.catalog.create_table("bronze.sales", rows.schema))
        table.append(context.validate(rows), {"lake.fingerprints": fingerprints, "lake.inputs": "{}"})
        return 1

    def by_day(context: LightContext) -> int:
        built = context.catalog.load_table("bronze.sales").metadata.current_snapshot_id
        table = by_date(context.catalog.create_table("gold.sales_by_day", rows.schema))
        table.append(rows, {"lake.inputs": json.dumps({"bronze.sales": str(built)})})
        return 1

    (tmp_path / "shop.py").write_text(FILES["shop.py"]())
    # The same declarations, so that the code of the tables is the same for the run of the test.
    shop = next(
        value
        for value in runpy.run_path(str(tmp_path / "shop.py"), run_name="shop").values()
        if isinstance(value, Pipeline)
    )
    writers = {"bronze.sales": sales, "gold.sales_by_day": by_day}
    light = [replace(table, light=writers[table.name]) for table in shop.tables]
    with opened(tmp_path / ".lake") as lake:
        assert lake.run(replace(shop, tables=light), light=True).state == "published"
    # After the run, which would read the source that it names.
    (tmp_path / "lake.toml").write_text(FILES["lake.toml"]())
    return tmp_path


def test_a_run_that_finds_nothing_new_loads_neither_pyspark_nor_dagster(built_shop: Path) -> None:
    loaded = packages_of_a_run(built_shop, "shop")
    (record,) = json.loads(lake(built_shop, "runs", "-n", "1", "-o", "json")[1])
    assert (record["pipeline"], record["state"]) == ("shop", "nothing")
    assert not loaded & {"pyspark", "py4j", "dagster", "duckdb", "pyarrow", "pandas"}


def test_a_run_loads_only_the_module_of_its_pipeline(tmp_path: Path) -> None:
    (tmp_path / "bars").mkdir()
    (tmp_path / "lake.toml").write_text('[sources.market]\npath = "bars"\n')
    assert not packages_of_a_run(tmp_path, "market") & {"pyspark", "dagster", "psycopg", "requests"}
