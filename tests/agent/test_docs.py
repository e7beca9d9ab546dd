"""docs/ask.md shows questions with the answers that they really have."""

from __future__ import annotations

import io
import re
from pathlib import Path

from lakehouse.agent.ask import Asker
from lakehouse.cli.show import write_rows

PAGE = Path(__file__).parents[2] / "docs" / "ask.md"


def shown(asker: Asker, question: str) -> str:
    """What the page has below a question."""
    answer = asker.ask(question)
    if not answer.answered:
        return "\n".join([answer.reason, *(f"  {choice}" for choice in answer.choices)])
    out = io.StringIO()
    write_rows(list(answer.columns), answer.rows, "table", out)
    return f"{answer.reading}\n{out.getvalue().rstrip()}"


def test_every_question_of_the_page_has_the_answer_that_it_shows(asker: Asker) -> None:
    blocks = re.findall(r'^\$ lake ask "([^"\n]*)"\n((?:(?!\$|```).*\n)+)', PAGE.read_text(), re.MULTILINE)
    assert len(blocks) >= 10
    for question, answer in blocks:
        assert shown(asker, question) == answer.rstrip(), question
