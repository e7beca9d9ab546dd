"""The guard: a corpus of refused and allowed statements, and no way around it by spelling."""

from __future__ import annotations

import random
import re

import pytest
from tests.support.repetitions import repetitions
from tests.support.statement_corpus import ALLOWED_SPARK, ALLOWED_TRINO, REFUSED_SPARK, REFUSED_TRINO

from lakehouse.core.errors import LakeError
from lakehouse.query.sql.parser import parse
from lakehouse.query.sql.tokens import blank_comments, tokenize

REFUSED = [("spark", sql) for sql in REFUSED_SPARK] + [("trino", sql) for sql in REFUSED_TRINO]
ALLOWED = [("spark", sql) for sql in ALLOWED_SPARK] + [("trino", sql) for sql in ALLOWED_TRINO]


def test_the_corpus_is_large() -> None:
    assert len(set(REFUSED)) >= 120
    assert len(set(ALLOWED)) >= 60


@pytest.mark.parametrize(("dialect", "sql"), REFUSED)
def test_a_harmful_statement_is_refused(dialect: str, sql: str) -> None:
    with pytest.raises(LakeError) as refused:
        parse(sql.replace("\\n", "\n"), dialect=dialect)
    assert refused.value.is_user_error
    assert refused.value.message


@pytest.mark.parametrize(("dialect", "sql"), ALLOWED)
def test_an_everyday_statement_is_allowed(dialect: str, sql: str) -> None:
    assert parse(sql.replace("\\n", "\n"), dialect=dialect).kind in ("read", "write", "drop", "session", "other")


@pytest.mark.parametrize(
    ("dialect", "sql"), [*ALLOWED, ("spark", "select 21L, 1.5BD, 2S, 3Y, 1e3D, 4F, X'ff', r'\\d' from shop.t")]
)
def test_a_statement_without_comments_stays_as_it_is(dialect: str, sql: str) -> None:
    if "--" not in sql and "/*" not in sql.replace("/*+", ""):
        assert blank_comments(sql, tokenize(sql, dialect)) == sql


@pytest.mark.faults
@pytest.mark.parametrize("dialect", ["spark", "trino"])
def test_no_spelling_gets_a_harmful_statement_through(dialect: str) -> None:
    chance = random.Random(14)
    corpus = [sql for engine, sql in REFUSED if engine == dialect]
    for _ in range(repetitions(2_000, 100_000)):
        sql = _respelled(chance.choice(corpus), chance, dialect)
        with pytest.raises(LakeError):
            pytest.fail(f"{sql!r} is a statement of kind {parse(sql, dialect=dialect).kind}")


def _respelled(sql: str, chance: random.Random, dialect: str) -> str:
    """Other case, comments, white space and quotes, which mean the same to an engine."""
    quote = {"spark": "`", "trino": '"'}[dialect]
    parts = re.findall(r"'[^']*'|`[^`]*`|\"[^\"]*\"|\w+|\s+|.", sql)
    written = [chance.choice(["", "", " ", "/* x */ ", "-- x\n", "/* ; */", "\t\n"])]
    for place, part in enumerate(parts):
        if part.isspace():
            part = chance.choice([" ", "  ", "\n", "/**/", " /* select 1 */ ", "\t", " -- '\n"])
        elif part[0].isalpha():
            part = chance.choice([part, part.upper(), part.title()])
            # A dot makes it part of a name, and no keyword.
            if "." in (parts[place - 1] if place else "", parts[place + 1] if place + 1 < len(parts) else ""):
                part = chance.choice([part, f"{quote}{part}{quote}"])
        written.append(part)
    return "".join(written) + chance.choice(["", ";", " -- x", "\n;\n", " /* y */"])
