"""What is written is true: every setting is in the docs, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from lakehouse.config.load import all_settings

ROOT = Path(__file__).parents[1]


def test_every_setting_is_documented_with_its_default() -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text()
    for name, part, kind in all_settings():
        row = re.search(rf"^\| `{re.escape(name)}` \|.*$", documented, re.MULTILINE)
        assert row, f"{name} is not in docs/configuration.md"
        assert row[0].endswith(f"| {part.metadata['help']} |"), (
            f"{name}: docs/configuration.md describes it differently"
        )
        if getattr(kind, "__origin__", None) is None:
            assert f"`LAKE_{name.upper().replace('.', '__')}`" in row[0]
            default = f"{part.default:g}" if isinstance(part.default, float) else str(part.default)
            default = default.lower() if isinstance(part.default, bool) else default
            assert not default or f"`{default}`" in row[0], f"{name}: its default is {default}"


def test_every_relative_link_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_code_that_a_page_takes_from_a_file_is_in_that_file() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    taken = re.compile(r"(?:From|in)\s+`([\w./]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
    blocks = [(page.name, file, code) for page in pages for file, code in taken.findall(page.read_text())]
    assert len(blocks) >= 5
    for page, file, code in blocks:
        assert code in (ROOT / file).read_text(), f"{page} shows code that {file} does not have"
