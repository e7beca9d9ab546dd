"""What is in the wheel, and that it runs away from the checkout. tests/integration/test_readme.py runs its demo."""

from __future__ import annotations

import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.wheel import ROOT, build_wheel, install_wheel, without_checkout

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_holds_every_file_of_the_package(wheel: Path) -> None:
    ours = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src").rglob("*") if file.is_file()}
    with ZipFile(wheel) as files:
        shipped = {name for name in files.namelist() if ".dist-info/" not in name}
    assert shipped == {name for name in ours if "__pycache__" not in name}
    assert {"lakehouse/py.typed", "lakehouse/orchestrate/dbt_project/dbt_project.yml"} <= shipped


def test_it_runs_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    programs = install_wheel(wheel, tmp_path)
    code = "import lakehouse; from lakehouse.orchestrate.dbt import PACKAGED_PROJECT as p; print(lakehouse.__file__, p)"
    result = subprocess.run(
        [programs / "python", "-c", code], cwd=tmp_path, env=without_checkout(), capture_output=True, text=True
    )
    assert all(path.startswith(str(tmp_path / "venv")) for path in result.stdout.split()), result.stdout + result.stderr
    told = subprocess.run(
        [programs / "lake", "tables"], cwd=tmp_path, env=without_checkout(), capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert "No tables yet" in told.stderr
