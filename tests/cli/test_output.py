"""Output of the commands: values in each format, errors in one shape, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

LAKE = Path(sys.executable).parent / "lake"
CLOSED = "Error: The output cannot be written: standard output is closed.\nTo discard it: > /dev/null\n"


# ---- values -----------------------------------------------------------------------------------------------------


def test_json_is_one_array_of_row_objects(call: Any) -> None:
    done = call("sql", "select * from shop.orders order by id", "-o", "json")
    assert (done.code, done.err) == (0, "")
    first, second, third = done.rows()
    assert first == {
        "id": 1,
        "item": "tea",
        "price": "2.50",
        "weight": 1.5,
        "day": "2026-01-31",
        "at": "2026-01-31T12:30:00Z",
        "paid": True,
        "raw": "AP8=",
        "tags": ["a", "b"],
    }
    assert (second["price"], second["weight"], second["tags"]) == ("12345678901234567890.12", "nan", [])
    assert set(third.values()) == {3, None}


def test_no_rows_are_an_empty_array(call: Any) -> None:
    assert call("sql", "select * from shop.empty", "-o", "json").out == "[]\n"
    assert call("sql", "select id from shop.empty", "-o", "csv").out == "id\n"


def test_csv_can_be_read_back(call: Any) -> None:
    done = call("sql", "select id, item, price, weight, day, at from shop.orders order by id", "-o", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows == [
        ["id", "item", "price", "weight", "day", "at"],
        ["1", "tea", "2.50", "1.5", "2026-01-31", "2026-01-31T12:30:00Z"],
        ["2", 'a "quoted", one', "12345678901234567890.12", "nan", "", ""],
        ["3", "", "", "", "", ""],
    ]


@pytest.mark.parametrize(("column", "expected"), [("raw", "AP8="), ("paid", "true")])
def test_csv_has_values_that_other_tools_read(call: Any, column: str, expected: str) -> None:
    assert call("sql", f"select {column} from shop.orders where id = 1", "-o", "csv").out.split()[1] == expected


def test_a_table_is_plain_text_if_stdout_is_not_a_terminal(call: Any) -> None:
    done = call("sql", "select id, item, price from shop.orders where id <> 2 order by id")
    assert done.out.splitlines() == ["id  item  price", "--  ----  -----", "1   tea   2.50", "3   NULL  NULL"]
    assert "\x1b" not in done.out


def test_a_table_has_the_first_hundred_rows_and_json_all(call: Any) -> None:
    many = "select explode(sequence(1, 150)) as n"
    done = call("sql", many)
    assert len(done.out.splitlines()) == 102
    assert "--limit" in done.err
    assert len(call("sql", many, "-o", "json").rows()) == 150
    assert len(call("sql", many, "--limit", "120").out.splitlines()) == 122


def test_common_options_may_come_before_the_command(call: Any) -> None:
    assert call("-o", "json", "tables").rows() == call("tables", "-o", "json").rows()


def test_the_explanation_is_on_stderr_and_not_in_the_result(call: Any) -> None:
    done = call("sql", "select count(*) as n from shop.orders", "--explain", "-o", "json")
    assert done.rows() == [{"n": 3}]
    assert "engine: duckdb (a read of" in done.err
    assert "of 2 read" in done.err


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        pytest.param(["tables"], {"table", "format", "rows", "files", "bytes", "changed_at"}, id="tables"),
        pytest.param(["describe", "shop.orders"], {"table", "format", "columns", "key", "current"}, id="describe"),
        pytest.param(["history", "shop.orders"], {"id", "at", "operation", "rows_added", "branch"}, id="history"),
        pytest.param(["travel", "shop.orders", "now"], {"id", "item"}, id="travel"),
        pytest.param(["diff", "shop.orders", "--from", "now", "--key", "id"], set(), id="diff"),
        pytest.param(["status"], {"service", "state", "url", "pid", "memory_mb"}, id="status"),
        pytest.param(["config", "show"], {"setting", "value", "from", "meaning"}, id="config-show"),
        pytest.param(["tables", "--dropped"], set(), id="dropped"),
    ],
)
def test_every_listing_has_json_and_csv(call: Any, command: list[str], fields: set[str]) -> None:
    done = call(*command, "-o", "json")
    assert done.code == 0
    rows = done.rows()
    if fields:
        assert fields <= set(rows[0])
    else:
        assert rows == []
    if command[0] not in {"travel", "diff"}:  # they load DuckDB each time
        assert call(*command, "-o", "csv").code == call(*command).code == 0


def test_the_history_lists_snapshots_oldest_first(call: Any) -> None:
    rows = call("history", "shop.orders", "-o", "json").rows()
    assert [row["rows_total"] for row in rows] == [1, 3]
    assert [row["current"] for row in rows] == [False, True]
    first = rows[0]["id"]
    assert call("travel", "shop.orders", first, "-o", "json").rows()[0]["id"] == 1
    changes = call("diff", "shop.orders", "--from", first, "--key", "id", "-o", "json")
    assert [row["change"] for row in changes.rows()] == ["added", "added"]
    assert "2 added, 0 removed, 0 changed by key id" in changes.err


# ---- errors -----------------------------------------------------------------------------------------------------

ERRORS = [
    pytest.param(["sql", "select * from shop.ordrs"], "no_such_table", 2, id="unknown-table"),
    pytest.param(["sql", "select nope from shop.orders"], "bad_sql", 2, id="unknown-column"),
    pytest.param(["sql", "select 1; select 2"], "bad_sql", 2, id="two-statements"),
    pytest.param(["sql", ""], "bad_sql", 2, id="no-statement"),
    pytest.param(["sql", "select 1 / from x"], "bad_sql", 2, id="syntax"),
    pytest.param(["sql", "drop table shop.orders purge"], "not_supported", 2, id="purge"),
    pytest.param(["sql", "insert into shop.orders select 1", "--engine", "duckdb"], "not_supported", 2, id="engine"),
    pytest.param(["sql", "select * from shop.orders", "--as-of", "2020-01-01"], "bad_when", 2, id="before-the-first"),
    pytest.param(["describe", "shop.ordrs"], "no_such_table", 2, id="describe"),
    pytest.param(["history", "../x"], "bad_name", 2, id="bad-name"),
    pytest.param(["travel", "shop.orders", "2999-01-01"], "bad_when", 2, id="future"),
    pytest.param(["diff", "shop.orders", "--from", "nope"], "bad_when", 2, id="diff"),
    pytest.param(["rollback", "shop.orders", "--to", "nope"], "bad_when", 2, id="rollback"),
    pytest.param(["drop", "shop.nothing"], "no_such_table", 2, id="drop"),
    pytest.param(["undrop", "shop.nothing"], "not_dropped", 2, id="undrop"),
    pytest.param(["tables", "--profile", "stak"], "unknown_choice", 2, id="profile"),
    pytest.param(["tables", "--home", "/proc/lake"], "bad_home", 2, id="home"),
]


@pytest.mark.parametrize(("command", "code", "exit_code"), ERRORS)
def test_an_error_has_one_shape_in_json(call: Any, command: list[str], code: str, exit_code: int) -> None:
    done = call(*command, "-o", "json")
    assert (done.code, done.out) == (exit_code, "")
    error = json.loads(done.err)
    assert error["error"] == code
    assert error["message"]
    assert set(error) <= {"error", "message", "hint", "line", "column"}
    assert {"error", "message", "hint"} <= set(error)


@pytest.mark.parametrize(("command", "code", "exit_code"), [error for error in ERRORS if error.values[0][0] != "sql"])
def test_an_error_has_a_message_and_a_next_step(call: Any, command: list[str], code: str, exit_code: int) -> None:
    done = call(*command)
    assert (done.code, done.out) == (exit_code, "")
    assert done.err.startswith("Error: ")
    assert "Traceback" not in done.err


def test_a_usage_error_has_the_same_shape(call: Any) -> None:
    done = call("-o", "json", "sql", "--nope", "x")
    assert (done.code, done.out) == (2, "")
    assert json.loads(done.err) == {
        "error": "bad_usage",
        "message": json.loads(done.err)["message"],
        "hint": "lake sql --help",
    }


@pytest.mark.parametrize("command", [["sql", "--nope", "x"], ["nosuch"]], ids=["option", "command"])
def test_a_usage_error_has_the_same_shape_wherever_o_json_is(call: Any, command: list[str]) -> None:
    assert json.loads(call(*command, "-o", "json").err)["error"] == "bad_usage"


def test_a_sql_error_points_at_its_position(call: Any) -> None:
    done = call("sql", "select id,\n  naem\nfrom shop.orders")
    assert done.err.splitlines()[1:3] == ["    naem", "    ^"]
    error = json.loads(call("sql", "select 1 /\n  from x", "-o", "json").err)
    assert (error["line"], error["column"]) == (2, 3)


def test_an_unknown_table_names_the_nearest(call: Any) -> None:
    assert "Did you mean shop.orders" in call("sql", "select * from shop.ordrs").err


def test_a_wrong_profile_lists_the_valid_ones(call: Any) -> None:
    assert "Choose one of: embedded" in call("tables", "--profile", "stak").err


def test_debug_adds_the_traceback(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_DEBUG", "1")
    done = call("describe", "shop.ordrs")
    assert done.code == 2
    assert "Traceback (most recent call last)" in done.err
    assert "NoSuchTableError" in done.err
    assert "Error: There is no table shop.ordrs." in done.err


def test_debug_can_be_turned_off(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_DEBUG", "0")
    assert "Traceback" not in call("describe", "shop.ordrs").err


# ---- as a process -----------------------------------------------------------------------------------------------


def test_the_process_prints_the_same_as_the_function(lake_command: Any, shop_home: Path) -> None:
    right = lake_command("sql", "select count(*) as n from shop.orders", "-o", "json", "--home", str(shop_home))
    assert (right.returncode, right.stdout, right.stderr) == (0, '[{"n": 3}]\n', "")
    wrong = lake_command("sql", "select * from shop.ordrs", "-o", "json", "--home", str(shop_home))
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert json.loads(wrong.stderr)["error"] == "no_such_table"


def test_a_statement_comes_from_standard_input(lake_command: Any) -> None:
    done = lake_command("sql", "-", "-o", "csv", input="select 1 as n,\n  'a' as t;\n")
    assert (done.returncode, done.stdout) == (0, "n,t\n1,a\n")


def test_a_damaged_catalog_is_reported_and_not_changed(lake_command: Any, home: Path) -> None:
    lake_command("tables")
    damaged = b"not a database" * 1000
    (home / "catalog.db").write_bytes(damaged)
    done = lake_command("tables", "-o", "json")
    assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(done.stderr)["error"] == "bad_home"
    assert (home / "catalog.db").read_bytes() == damaged


def test_a_command_ends_after_its_threads_and_is_not_taken_apart() -> None:
    script = """if True:
        import atexit, sys, threading, time
        from lakehouse.cli import main

        class Kept:
            def __del__(self):
                print("taken apart")

        def work():
            time.sleep(1)
            print("thread")
            atexit.register(lambda: print("at exit"))

        kept = Kept()
        threading.Thread(target=work).start()
        sys.argv = ["lake", "--version"]
        main()
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n", 1)[1] == "thread\nat exit\n"


