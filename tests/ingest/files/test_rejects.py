"""Rows that cannot be read are rejected with line, reason and text; none is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakehouse.core.errors import BadRowError
from lakehouse.ingest.files import RecordedColumn, StageOptions, read_rejects

from .conftest import read_paths

Reader = Callable[..., Any]


def test_ragged_rows_are_rejected_with_line_reason_and_text(read: Reader) -> None:
    result = read('a,b\n1,2\n3\n"x\ny",5\n4,5,6\n7,8\n')
    assert result.rows == [("1", 2), ("x\ny", 5), ("7", 8)]
    assert [(reject.line, reject.reason, reject.raw) for reject in result.rejects] == [
        (3, "has 1 field instead of 2", "3"),
        (6, "has 3 fields instead of 2", "4,5,6"),
    ]
    assert result.staged.rejected == 2


@pytest.mark.parametrize(("row", "fields"), [("1,2,3,4,5,6,7", 7), ('1,"a,b",3,4,5', 5), ("1,2", 2), ("1", 1)])
def test_the_reason_has_the_number_of_fields_of_the_row(read: Reader, row: str, fields: int) -> None:
    result = read(f"a,b,c\n1,2,3\n4,5,6\n{row}\n7,8,9\n")
    assert [reject.reason for reject in result.rejects] == [f"has {fields} field{'s' * (fields > 1)} instead of 3"]


def test_the_first_bad_row_is_an_error_on_request(read: Reader) -> None:
    with pytest.raises(BadRowError, match=r"line 3: has 1 field instead of 2") as error:
        read("a,b\n1,2\n3\n4,5\n", options=StageOptions(400 << 20, 2, on_bad="fail"))
    assert (error.value.line, Path(error.value.file).name) == (3, "in.csv")


def test_a_value_of_another_type_is_an_error_on_request(read: Reader) -> None:
    with pytest.raises(BadRowError, match=r"line 3: a: 'x' is not a valid bigint"):
        read("a,b\n1,2\nx,3\n", recorded=[RecordedColumn("a", "bigint")], options=StageOptions(on_bad="fail"))


def test_a_quote_that_is_never_closed_costs_one_line_only(read: Reader) -> None:
    # DuckDB alone drops a hundred thousand rows here and reports one.
    lines = [f"{number},value {number}" for number in range(200_000)]
    lines[150] = '150,"value'
    result = read("a,b\n" + "\n".join(lines) + "\n")
    assert len(result.rows) == 199_999
    assert [(reject.line, reject.raw) for reject in result.rejects] == [(152, '150,"value')]
    assert "quote" in result.rejects[0].reason


def test_text_after_a_closing_quote_is_not_dropped(read: Reader) -> None:
    result = read('a,b\n"1"x,2\n3,4\n"5",6\n')
    assert result.rows == [(3, 4), (5, 6)]
    assert result.rejects[0].raw == '"1"x,2'


def test_a_file_of_bad_rows_only_gives_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n" + "1\n2,3\n" * 10)
    result = read_paths([tmp_path / "a.csv"], tmp_path / "staged")
    assert result.rows == []
    assert len(result.rejects) == 20


def test_many_rejects_are_all_kept(read: Reader) -> None:
    result = read("a,b\n1,1\n" + "x,1\n" * 30_000, recorded=[RecordedColumn("a", "bigint")])
    assert len(result.rejects) == result.staged.rejected == 30_000
    assert result.rejects[-1].line == 30_002
    assert len(list(read_rejects(result.staged, limit=7))) == 7
