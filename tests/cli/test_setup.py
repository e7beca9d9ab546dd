"""`lake init`, `config show`, `completion`, `doctor`, `connect`."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import create_shop
from tests.support.transaction_pipelines import writing

from lakehouse.config.load import all_settings, load_settings
from lakehouse.lake.assemble import assemble

pytestmark = pytest.mark.slow

LAKE = Path(sys.executable).parent / "lake"


# ---- init -------------------------------------------------------------------------------------------------------


def test_a_second_init_keeps_existing_files(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "lake"
    first = call("init", str(folder))
    assert (first.code, first.out) == (0, "")
    assert sorted(file.name for file in folder.iterdir()) == [".env.example", "first.py", "lake.toml", "shop.py"]
    (folder / "lake.toml").write_text('home = "mine"\n')
    (folder / "first.py").unlink()
    again = call("init", str(folder))
    assert again.code == 0
    assert f"kept     {folder / 'lake.toml'}" in again.err
    assert f"written  {folder / 'first.py'}" in again.err
    assert (folder / "lake.toml").read_text() == 'home = "mine"\n'


def test_the_written_lake_toml_changes_nothing_and_names_every_setting(call: Any, tmp_path: Path) -> None:
    call("init", str(tmp_path))
    settings = load_settings({}, tmp_path, {})
    assert set(settings.origins) == {"pipelines", "sources.shop.path"}, "the sample pipeline"
    text = (tmp_path / "lake.toml").read_text()
    for name, part, _ in all_settings():
        assert name.rpartition(".")[2] in text
        assert part.metadata["help"] in text


def test_the_written_lake_toml_has_the_defaults_when_its_comments_are_removed(call: Any, tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    call("init", str(tmp_path / "with"))
    file = tmp_path / "with" / "lake.toml"
    lines = file.read_text().splitlines()
    uncommented = [line.removeprefix("# ") if " = " in line or line.startswith("# [") else line for line in lines]
    file.write_text("\n".join(uncommented))
    settings = load_settings({}, tmp_path / "with", {})
    default = load_settings({}, tmp_path / "without", {})
    of_the_folder = {"origins": {}, "home": default.home, "dbt": default.dbt, "pipelines": (), "sources": {}}
    assert replace(settings, **of_the_folder) == default
    assert "spark.master" in settings.origins
    folder = tmp_path / "with"
    assert settings.sources == {"shop": {"path": str(folder / "sales")}, "market": {"path": str(folder / "bars")}}


def test_the_written_env_example_holds_the_defaults(call: Any, tmp_path: Path) -> None:
    call("init", str(tmp_path))
    lines = (tmp_path / ".env.example").read_text().splitlines()
    (tmp_path / ".env").write_text("\n".join(line.removeprefix("# ") for line in lines if "LAKE_" in line))
    (tmp_path / "lake.toml").unlink()
    settings = load_settings({}, tmp_path, {})
    (tmp_path / ".env").unlink()
    assert replace(settings, origins={}) == load_settings({}, tmp_path, {})
    assert "home" in settings.origins


def test_the_written_script_is_python(call: Any, tmp_path: Path) -> None:
    call("init", str(tmp_path))
    assert ast.parse((tmp_path / "first.py").read_text()).body
    assert ast.parse((tmp_path / "shop.py").read_text()).body


def test_init_reports_a_folder_that_cannot_be_written(call: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = call("init", str(tmp_path / "file"))
    assert (done.code, done.out) == (2, "")
    assert "lake init DIR" in done.err
    assert (tmp_path / "file").read_text() == "mine"


# ---- config show ------------------------------------------------------------------------------------------------


def test_config_show_has_each_value_and_its_origin(lake_command: Any, tmp_path: Path, home: Path) -> None:
    (tmp_path / "lake.toml").write_text('[query]\nengine = "duckdb"\n[spark.conf]\n"spark.x.password" = "hunter2"\n')
    (tmp_path / ".env").write_text("LAKE_SPARK__IDLE_MINUTES=3\n")
    done = lake_command("config", "show", "-o", "json", cwd=tmp_path, env={"LAKE_SPARK__MASTER": "local[1]"})
    assert done.returncode == 0
    import json

    shown = {row["setting"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}
    assert shown["home"] == (str(home), "environment: LAKE_HOME")
    assert shown["query.engine"] == ("duckdb", str(tmp_path / "lake.toml"))
    assert shown["spark.idle_minutes"] == ("3.0", str(tmp_path / ".env"))
    assert shown["spark.master"] == ("local[1]", "environment: LAKE_SPARK__MASTER")
    assert shown["profile"] == ("embedded", "default")
    assert "hunter2" not in done.stdout + done.stderr
    assert not home.exists()


def test_every_command_reports_an_unknown_setting(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_QUERY__ENGIN", "duckdb")
    for command in (["tables"], ["config", "show"], ["status"]):
        done = call(*command)
        assert done.code == 2
        assert "Did you mean query.engine?" in done.err


@pytest.mark.parametrize("setting", ["LAKE_QUERY__MEMORY_LIMIT", "LAKE_QUERY__LARGEST_SCAN"])
def test_an_invalid_size_is_reported(call: Any, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(setting, "lots")
    done = call("tables")
    assert done.code == 2
    assert "'lots' is not a size" in done.err


# ---- completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(call: Any, shell: str) -> None:
    done = call("completion", shell)
    assert done.code == 0
    assert f"_LAKE_COMPLETE={shell}_complete" in done.out


@pytest.fixture(scope="module")
def completed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with branches, a tag, a run and a dropped table."""
    home = create_shop(tmp_path_factory.mktemp("completed") / "lake")
    with assemble(load_settings({"home": home}, environ={})) as lake:
        lake.refs.branches.create("experiment")
        lake.refs.branches.create_tag("closing")
        lake.run(writing("night", "night", ["shop.nightly"]), id="night_1", light=True)
        lake.drop("shop.empty")
    return home


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("lake his", "history", id="command"),
        pytest.param("lake branch me", "merge", id="subcommand"),
        pytest.param("lake describe shop.", "shop.nightly shop.orders", id="tables"),
        pytest.param("lake undrop shop.", "shop.empty", id="dropped"),
        pytest.param("lake branch drop other ex", "experiment", id="branch"),
        pytest.param("lake --branch ex", "experiment", id="branch of every command"),
        pytest.param("lake branch create x --from clo", "closing", id="ref"),
        pytest.param("lake tag drop clo", "closing", id="tag"),
        pytest.param("lake travel shop.orders clo", "closing", id="when"),
        pytest.param("lake run mar", "market", id="pipeline"),
        pytest.param("lake runs show nig", "night_1", id="run"),
    ],
)
def test_a_shell_completes_commands_and_names_of_the_lake(completed_home: Path, words: str, expected: str) -> None:
    script = """eval "$(lake completion bash)"
        COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lake_completion lake; echo "${COMPREPLY[*]}" """
    environment = {**os.environ, "LAKE_HOME": str(completed_home), "PATH": f"{LAKE.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script, "bash", words], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == (expected + "\n", "")


# ---- doctor, connect, status ------------------------------------------------------------------------------------


def test_doctor_checks_everything_without_starting_spark(call: Any) -> None:
    done = call("doctor", "-o", "json")
    checks = {row["check"]: row for row in done.rows()}
    assert {"python", "java", "jars", "memory", "disk", "lake", "catalog", "duckdb", "spark"} <= set(checks)
    assert checks["catalog"]["found"] == "2 tables, all readable"
    assert all(row["what to do"] for row in checks.values() if row["state"] != "ok")


def test_doctor_finds_failures_and_suggests_fixes(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("tables", "--home", str(tmp_path / "lake"))
    (tmp_path / "lake" / "catalog.db").write_bytes(b"not a database" * 1000)
    monkeypatch.setenv("LAKE_SPARK__JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("LAKE_CACHE", str(tmp_path / "cache"))
    done = call("doctor", "-o", "json", "--home", str(tmp_path / "lake"))
    assert "checks failed." in done.err
    checks = {row["check"]: row for row in done.rows()}
    assert checks["catalog"]["state"] == checks["java"]["state"] == "fail"
    assert "backup" in checks["catalog"]["what to do"]
    assert "LAKE_SPARK__JAVA_HOME" in checks["java"]["what to do"]
    assert checks["jars"]["state"] == "warn"
    assert "lake setup" in checks["jars"]["what to do"]


def test_doctor_fails_when_a_check_fails(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SPARK__JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("LAKE_CACHE", str(tmp_path / "cache"))
    done = call("doctor", "--home", str(tmp_path / "lake"))
    assert "checks failed." in done.err
    assert done.code == 1


def test_doctor_checks_the_profile_in_use(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for server in ("STORAGE", "POSTGRES", "TRINO"):
        monkeypatch.setenv(f"LAKE_STACK__{server}_PORT", "1")  # nothing listens there
    done = call("doctor", "-o", "json", "--profile", "sql", "--home", str(tmp_path / "lake"))
    checks = {row["check"]: row for row in done.rows()}
    assert {checks[name]["state"] for name in ("catalog", "storage", "servers")} == {"fail"}
    assert checks["servers"]["found"] == "not running: storage, postgres, trino"
    assert checks["servers"]["what to do"] == "lake --profile sql up"
    checks = {row["check"]: row for row in call("doctor", "-o", "json").rows()}
    assert checks["storage"]["state"] == checks["servers"]["state"] == "ok"


@pytest.mark.parametrize("engine", ["spark", "spark-connect", "duckdb", "pyiceberg"])
def test_connect_prints_python(call: Any, engine: str) -> None:
    done = call("connect", engine)
    assert (done.code, done.err) == (0, "")
    ast.parse(done.out)


def test_the_printed_duckdb_and_pyiceberg_read_the_tables(call: Any) -> None:
    program = call("connect", "duckdb").out + '\nprint("rows:", len(table("shop.orders").fetchall()))\n'
    program += call("connect", "pyiceberg").out
    program += '\nprint("rows:", catalog.load_table("shop.orders").scan().to_arrow().num_rows)\n'
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    # DuckDB prints a progress bar, too, when it is slow.
    assert re.findall(r"rows: (\d+)", done.stdout) == ["3", "3"], done.stderr


def test_status_of_a_lake_without_spark(call: Any) -> None:
    (row,) = call("status", "-o", "json").rows()
    assert row == {"service": "spark", "state": "stopped", "url": None, "pid": None, "memory_mb": None}
    assert "Nothing was running." in call("down").err


# ---- drop and undrop --------------------------------------------------------------------------------------------


def test_drop_and_undrop(call: Any, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

    from lakehouse.catalogs.sql import SqlCatalog, open_database

    home = tmp_path / "lake"
    call("tables", "--home", str(home))
    catalog = SqlCatalog(open_database(home / "catalog.db"), f"file://{home}/warehouse")
    pyiceberg = PyIceberg("lake", **catalog.pyiceberg_properties())
    pyiceberg.create_namespace("shop")
    import pyarrow

    pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    pyiceberg.close()
    assert call("drop", "shop.t", "--home", str(home)).code == 0
    (drop,) = call("tables", "--dropped", "-o", "json", "--home", str(home)).rows()
    assert (drop["table"], drop["id"]) == ("shop.t", "1") and drop["dropped_at"]
    assert call("tables", "-o", "json", "--home", str(home)).rows() == []
    assert "is restored with 0 rows" in call("undrop", "shop.t", "--home", str(home)).err
    assert [row["table"] for row in call("tables", "-o", "json", "--home", str(home)).rows()] == ["shop.t"]
