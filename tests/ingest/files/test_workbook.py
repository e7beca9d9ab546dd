"""Excel workbooks: the first sheet or a named one, with the types of its cells."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import date
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

import pytest

from lakehouse.core.errors import DamagedFileError, EmptyFileError, UnknownChoiceError

Reader = Callable[..., Any]
_NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
#: The number of a cell style that shows a number as a date, and days since 1899-12-30.
_DATE_STYLE, DAY = 1, 45000


def workbook(**sheets: list[list[Any]]) -> bytes:
    """The smallest workbook with these sheets; a date is a tuple of its day."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as book:
        root = f'<Relationship Id="r1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
        book.writestr("_rels/.rels", f'<Relationships xmlns="{_PACKAGE}">{root}</Relationships>')
        listed = "".join(
            f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>' for number, name in enumerate(sheets, start=1)
        )
        book.writestr(
            "xl/workbook.xml", f'<workbook {_NAMESPACE} xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>'
        )
        links = "".join(
            f'<Relationship Id="r{number}" Type="{_RELATIONS}/worksheet" Target="worksheets/s{number}.xml"/>'
            for number in range(1, len(sheets) + 1)
        )
        book.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}">{links}</Relationships>')
        book.writestr(
            "xl/styles.xml",
            f'<styleSheet {_NAMESPACE}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        )
        for number, rows in enumerate(sheets.values(), start=1):
            lines = (f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
            content = f"<worksheet {_NAMESPACE}><sheetData>{''.join(lines)}</sheetData></worksheet>"
            book.writestr(f"xl/worksheets/s{number}.xml", content)
    return packed.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, tuple):
        return f'<c s="{_DATE_STYLE}"><v>{value[0]}</v></c>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


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


def test_a_sheet_that_there_is_not_names_those_that_there_are(read: Reader) -> None:
    with pytest.raises(UnknownChoiceError, match="Nope"):
        read(workbook(Orders=ORDERS), "b.xlsx", sheet="Nope")


def test_an_empty_sheet_says_so(read: Reader) -> None:
    with pytest.raises(EmptyFileError, match="no values"):
        read(workbook(Orders=[]), "b.xlsx")


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
