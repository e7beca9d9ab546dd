"""LakeShell in a real terminal: commands, editing, completion, display, and Ctrl-C."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pytest
from tests.support.processes import processor_seconds
from tests.support.servers.service import wait_for
from tests.support.terminal import CTRL_C, CTRL_D, CTRL_R, LAKE, LIMIT_S, RIGHT, TAB, UP, Terminal, shell

from lakehouse.cli.shell.display import Display

#: 9 thousand million pairs of rows: no machine joins them while a test waits.
JOIN = "select max(concat(a.id, b.id)) as largest from range(3000000) a join range(3000000) b on a.id % 1000 = b.id % 1000;"
#: Seconds in one call of a function, in which DuckDB does not look whether it shall stop.
DEAF = "select levenshtein(repeat('a', 120000), repeat('b', 120000));"


def test_sql_over_several_lines(terminal: Terminal) -> None:
    shown = terminal.run("select id,\r  item\rfrom shop.orders where id = 1;")
    assert "1  tea" in shown
    assert "1 row · duckdb" in shown
    # Up recalls the statement as a whole, not its last line.
    terminal.send(UP)
    terminal.until(lambda: terminal.text.count(".>   item") == 2)
    terminal.until(lambda: terminal.text.rstrip().endswith("from shop.orders where id = 1;"))
    terminal.send(CTRL_C)


def test_statements_on_one_line_run_until_one_fails(terminal: Terminal) -> None:
    shown = terminal.run("select 40 + 2 as a; select 50 + 3 as b; select 60 + 4 as c;")
    assert all(re.search(rf"^ *{answer}$", shown, re.MULTILINE) for answer in (42, 53, 64)), shown
    shown = terminal.run("select 70 + 5 as d; select nothing; select 80 + 6 as e; select 90 + 7 as f;")
    assert "75" in shown and "nothing" in shown and "The 2 statements after it did not run." in shown
    assert "86" not in shown and "97" not in shown


def test_tables_describe_history_travel_diff_and_log(terminal: Terminal) -> None:
    assert "shop.orders  iceberg     3" in terminal.run("tables")
    assert "decimal(22,2)" in terminal.run("describe shop.orders")
    assert "append" in terminal.run("history shop.orders")
    first = [line.split()[-1] for line in terminal.run("history shop.orders").splitlines() if line.startswith("id ")][0]
    assert "2.50" in terminal.run(f"travel shop.orders {first}")
    shown = terminal.run(f"diff shop.orders from {first} to now")
    assert "2 added, 0 removed, 0 changed" in shown
    assert "shop.orders" in terminal.run("log shop.orders")
    assert "There are no runs yet" in terminal.run("runs")


def test_branches_and_the_prompt(terminal: Terminal) -> None:
    assert "Created the branch exp" in terminal.run("branch create exp")
    assert terminal.run("use exp").endswith("shop exp>")
    assert "exp     main" in terminal.run("branch")
    assert "changed nothing" in terminal.run("branch diff exp")
    assert terminal.run("\\asof 1 hour ago").endswith("shop exp @1 hour ago>")
    assert "did not exist yet" in terminal.run("select * from shop.orders;")
    assert terminal.run("\\asof now").endswith("shop exp>")
    assert "Continue? [y/N]" in terminal.run("branch drop exp", until="[y/N]")
    assert terminal.run("n").endswith("shop exp>"), "refused, so the branch is still there"
    # A branch that is merged or dropped is gone, so the shell returns to main.
    merged = terminal.run("branch merge exp")
    assert "nothing to publish" in merged and merged.endswith("shop main>")
    terminal.run("branch create exp from main")
    terminal.run("use exp")
    terminal.run("branch drop exp", until="[y/N]")
    assert terminal.run("y").endswith("shop main>")


def test_settings_of_the_shell(terminal: Terminal, folder: Path) -> None:
    assert "Timing is off" in terminal.run("\\timing")
    assert " s\n" not in terminal.run("select 1 as one;")
    terminal.run("\\timing on")
    terminal.run("\\set city Oslo")
    assert "Oslo" in terminal.run("select :'city' as city;")
    terminal.run("\\set limit 2")
    assert "Only the first 2 rows are shown" in terminal.run("select id from shop.orders;")
    terminal.run("\\unset limit")
    terminal.run("\\o out.csv")
    assert "tea" not in terminal.run("select item from shop.orders where id = 1;")
    terminal.run("\\o")
    assert (folder / "out.csv").read_text() == "item\ntea\n"
    assert "── row 1" in (terminal.run("\\x on") and terminal.run("select 1 as one;"))
    terminal.run("\\x auto")
    assert "Engine: duckdb" in terminal.run("\\engine duckdb")
    terminal.run("\\engine auto")
    assert "travel TABLE WHEN" in terminal.run("help travel")
    shown = terminal.run("\\?")
    assert "\\watch" in shown and "insert FILE" in shown


def test_watch_repeats_until_ctrl_c(terminal: Terminal) -> None:
    terminal.run("select 41 + 1 as answer;")
    before = terminal.text.count("answer\n")
    terminal.send("\\watch 0.2\r")
    terminal.until(lambda: terminal.text.count("answer\n") >= before + 2)
    terminal.send(CTRL_C)
    terminal.wait("Stopped.")


def test_completion(terminal: Terminal) -> None:
    before = len(terminal.text.rstrip())
    terminal.send("describe shop.or")
    terminal.wait("describe shop.or", after=before)
    terminal.send(TAB)
    # The menu has the table, and Tab has put it into the line.
    terminal.wait("describe shop.orders", after=before)
    terminal.send("\r")
    terminal.read()
    terminal.send("\r")
    terminal.wait("decimal(22,2)", after=before)
    before = len(terminal.text.rstrip())
    terminal.send("select * from shop.orders where p")
    terminal.read(0.5)  # the columns are fetched in the background
    terminal.send("ri")
    terminal.wait("column", after=before)
    assert "price" in terminal.text[before:]


def test_the_first_popup_has_columns_and_conditions_of_joins(own_shop: Path, folder: Path) -> None:
    with shell(own_shop, folder, 100) as terminal:
        terminal.send("select * from shop.orders o join shop.empty e on ")
        terminal.wait("o.id = e.id")


def test_a_statement_of_the_history_is_suggested_and_taken_with_right(terminal: Terminal) -> None:
    terminal.run("select 'suggested' as word;")
    before = len(terminal.text.rstrip())
    terminal.send("select 'sugg")
    terminal.wait("select 'suggested' as word;", after=before)
    terminal.send(RIGHT + "\r")
    terminal.wait("1 row", after=before)


def test_commands_of_other_shells_end_with_their_line(terminal: Terminal) -> None:
    assert "shop.orders  iceberg     3" in terminal.run(".tables")
    assert "decimal(22,2)" in terminal.run("\\d shop.orders")
    assert "Did you mean tables?" in terminal.run("tabels")
    terminal.run(".mode box")
    assert "│ one │" in terminal.run("select 1 as one;")
    terminal.run("\\mode table")


def test_questions_are_asked_about_what_exists(terminal: Terminal) -> None:
    assert "[y/N]" not in terminal.run("branch drop nothing")
    assert "[y/N]" not in terminal.run("delete from shop.nothing;")
    terminal.run("delete from shop.orders;", until="[y/N]")
    terminal.run("n")


def test_a_second_shell_of_200_columns_has_the_history_of_the_first(
    terminal: Terminal, own_shop: Path, folder: Path
) -> None:
    terminal.run("select 'needle' as hay;")
    narrow = terminal.run("select * from shop.orders;")
    assert "── row 1" in narrow and "price  │" in narrow, "wide rows are vertical at 80 columns"
    with shell(own_shop, folder, 200) as second:
        second.send(CTRL_R + "needle")
        second.wait("select 'needle' as hay;")
        second.send("\r")
        second.read()
        second.send("\r")
        second.wait("1 row")
        wide = second.run("select * from shop.orders;")
        assert "── row 1" not in wide and "id  item             price" in wide
        assert all(len(line) <= 200 for line in wide.splitlines())
        second.read()
        second.send(CTRL_D)
        second.until(lambda: not second.is_alive())
    assert (folder / "history").stat().st_mode & 0o077 == 0


def seconds_shown(terminal: Terminal) -> int:
    """For how long the running statement runs, as the shell says; 0 if it does not."""
    shown = re.findall(r"(\d+) s · Ctrl-C stops it", terminal.text)
    return int(shown[-1]) if shown else 0


def test_ctrl_c_stops_a_join_and_not_the_shell(terminal: Terminal) -> None:
    terminal.run(JOIN, until="b.id % 1000;")
    terminal.until(lambda: seconds_shown(terminal) >= 1)
    first = seconds_shown(terminal)
    terminal.until(lambda: seconds_shown(terminal) > first)
    terminal.send(CTRL_C)
    terminal.wait("Stopped.", after=len(terminal.text.rstrip()) - 400)
    assert "1 row" in terminal.run("select 1 as still_here;"), "the next statement runs at once"
    assert "Ctrl-C stops it" not in terminal.text, "the line of a running statement goes with it"


def test_a_second_ctrl_c_leaves_a_statement_that_does_not_stop(own_shop: Path, folder: Path) -> None:
    with shell(own_shop, folder) as terminal:
        terminal.run(DEAF, until="120000));")
        terminal.wait("Ctrl-C stops it")
        terminal.send(CTRL_C)
        terminal.wait("stopping; Ctrl-C again goes on without it")
        terminal.send(CTRL_C)
        terminal.wait("The statement goes on until its engine ends it")
        assert "1 row" in terminal.run("select 1 as still_here;")
        terminal.send(CTRL_D)
        terminal.until(lambda: not terminal.is_alive(), what="the end of the shell, which does not wait for it,")


def test_ctrl_c_ends_lake_sql_without_a_traceback(own_shop: Path) -> None:
    environment = {**os.environ, "LAKE_HOME": str(own_shop)}
    process = pexpect.spawn(LAKE, ["sql", JOIN], env=environment, encoding="utf-8", timeout=LIMIT_S)
    wait_for(lambda: processor_seconds(process.pid) > 3)  # the start takes about one second of it
    process.sendintr()
    process.expect("Stopped.")
    process.expect(pexpect.EOF)
    process.close()
    assert process.exitstatus == 130
    assert "Traceback" not in str(process.before)


def test_ctrl_c_at_the_prompt_discards_the_line(terminal: Terminal) -> None:
    terminal.send("select wrong")
    terminal.read()
    terminal.send(CTRL_C)
    terminal.read()
    assert "1 row" in terminal.run("select 1 as right;")


def test_an_error_points_at_its_place(terminal: Terminal) -> None:
    shown = terminal.run("select nope from shop.orders;")
    assert "Error:" in shown and "^" in shown


def test_huge_cells_and_control_characters_stay_on_their_line(terminal: Terminal) -> None:
    shown = terminal.run("select repeat('x', 100000) as big, concat('a', chr(27), '[31m', chr(10), 'b') as odd;")
    assert "xxx…" in shown
    assert "a\\x1b[31m\\nb" in shown
    assert len(shown) < 5_000


def test_the_pager_and_the_editor_have_their_options(own_shop: Path, folder: Path) -> None:
    editor = folder / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/before/after/' \"$2\"\n")
    editor.chmod(0o700)
    with shell(own_shop, folder, PAGER="sed s/tea/COFFEE/", EDITOR=f"{editor} --wait") as terminal:
        assert "tea" in terminal.run("select item from shop.orders;"), "a short result needs no pager"
        assert "COFFEE" in terminal.run("select * from shop.orders;")
        terminal.run("select 'before' as word;")
        terminal.send("\\e\r")
        terminal.wait("select 'after' as word;")
        terminal.read()
        terminal.send("\r")
        terminal.wait("1 row", after=terminal.text.index("select 'after'"))


def test_without_a_pager_everything_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", "no-such-pager -x")
    Display(interactive=True).rows(["n"], [(number,) for number in range(500)])
    assert "499" in capsys.readouterr().out
