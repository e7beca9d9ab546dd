"""The folder tree is the architecture: imports point down, and the public names are few."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath

import grimp
import pytest

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


def calls_of(text: str, method: str) -> list[int]:
    """The lines in which a method of this name is called."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [node.lineno for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == method]


@pytest.mark.parametrize(
    ("method", "caller"), [("swap_pointer", "tables/fork.py"), ("load_state", "tables/fill.py")], ids=str
)
def test_only_one_module_outside_the_catalogs_publishes_in_this_way(method: str, caller: str) -> None:
    # The catalog answers False if a pointer has moved, which a caller may overlook; `set_pointer` raises.
    source = ROOT / "src" / "lakehouse"
    files = [file for file in source.rglob("*.py") if "catalogs" not in file.relative_to(source).parts]
    callers = {file.relative_to(source).as_posix() for file in files if calls_of(file.read_text(), method)}
    assert callers == {caller}


# ---- the tests --------------------------------------------------------------------------------------------------


def imported_modules(text: str) -> Iterator[str]:
    """Every module that a text imports, also inside functions; a name that is imported may be a module too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def imported_tests(text: str) -> list[str]:
    """The imports of a text from the module of a test."""
    return [name for name in imported_modules(text) if any(part.startswith("test_") for part in name.split("."))]


def is_in_its_place(path: PurePath) -> bool:
    """Whether a module below tests/ is a test, belongs to pytest, or is where tests look for what they share."""
    return (
        path.name.startswith("test_")
        or path.name in ("conftest.py", "__init__.py")
        or path.parts[0] in ("support", "contract")
    )


def test_no_test_imports_another_test() -> None:
    files = [file for folder in ("tests", "bench", "tools") for file in (ROOT / folder).rglob("*.py")]
    assert {str(file): names for file in files if (names := imported_tests(file.read_text()))} == {}


def foreign_conftests(text: str, folder: PurePath) -> list[str]:
    """The imports of a text in a folder below tests/ from the conftest.py of another folder that is not above it."""
    above = {".".join(("tests", *folder.parts[:depth], "conftest")) for depth in range(len(folder.parts) + 1)}
    named = [name for name in imported_modules(text) if name.startswith("tests.") and ".conftest." in name]
    return [name for name in named if name.partition(".conftest.")[0] + ".conftest" not in above]


def test_no_test_imports_the_conftest_of_another_folder() -> None:
    tests = ROOT / "tests"
    texts = {file.relative_to(tests): file.read_text() for file in tests.rglob("*.py")}
    assert {path: names for path, text in texts.items() if (names := foreign_conftests(text, path.parent))} == {}


def test_an_import_of_another_folders_conftest_is_found() -> None:
    text = "from tests.http.conftest import Client"
    assert foreign_conftests(text, PurePath("client")) and foreign_conftests(text, PurePath("support/servers"))
    assert not foreign_conftests(text, PurePath("http")) and not foreign_conftests(text, PurePath("http/routes"))
    assert not foreign_conftests("from tests.conftest import LAKE", PurePath("client"))


@pytest.mark.parametrize(
    "text",
    [
        "from tests.query.test_guard import CASES",
        "from tests.query import test_guard",
        "from .test_guard import CASES",
        "from . import test_guard",
        "import tests.query.test_guard",
        "def work():\n    from tests.query.test_guard import CASES",
    ],
)
def test_an_import_of_a_test_is_found(text: str) -> None:
    assert imported_tests(text)
    assert not imported_tests(text.replace("test_guard", "guard"))


def test_what_tests_share_is_in_one_place() -> None:
    modules = [file.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("*.py")]
    assert [str(path) for path in modules if not is_in_its_place(path)] == []


def test_a_helper_beside_a_test_is_found() -> None:
    assert not is_in_its_place(PurePath("query/statements.py")) and not is_in_its_place(PurePath("helpers.py"))
    assert is_in_its_place(PurePath("support/servers/s3.py")) and is_in_its_place(PurePath("query/test_guard.py"))


def packages_below(folder: Path) -> set[str]:
    return {str(file.parent.relative_to(folder)) for file in folder.rglob("__init__.py")} - {"."}


def test_every_package_has_a_folder_of_tests() -> None:
    packages = {name for name in packages_below(ROOT / "src" / "lakehouse") if "/" not in name}
    tested = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").rglob("test_*.py")}
    assert {"catalogs", "tables"} <= packages and packages - tested == set()


def test_every_folder_of_tests_mirrors_a_package() -> None:
    tested = {str(file.parent.relative_to(ROOT / "tests")) for file in (ROOT / "tests").rglob("test_*.py")}
    unpaired = tested - packages_below(ROOT / "src" / "lakehouse")
    assert unpaired == {".", "contract", "integration", "support"}
