"""`lake report`: a row and a bar for every snapshot, on a page without external resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lakehouse.cli.app import run

#: Elements whose end tag HTML may omit.
OPTIONAL_END = {"html", "tr", "td", "th"}
VOID = {"meta", "link", "img", "br"}


@dataclass
class Page(HTMLParser):
    """A parsed page: its texts, table rows and bars. Unbalanced elements are an error."""

    rows: list[list[str]] = field(default_factory=list)
    bars: list[dict[str, str]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.loads += [given[name] for name in ("src", "srcset") if name in given]
        if tag in ("script", "link", "iframe"):
            self.loads.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "rect":
            self.bars.append(given)
        elif tag == "section":
            self.sections.append(given["id"])
        elif tag == "title":
            self.titles.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.remove(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open[-1] != tag and self._open[-1] in OPTIONAL_END:
            self._open.pop()
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text += data
        inside = next((tag for tag in reversed(self._open) if tag in ("td", "th", "title")), "")
        if inside == "title":
            self.titles[-1] += data
        elif inside:
            self.rows[-1][-1] += data

    def bars_of(self, kind: str) -> list[float]:
        """The heights of the bars of one class, from left to right."""
        bars = sorted((bar for bar in self.bars if bar["class"] == kind), key=lambda bar: float(bar["x"]))
        return [float(bar["height"]) for bar in bars]

    @classmethod
    def of(cls, file: Path) -> Page:
        page = cls()
        page.feed(file.read_text())
        page.close()
        assert set(page._open) <= OPTIONAL_END, f"left open: {page._open}"
        return page


@pytest.fixture(scope="module")
def file(shop_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of shop.orders, which has two snapshots."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    assert run(["report", "shop.orders", "--html", str(file), "--home", str(shop_home)]) == 0
    return file


def test_the_page_has_a_row_and_a_bar_for_each_snapshot(call: Any, file: Path) -> None:
    page = Page.of(file)
    assert page.sections == ["shop.orders"]
    head, first, second = page.rows[:3]
    done = [dict(zip(head, row, strict=True)) for row in (first, second)]
    first_id, second_id = (str(snapshot["id"]) for snapshot in call("history", "shop.orders", "-o", "json").rows())
    assert [row["snapshot"] for row in done] == [first_id, f"{second_id} (now)"]
    assert [(row["added"], row["rows"], row["growth"]) for row in done] == [("1", "1", ""), ("2", "3", "+2")]
    assert page.bars_of("total") == [40.0, 120.0], "a third of the height, and all of it"
    assert page.bars_of("added") == [40.0, 80.0]
    assert [title.partition(": ")[2] for title in page.titles[1:]] == ["1 rows, 1 added", "3 rows, 2 added"]
    assert "3 rows, 2 snapshots" in page.text


def test_the_page_compares_two_moments_column_by_column(file: Path) -> None:
    compared = {row[0]: row[1:] for row in Page.of(file).rows[3:]}
    assert compared["rows"] == ["1", "3"]
    assert compared["id"] == ["1 … 1", "1 … 3"]
    assert compared["item"] == ["tea … tea", 'a "quoted", one … tea, 1 null']
    assert compared["price"] == ["2.50 … 2.50", "2.50 … 12345678901234567890.12, 1 null"]


def test_the_page_loads_no_external_resources(file: Path) -> None:
    assert Page.of(file).loads == []
    assert "url(" not in file.read_text() and "@import" not in file.read_text()


def test_a_moment_is_not_compared_with_itself(call: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    newest = call("history", "shop.orders", "-o", "json").rows()[-1]["id"]
    assert call("report", "shop.orders", "--from", str(newest), "--html", str(page)).code == 0
    assert len(Page.of(page).rows) == 3, "only the table of snapshots"


def test_a_table_without_snapshots_has_a_page_without_bars(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    done = call("report", "shop.empty", "-o", "json", "--html", str(file))
    assert (done.code, done.rows()) == (0, [])
    page = Page.of(file)
    assert (page.sections, page.bars, len(page.rows)) == (["shop.empty"], [], 1)
    assert "0 rows, 0 snapshots" in page.text


def test_the_command_lists_the_same_snapshots_as_the_page(call: Any) -> None:
    rows = call("report", "shop.orders", "-o", "json").rows()
    assert [(row["added"], row["removed"], row["rows"], row["files"]) for row in rows] == [(1, 0, 1, 1), (2, 0, 3, 2)]


def test_a_page_that_cannot_be_written_is_reported_by_its_name(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "report.html"
    done = call("report", "shop.orders", "--html", str(file))
    assert done.code == 1
    assert done.err.splitlines()[0] == f"Error: {file} cannot be written: No such file or directory."
