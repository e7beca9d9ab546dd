"""The notebooks under examples/ run from top to bottom, and again, and show what is saved in them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_spark

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_lake.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> dict[str, str]:
    """Run a cell as a kernel does: what its last expression shows, by MIME type."""
    statements = ast.parse(source).body
    last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    if value is None:
        return {}
    # A notebook shows a result's HTML; its plain text names objects in memory.
    return {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {"text/plain": repr(value)}


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    stop_spark(tmp_path / ".lake-notebook")


@pytest.mark.spark
def test_the_notebook_shows_what_is_saved_in_it_and_can_run_again(working_folder: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert sum(bool(cell["outputs"]) for cell in cells) >= 8
    for _ in range(2):
        names: dict[str, Any] = {}
        for cell in cells:
            source = "".join(cell["source"])
            saved = {mime: "".join(text) for output in cell["outputs"] for mime, text in output["data"].items()}
            assert run_cell(source, names) == saved, source
