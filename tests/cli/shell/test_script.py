"""Scripts by -f and on standard input: results on stdout, errors on stderr, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Command, command_for


@pytest.fixture(scope="module")
def run(shop_home: Path) -> Command:
    return command_for(shop_home)


def test_a_script_on_standard_input(run: Command) -> None:
    done = run(
        "shell", "-o", "csv", input="\\set item tea\nselect id from shop.orders where item = :'item';\ntables shop.e*\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == ["id", "1", "table,format,rows,bytes,key,changed_at"]


def test_the_first_error_ends_a_script_with_its_exit_code(run: Command, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("select 1 as one;\nselect nope from shop.orders;\nselect 3 as three;\n")
    done = run("shell", "-f", str(script))
    assert done.returncode == 2
    assert "one" in done.stdout and "three" not in done.stdout
    assert "nope" in done.stderr and "line 2" in done.stderr
    script.write_text(script.read_text() + "exit\nselect 4 as four;\n")
    done = run("shell", "-f", str(script), "--continue", "-o", "json")
    assert done.returncode == 2
    assert '"three": 3' in done.stdout and "four" not in done.stdout, "exit ends a script"
    assert json.loads(done.stderr)["error"] == "bad_sql"


WRONG = {
    "\\nope": "There is no command \\nope",
    "\\timin": "Did you mean \\timing?",
    "travel shop.orders": "travel is used as: travel TABLE WHEN",
    "diff shop.orders since yesterday": "diff is used as:",
    "branch rename a": "branch is used as:",
    "insert a.csv into shop.orders kee id": "insert is used as:",
    "insert nothing.csv into shop.orders": "nothing.csv",
    "history shop.order": "shop.orders",
    "run nothing": "There is no pipeline",
    "drop table shop.nothing;": "shop.nothing",
    "\\watch": "There is no statement to run again",
    "\\set limit many": "limit is a number of rows",
    "\\o /no/such/folder/x": "/no/such/folder/x cannot be written",
    "\\i nothing.sql": "nothing.sql cannot be read",
    "\\engine nope\nselect 1;": "Invalid value for engine: 'nope'",
    "\\x maybe": "Choose one of: auto, off, on",
}


def test_wrong_commands_state_their_use_and_the_shell_goes_on(run: Command) -> None:
    # \\watch comes first, while there is no statement to repeat.
    lines = sorted(WRONG, key=lambda line: line != "\\watch")
    done = run("shell", "--continue", input="\n".join([*lines, "select 1 as last;"]))
    assert done.returncode == 2
    for line, message in WRONG.items():
        assert message in done.stderr, line
    assert "Continue?" not in done.stderr, "a script asks nothing"
    assert done.stderr.count("Error:") == len(WRONG) + 1, "the last statement has the unknown engine, too"


def test_a_script_that_is_not_there(run: Command) -> None:
    done = run("shell", "-f", "nothing.sql")
    assert done.returncode == 2
    assert "nothing.sql cannot be read: No such file" in done.stderr
