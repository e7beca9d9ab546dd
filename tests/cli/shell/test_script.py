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


OTHER_SHELLS = """.tables shop.o*
\\d shop.orders
\\dt shop.e*
\\l
.mode markdown
select 1 as one, 'a|b' as two;
\\mode box
select 1 as one;
\\mode vertical
select 1 as one;
.mode ndjson
select 1 as one, null as two;
.mode csv
"""


def test_commands_and_modes_of_other_shells(run: Command) -> None:
    done = run("shell", input=OTHER_SHELLS + "select 'last' as word;\n")
    assert done.returncode == 0, done.stderr
    for text in (
        "shop.orders  iceberg",
        "price   decimal(22,2)",
        "shop.empty  iceberg",
        "shop       2",
        "| one | two  |\n|----:|------|\n|   1 | a\\|b |\n",
        "┌─────┐\n│ one │\n├─────┤\n│   1 │\n└─────┘\n",
        "── row 1",
        '{"one": 1, "two": null}\n',
        "word\nlast\n",
    ):
        assert text in done.stdout, text


def test_what_another_shell_has_and_this_one_has_not_names_our_word(run: Command) -> None:
    done = run("shell", "--continue", input=".dump\n\\du\n.open x\ntabels\nselect 1 as last;\n")
    assert done.returncode == 2 and "last" in done.stdout
    for text in ("lake export", "lake keys list", "lake --home DIR shell", "Did you mean tables?"):
        assert text in done.stderr, text


def test_a_typo_is_a_typo(run: Command) -> None:
    done = run("shell", "--continue", input="selct a;\nselct 1;\ncreate viw v as select 1;\nshow tabels;\n")
    assert done.returncode == 2
    assert "not allowed" not in done.stderr
    for meant in ("SELECT", "CREATE VIEW", "SHOW TABLES"):
        assert f"Did you mean {meant}?" in done.stderr


def test_copy_writes_whole_results_and_loads_files(run: Command, tmp_path: Path) -> None:
    csv, markdown = tmp_path / "some rows.csv", tmp_path / "all.md"
    text = (
        f"\\copy (select id, ';' as mark from shop.orders where id = 1) to '{csv}'\n\\copy shop.orders to {markdown};\n"
    )
    done = run("shell", input=text)
    assert (done.returncode, done.stdout) == (0, "")
    assert csv.read_text() == "id,mark\n1,;\n"
    assert len(markdown.read_text().splitlines()) == 5
    done = run("shell", input="\\copy shop.orders into x\n")
    assert "\\copy is used as:" in done.stderr


def test_named_queries(run: Command, tmp_path: Path) -> None:
    environment = {"LAKE_SHELL__HISTORY": str(tmp_path / "history")}
    text = "select item from shop.orders where id = :n;\n"
    done = run("shell", input=f"\\set n 1\n{text}\\save item\n\\save two select 2 as two;\n", env=environment)
    assert (done.returncode, done.stdout.count("tea")) == (0, 1), done.stderr
    done = run(
        "shell", input="\\set n 1\n\\query item\n\\n TWO\n\\queries\n\\forget two\n\\query two\n", env=environment
    )
    assert done.returncode == 2
    assert "tea" in done.stdout and "two\n---\n2\n" in done.stdout and "where id = :n" in done.stdout
    assert "There is no query two." in done.stderr
    assert (tmp_path / "shell_queries.json").stat().st_mode & 0o077 == 0


def test_statements_of_the_command_line(run: Command) -> None:
    done = run(
        "shell", "-c", "select 1 as one", "-c", "tables shop.e*", "-c", "select 2 as two -- the last", "-o", "csv"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("one\n1\ntable,") and done.stdout.endswith("two\n2\n")
    assert run("shell", "-c", "select 1", "-f", "x.sql").returncode == 2


def test_a_question_is_answered_and_the_next_one_refers_to_it(run: Command) -> None:
    done = run("shell", "-o", "csv", input='ask "shop.orders by item"\nask only tea\nask how many unicorns\n')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["item,orders", "tea,1"], "the last answer is about tea only"
    assert "of shop.orders by item where item is tea" in done.stderr + done.stdout
    assert 'I do not know the word "unicorns".' in done.stderr + done.stdout
