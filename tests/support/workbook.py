"""Small Excel workbooks."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

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
