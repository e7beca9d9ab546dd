"""The workflow in docs/ci.md: its steps run in their order, and the comment shows what the change does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import stop_spark

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
BIN = Path(sys.executable).parent
#: GitHub's own program: notes what it is asked to post. There is no comment yet that it could edit.
GH = """#!/bin/sh
case "$*" in *--edit-last*) exit 1 ;; esac
echo "$@" > posted.txt
cat comment.md >> posted.txt
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A project with the pipeline that `lake init` writes, and a lake in which it has run once."""
    folder = tmp_path / "project"
    shell("lake init .", folder)
    (folder / "sales").mkdir()
    (folder / "sales" / "2026-01-14.csv").write_text("1,tea,250\n2,mate,320\n")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    shell("lake run shop", folder)
    yield folder
    stop_spark(folder / ".lake")


def shell(script: str, folder: Path, **variables: str) -> str:
    """Run a step as GitHub does: bash that stops at the first failure."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, **variables, "PATH": f"{folder}/programs:{BIN}:{os.environ['PATH']}"}
    arguments = ["bash", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def steps() -> list[dict[str, Any]]:
    block = re.search(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert block
    (job,) = yaml.safe_load(block[1])["jobs"].values()
    return [step for step in job["steps"] if "run" in step and step["name"] != "Install"]


def test_the_comment_shows_what_the_change_does_and_main_stays_as_it_was(checkout: Path) -> None:
    pipeline = (checkout / "shop.py").read_text()
    (checkout / "shop.py").write_text(pipeline.replace('F.sum("cents")', 'F.sum(F.col("cents") * 2)'))
    variables = checkout / "variables"
    given = {"PR": "7", "GITHUB_ENV": str(variables)}
    for step in steps():
        known = dict(re.findall(r"^(\w+)=(.*)$", variables.read_text(), re.MULTILINE)) if variables.exists() else {}
        shell(step["run"], checkout, **given, **known)
    asked, _, comment = (checkout / "posted.txt").read_text().partition("\n")
    assert asked == "pr comment 7 --body-file comment.md"
    assert re.search(r"^gold\.sales_by_day +changed ", comment, re.MULTILINE), comment
    assert re.search(r"^\w+ +2026-01-14 +2 +1140$", comment, re.MULTILINE), comment
    assert shell('lake sql "select cents from gold.sales_by_day" -o csv', checkout) == "cents\n570\n"
    assert "run_" not in shell("lake branch list --all -o csv", checkout), "the last step drops the branch"