def with_closed_pipe(*arguments: str, home: Path, buffered: bool) -> tuple[int, str]:
    """Return the exit code and stderr of a command whose stdout is closed, as `| head` closes it."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "LAKE_HOME": str(home)}
    environment.pop("PYTHONUNBUFFERED", None)
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"
    done = subprocess.run([LAKE, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"]], ids=["help", "command"])
def test_a_closed_pipe_is_not_an_error(home: Path, arguments: list[str], buffered: bool) -> None:
    assert with_closed_pipe(*arguments, home=home, buffered=buffered) == (0, "")


def test_head_of_a_long_result_is_not_an_error(home: Path) -> None:
    command = f"{LAKE} sql 'select explode(sequence(1, 100000)) as n' -o csv | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "LAKE_HOME": str(home)},
    )
    assert (done.stdout, done.stderr) == ("n\n", "")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("sql 'select 1 as n' >&-", (1, "", CLOSED)),
        ("sql 'select 1 as n' -o csv >&-", (1, "", CLOSED)),
        ("--help >&-", (1, "", CLOSED)),
        ("sql 'select 1 as n' -o csv 2>&-", (0, "n\n1\n", "")),
        ("describe shop.none 2>&-", (2, "", "")),
        ("sql 'select 1 as n' >&- 2>&-", (1, "", "")),
        ("sql - -o csv <&-", None),
    ],
    ids=["table", "csv", "help", "stderr", "error", "both", "stdin"],
)
def test_a_closed_stream_is_no_traceback(home: Path, arguments: str, expected: tuple[int, str, str] | None) -> None:
    environment = {**os.environ, "LAKE_HOME": str(home)}
    done = subprocess.run(["bash", "-c", f"{LAKE} {arguments}"], capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr
    if expected:
        assert (done.returncode, done.stdout, done.stderr) == expected
    else:
        assert done.returncode and done.stderr.startswith("Error: ")


def test_a_full_disk_is_an_error_of_one_line(home: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [LAKE, "config", "show"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LAKE_HOME": str(home)},
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
