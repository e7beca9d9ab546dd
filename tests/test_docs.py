"""What is written is true: every setting is in the docs, and the README's commands do what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lakehouse.config.load import all_settings
from tests.conftest import command_for, stop_spark

ROOT = Path(__file__).parents[1]


def test_every_setting_is_documented_with_its_default() -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text()
    for name, part, kind in all_settings():
        row = re.search(rf"^\| `{re.escape(name)}` \|.*$", documented, re.MULTILINE)
        assert row, f"{name} is not in docs/configuration.md"
        if getattr(kind, "__origin__", None) is None:
            assert f"`LAKE_{name.upper().replace('.', '__')}`" in row[0]
            default = f"{part.default:g}" if isinstance(part.default, float) else str(part.default)
            default = default.lower() if isinstance(part.default, bool) else default
            assert not default or f"`{default}`" in row[0], f"{name}: its default is {default}"


def test_every_relative_link_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.spark
def test_the_first_session_of_the_readme_is_what_it_shows(tmp_path: Path) -> None:
    session = re.search(r"## A first session.*?```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert session
    lake = command_for(tmp_path / "lake")
    try:
        for step in re.split(r"^\$ ", session[1], flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            done = lake(*shlex.split(command)[1:])
            printed = done.stdout + done.stderr
            assert all(line in printed for line in shown.splitlines() if line != "…"), f"{command}:\n{printed}"
    finally:
        stop_spark(tmp_path / "lake")
