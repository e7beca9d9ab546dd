"""`lake init`, `config show`, `completion`, `doctor`, `connect`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.load import all_settings, load_settings

LAKE = Path(sys.executable).parent / "lake"


# ---- init -------------------------------------------------------------------------------------------------------


def test_init_twice_keeps_what_is_there(call: Any, tmp_path: Path) -> None:
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
    assert set(settings.origins) == {"pipelines"}, "the sample pipeline"
    text = (tmp_path / "lake.toml").read_text()
    for name, part, _ in all_settings():
        assert name.rpartition(".")[2] in text
        assert part.metadata["help"] in text


def test_the_written_lake_toml_holds_the_defaults_when_its_lines_are_taken_in(call: Any, tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    call("init", str(tmp_path / "with"))
    file = tmp_path / "with" / "lake.toml"
    lines = file.read_text().splitlines()
    taken_in = [line.removeprefix("# ") if " = " in line or line.startswith("# [") else line for line in lines]
    file.write_text("\n".join(taken_in))
    found = load_settings({}, tmp_path / "with", {})
    default = load_settings({}, tmp_path / "without", {})
    taken = {"origins": {}, "home": default.home, "dbt": default.dbt, "pipelines": (), "sources": {}}
    assert replace(found, **taken) == default
    assert "spark.master" in found.origins
    assert found.sources == {"market": {"path": str(tmp_path / "with" / "bars")}}


def test_the_written_env_example_holds_the_defaults(call: Any, tmp_path: Path) -> None:
    call("init", str(tmp_path))
    lines = (tmp_path / ".env.example").read_text().splitlines()
    (tmp_path / ".env").write_text("\n".join(line.removeprefix("# ") for line in lines if "LAKE_" in line))
    (tmp_path / "lake.toml").unlink()
    found = load_settings({}, tmp_path, {})
    (tmp_path / ".env").unlink()
    assert replace(found, origins={}) == load_settings({}, tmp_path, {})
    assert "home" in found.origins


def test_the_written_script_is_python(call: Any, tmp_path: Path) -> None:
    call("init", str(tmp_path))
    assert ast.parse((tmp_path / "first.py").read_text()).body
    assert ast.parse((tmp_path / "shop.py").read_text()).body


def test_init_where_nothing_can_be_written_says_so(call: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    told = call("init", str(tmp_path / "file"))
    assert (told.code, told.out) == (2, "")
    assert "lake init DIR" in told.err
    assert (tmp_path / "file").read_text() == "mine"


# ---- config show ------------------------------------------------------------------------------------------------


def test_config_show_says_each_value_and_where_it_came_from(lake_command: Any, tmp_path: Path, home: Path) -> None:
    (tmp_path / "lake.toml").write_text('[query]\nengine = "duckdb"\n[spark.conf]\n"spark.x.password" = "hunter2"\n')
    (tmp_path / ".env").write_text("LAKE_SPARK__IDLE_MINUTES=3\n")
    told = lake_command("config", "show", "-o", "json", cwd=tmp_path, env={"LAKE_SPARK__MASTER": "local[1]"})
    assert told.returncode == 0
    import json

    shown = {row["setting"]: (row["value"], row["from"]) for row in json.loads(told.stdout)}
    assert shown["home"] == (str(home), "environment: LAKE_HOME")
    assert shown["query.engine"] == ("duckdb", str(tmp_path / "lake.toml"))
    assert shown["spark.idle_minutes"] == ("3.0", str(tmp_path / ".env"))
    assert shown["spark.master"] == ("local[1]", "environment: LAKE_SPARK__MASTER")
    assert shown["profile"] == ("embedded", "default")
    assert "hunter2" not in told.stdout + told.stderr
    assert not home.exists()


def test_a_wrong_setting_is_told_by_every_command(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_QUERY__ENGIN", "duckdb")
    for command in (["tables"], ["config", "show"], ["status"]):
        told = call(*command)
        assert told.code == 2
        assert "Did you mean query.engine?" in told.err


@pytest.mark.parametrize("setting", ["LAKE_QUERY__MEMORY_LIMIT", "LAKE_QUERY__LARGEST_SCAN"])
def test_a_size_that_is_none_is_told(call: Any, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(setting, "lots")
    told = call("tables")
    assert told.code == 2
    assert "'lots' is not a size" in told.err


# ---- completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(call: Any, shell: str) -> None:
    told = call("completion", shell)
    assert told.code == 0
    assert f"_LAKE_COMPLETE={shell}_complete" in told.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("lake his", "history", id="command"),
        pytest.param("lake describe shop.", "shop.orders", id="table"),
    ],
)
def test_the_shell_gets_its_completions(shop_home: Path, words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "LAKE_HOME": str(shop_home),
        "_LAKE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    told = subprocess.run([LAKE], capture_output=True, text=True, env=environment)
    assert expected in told.stdout
    assert told.stderr == ""


# ---- doctor, connect, status ------------------------------------------------------------------------------------


def test_doctor_looks_at_everything_without_starting_spark(call: Any) -> None:
    told = call("doctor", "-o", "json")
    found = {row["check"]: row for row in told.rows()}
    assert {"python", "java", "jars", "memory", "disk", "lake", "catalog", "duckdb", "spark"} <= set(found)
    assert found["catalog"]["found"] == "2 tables, all readable"
    assert all(row["what to do"] for row in found.values() if row["state"] != "ok")


def test_doctor_finds_what_is_wrong_and_says_what_to_do(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("tables", "--home", str(tmp_path / "lake"))
    (tmp_path / "lake" / "catalog.db").write_bytes(b"not a database" * 1000)
    monkeypatch.setenv("LAKE_SPARK__JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("LAKE_CACHE", str(tmp_path / "cache"))
    told = call("doctor", "-o", "json", "--home", str(tmp_path / "lake"))
    assert "checks failed." in told.err
    found = {row["check"]: row for row in told.rows()}
    assert found["catalog"]["state"] == found["java"]["state"] == "fail"
    assert "backup" in found["catalog"]["what to do"]
    assert "LAKE_SPARK__JAVA_HOME" in found["java"]["what to do"]
    assert found["jars"]["state"] == "warn"
    assert "lake setup" in found["jars"]["what to do"]


def test_doctor_fails_when_a_check_fails(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SPARK__JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("LAKE_CACHE", str(tmp_path / "cache"))
    told = call("doctor", "--home", str(tmp_path / "lake"))
    assert "checks failed." in told.err
    assert told.code == 1


@pytest.mark.parametrize("engine", ["spark", "spark-connect", "duckdb", "pyiceberg"])
def test_connect_prints_python(call: Any, engine: str) -> None:
    told = call("connect", engine)
    assert (told.code, told.err) == (0, "")
    ast.parse(told.out)


def test_the_printed_duckdb_and_pyiceberg_read_the_tables(call: Any) -> None:
    program = call("connect", "duckdb").out + '\nprint(len(table("shop.orders").fetchall()))\n'
    program += (
        call("connect", "pyiceberg").out + '\nprint(catalog.load_table("shop.orders").scan().to_arrow().num_rows)\n'
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout.split() == ["3", "3"], told.stderr


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
    ours = SqlCatalog(open_database(home / "catalog.db"), f"file://{home}/warehouse")
    theirs = PyIceberg("lake", **ours.pyiceberg_properties())
    theirs.create_namespace("shop")
    import pyarrow

    theirs.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    theirs.close()
    assert call("drop", "shop.t", "--home", str(home)).code == 0
    assert call("tables", "--dropped", "-o", "json", "--home", str(home)).rows() == [{"table": "shop.t"}]
    assert call("tables", "-o", "json", "--home", str(home)).rows() == []
    assert "is back, with 0 rows" in call("undrop", "shop.t", "--home", str(home)).err
    assert [row["table"] for row in call("tables", "-o", "json", "--home", str(home)).rows()] == ["shop.t"]
