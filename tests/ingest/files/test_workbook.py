"""Excel workbooks: the first sheet or a named one, with the types of its cells."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from tests.support.workbook import DAY, workbook

from lakehouse.core.errors import DamagedFileError, EmptyFileError, UnknownChoiceError

Reader = Callable[..., Any]
ORDERS = [
    ["Nr", "Größe", "PLZ", "Day", "Paid", "Größe"],
    [None] * 6,
    [1, 1.5, "01067", (DAY,), True, "x"],
    [2, None, "5", (DAY + 1,), False, "y"],
]


@pytest.mark.parametrize("name", ["orders.xlsx", "orders.csv"])
def test_a_workbook_is_read_with_the_types_of_its_cells(read: Reader, name: str) -> None:
    result = read(workbook(Orders=ORDERS, Other=[["a"], [1]]), name)
    assert result.types == {
        "nr": "bigint",
        "größe": "double",
        "plz": "string",
        "day": "date",
        "paid": "boolean",
        "größe_2": "string",
    }
    assert result.rows == [
        (1, 1.5, "01067", date(2023, 3, 15), True, "x"),
        (2, None, "5", date(2023, 3, 16), False, "y"),
    ]


def test_another_sheet_and_one_without_a_header_are_read(read: Reader) -> None:
    book = workbook(Orders=ORDERS, Other=[["a", 1], ["b", 2]])
    assert read(book, "b.xlsx", sheet="Other", header=False).rows == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("above", [[["Orders of 2026"], [None], ["in", "EUR"]], [[None], [None], ["Orders"]]])
def test_rows_above_the_header_of_a_sheet_are_skipped(read: Reader, above: list[list[Any]]) -> None:
    result = read(workbook(Orders=[*above, ["Nr", "Day"], [1, (DAY,)]]), "b.xlsx", skip_rows=3)
    assert result.types == {"nr": "bigint", "day": "date"}
    assert result.rows == [(1, date(2023, 3, 15))]


def test_a_sheet_without_a_row_below_the_skipped_ones_says_so(read: Reader) -> None:
    with pytest.raises(EmptyFileError, match="The sheet Orders of .* has nothing below its first 4 rows"):
        read(workbook(Orders=ORDERS), "b.xlsx", skip_rows=4)


def test_a_sheet_that_there_is_not_names_those_that_there_are(read: Reader) -> None:
    with pytest.raises(UnknownChoiceError, match="Nope"):
        read(workbook(Orders=ORDERS), "b.xlsx", sheet="Nope")


def test_an_empty_sheet_says_so(read: Reader) -> None:
    with pytest.raises(EmptyFileError, match="no values in its sheet Orders") as error:
        read(workbook(Orders=[], Other=[["a"], [1]]), "b.xlsx")
    assert error.value.hint.endswith("one of: Other")


def test_a_workbook_with_paths_of_windows_is_read(read: Reader) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook(Orders=ORDERS))) as book, zipfile.ZipFile(packed, "w") as odd:
        for name in book.namelist():
            entry = zipfile.ZipInfo()
            entry.filename = name.replace("/", "\\")
            odd.writestr(entry, book.read(name))
    assert len(read(packed.getvalue(), "b.xlsx").rows) == 2


def test_a_damaged_workbook_says_so(read: Reader) -> None:
    with pytest.raises(DamagedFileError, match="cannot be read"):
        read(b"\xd0\xcf\x11\xe0" + b"\x00" * 600, "old.xls")


def test_without_the_reader_the_error_names_the_extra(tmp_path: Any) -> None:
    (tmp_path / "b.xlsx").write_bytes(workbook(Orders=ORDERS))
    script = (
        "import sys; sys.modules['python_calamine'] = None\n"
        "from lakehouse.ingest.files import discover, plan_files\n"
        "plan_files(discover([sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "b.xlsx")], capture_output=True, text=True)
    assert "NotInstalledError" in done.stderr and "python-calamine" in done.stderr
