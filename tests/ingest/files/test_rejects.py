"""Rows that cannot be read are set aside with their place, reason and text; none is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakehouse.ingest.files import RecordedColumn, StageOptions, read_rejects
from lakehouse.ingest.files.errors import BadRowError

from .conftest import read_paths

Reader = Callable[..., Any]


def test_ragged_rows_are_rejected_with_line_reason_and_text(read: Reader) -> None:
    told = read('a,b\n1,2\n3\n"x\ny",5\n4,5,6\n7,8\n')
    assert told.rows == [("1", 2), ("x\ny", 5), ("7", 8)]
    assert [(reject.line, reject.reason, reject.raw) for reject in told.rejects] == [
        (3, "has 1 fields instead of 2", "3"),
        (6, "has 3 fields instead of 2", "4,5,6"),
    ]
    assert told.staged.rejected == 2


def test_the_first_bad_row_is_an_error_if_asked(read: Reader) -> None:
    with pytest.raises(BadRowError, match=r"line 3: has 1 fields instead of 2") as told:
        read("a,b\n1,2\n3\n4,5\n", options=StageOptions(400 << 20, 2, on_bad="fail"))
    assert (told.value.line, Path(told.value.file).name) == (3, "in.csv")


def test_a_value_that_does_not_fit_is_an_error_if_asked(read: Reader) -> None:
    with pytest.raises(BadRowError, match=r"line 3: a: 'x' is no bigint"):
        read("a,b\n1,2\nx,3\n", recorded=[RecordedColumn("a", "bigint")], options=StageOptions(on_bad="fail"))


def test_a_quote_that_is_never_closed_costs_one_line_only(read: Reader) -> None:
    # Left to itself, DuckDB drops a hundred thousand rows here and reports a single one.
    lines = [f"{number},value {number}" for number in range(200_000)]
    lines[150] = '150,"value'
    told = read("a,b\n" + "\n".join(lines) + "\n")
    assert len(told.rows) == 199_999
    assert [(reject.line, reject.raw) for reject in told.rejects] == [(152, '150,"value')]
    assert "quote" in told.rejects[0].reason


def test_text_after_a_closing_quote_is_not_dropped(read: Reader) -> None:
    told = read('a,b\n"1"x,2\n3,4\n"5",6\n')
    assert told.rows == [(3, 4), (5, 6)]
    assert told.rejects[0].raw == '"1"x,2'


def test_a_file_of_bad_rows_only_gives_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n" + "1\n2,3\n" * 10)
    told = read_paths([tmp_path / "a.csv"], tmp_path / "staged")
    assert told.rows == []
    assert len(told.rejects) == 20


def test_many_rejects_are_all_kept(read: Reader) -> None:
    told = read("a,b\n1,1\n" + "x,1\n" * 30_000, recorded=[RecordedColumn("a", "bigint")])
    assert len(told.rejects) == told.staged.rejected == 30_000
    assert told.rejects[-1].line == 30_002
    assert len(list(read_rejects(told.staged, most=7))) == 7
