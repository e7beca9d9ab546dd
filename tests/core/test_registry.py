"""Adapters are found by kind: built in, or registered by an installed package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lakehouse.catalogs.sql import open_catalog
from lakehouse.core.errors import BadSettingError, UnknownChoiceError
from lakehouse.core.registry import BUILT_IN, kinds, load, require

ROOT = Path(__file__).parents[2]
GROUP = "lakehouse.catalogs"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution that registers two catalogs, one of which cannot be imported."""
    metadata = tmp_path / "memory_catalog-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: memory-catalog\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[{GROUP}]\nmemory = memory_catalog:open_catalog\nbroken = no_such_module:open_catalog\n"
    )
    (tmp_path / "memory_catalog.py").write_text("def open_catalog(context):\n    return 'memory'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_built_in_kinds_are_the_entry_points_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {group: dict(entries) for group, entries in BUILT_IN.items()} == declared


@pytest.mark.parametrize(
    ("group", "kind"), [(group, kind) for group, kinds_of_group in BUILT_IN.items() for kind in kinds_of_group]
)
def test_every_built_in_kind_can_be_loaded(group: str, kind: str) -> None:
    assert load(group, kind) is not None


def test_a_kind_of_an_installed_package_is_loaded(installed: Path) -> None:
    assert load(GROUP, "memory")(None) == "memory"
    assert {"memory", "sql"} <= set(kinds(GROUP))


def test_an_unknown_kind_lists_the_registered_ones(installed: Path) -> None:
    with pytest.raises(UnknownChoiceError) as refused:
        require(GROUP, "nothing")
    assert load(GROUP, "nothing") is None
    assert {"memory", "sql"} <= set(refused.value.known)


def test_an_entry_point_that_cannot_be_imported_is_named(installed: Path) -> None:
    with pytest.raises(BadSettingError, match="no_such_module"):
        load(GROUP, "broken")


def test_a_package_cannot_replace_a_built_in_kind(installed: Path) -> None:
    points = installed / "memory_catalog-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[{GROUP}]\nsql = memory_catalog:open_catalog\n")
    assert load(GROUP, "sql") is open_catalog


def test_a_built_in_kind_needs_no_scan_of_installed_packages() -> None:
    code = f"import sys; from lakehouse.core.registry import load; load({GROUP!r}, 'sql'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in done.stdout.split()
