"""The fingerprint of a table's code changes with what decides its rows, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lakehouse.core.dataclass import dataclass
from lakehouse.pipelines import Table
from lakehouse.quality import at_least, expect, unique
from lakehouse.runs.code import code_fingerprint

MODULE = '''
"""A module of a user."""
from words_of_the_user import ENDING, greet

LIMIT = 10
def helper(rows):
    return rows + LIMIT

def build(rows):
    """The rows."""
    return [helper(row) for row in rows] + [greet(ENDING)]
'''
WORDS = "ENDING = 'x'\ndef greet(word):\n    return word.upper()\n"


@dataclass(frozen=True)
class Amount:
    """A class that the function of a table uses."""

    value: int


@pytest.fixture
def fingerprint_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """The fingerprint of a table whose function is in a module with this text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def compute(module: str, words: str) -> str:
        for name, text in (("words_of_the_user", words), ("module_of_the_user", module)):
            monkeypatch.delitem(sys.modules, name, raising=False)
            loaded = ModuleType(name)
            loaded.__file__ = str(tmp_path / f"{name}.py")
            monkeypatch.setitem(sys.modules, name, loaded)
            exec(compile(text, f"{name}.py", "exec"), vars(loaded))
        return code_fingerprint(Table("shop.rows", sys.modules["module_of_the_user"].build, inputs=("shop.raw",)))

    return compute


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[helper(row)", "[helper(row) + 1"),
        ("LIMIT = 10", "LIMIT = 11"),
        ("rows + LIMIT", "rows - LIMIT"),
        ("ENDING = 'x'", "ENDING = 'y'"),
        ("word.upper()", "word.lower()"),
    ],
    ids=["function", "constant", "helper", "constant of another module", "function of another module"],
)
def test_it_changes_with_everything_that_the_function_uses(
    fingerprint_of: Callable[[str, str], str], old: str, new: str
) -> None:
    before = fingerprint_of(MODULE, WORDS)
    assert fingerprint_of(MODULE.replace(old, new), WORDS.replace(old, new)) != before
    assert fingerprint_of(MODULE, WORDS) == before


def test_comments_docstrings_and_places_do_not_count(fingerprint_of: Callable[[str, str], str]) -> None:
    other = "# A comment.\n\n\nOTHER = 3\n" + MODULE.replace('"""The rows."""', '"""The rows, explained."""')
    assert fingerprint_of(other, WORDS) == fingerprint_of(MODULE, WORDS)


def same(rows: Any, factor: int = 1) -> Any:
    return rows


def test_rules_and_the_declaration_count_and_checks_do_not() -> None:
    table = partial(Table, "shop.rows", same, ("shop.raw",))
    known = {
        "plain": code_fingerprint(table()),
        "key": code_fingerprint(table(key=("id",))),
        "partition_by": code_fingerprint(table(partition_by="date")),
        "rule": code_fingerprint(table(rules=(at_least("x", 1),))),
        "other bound": code_fingerprint(table(rules=(at_least("x", 2),))),
        "own rule": code_fingerprint(table(rules=(expect("own", lambda: 1 > 0),))),  # type: ignore[arg-type, return-value]
        "other own rule": code_fingerprint(table(rules=(expect("own", lambda: 1 > 1),))),  # type: ignore[arg-type, return-value]
        "argument": code_fingerprint(Table("shop.rows", partial(same, factor=2), ("shop.raw",))),
    }
    assert len(set(known.values())) == len(known)
    assert code_fingerprint(table(checks=(unique("id"),))) == known["plain"]


def test_it_is_the_same_in_another_process(tmp_path: Path) -> None:
    code = (
        "from lakehouse.lake.assemble import all_pipelines; from lakehouse.config.load import load_settings\n"
        "from lakehouse.runs.code import code_fingerprint; from lakehouse.pipelines import Table\n"
        "for p in all_pipelines(load_settings()).values():\n"
        "    for t in p.tables:\n"
        "        print(t.name, code_fingerprint(t) if isinstance(t, Table) else '')\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "LAKE_HOME": str(tmp_path / "lake")},
        ).stdout
        for seed in ("1", "2")
    }
    (output,) = outputs
    assert "gold.volatility " in output


def test_the_first_instance_of_a_class_does_not_change_it() -> None:
    def transform(rows: Any) -> Any:
        return Amount(rows)

    table = Table("a.b", transform)
    before = code_fingerprint(table)
    Amount(1)
    assert code_fingerprint(table) == before
