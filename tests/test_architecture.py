"""The folder tree is the architecture: imports point down, and the public names are few."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

import lakehouse

ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).parent / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache", "--config", "pyproject.toml"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


def test_imports_point_down() -> None:
    checked = lint(ROOT)
    assert checked.returncode == 0, checked.stdout


def test_an_import_that_points_up_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    wrong = tmp_path / "src" / "lakehouse" / "core" / "names.py"
    wrong.write_text("from lakehouse.tables.directory import Tables\n" + wrong.read_text())
    checked = lint(tmp_path)
    assert checked.returncode != 0
    assert "lakehouse.core.names -> lakehouse.tables.directory (l.1)" in checked.stdout


def find_cycles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as exc:
        return [exc.args[1]]
    return []


def test_no_modules_import_each_other() -> None:
    # Imports below `if TYPE_CHECKING` and inside functions count too: a hidden cycle is a cycle.
    graph = grimp.build_graph("lakehouse", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert "lakehouse.core.result" in imports["lakehouse.core.engine"], "the graph has the edges that the code has"
    assert find_cycles(imports) == []


def test_a_cycle_is_found() -> None:
    assert find_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert find_cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_the_public_names_are_these() -> None:
    assert lakehouse.__all__ == ["LakeError", "Settings", "connect", "open_lake"]
    for name in lakehouse.__all__:
        assert getattr(lakehouse, name).__name__ == name


def test_every_module_says_what_it_is_for() -> None:
    for file in (ROOT / "src").rglob("*.py"):
        assert file.read_text().startswith('"""'), f"{file} has no first sentence"
