"""A package outside of this repository's source adds an engine, a catalog, a source and a pipeline, and users reach all four."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import LAKE, stop_spark

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin installed from a wheel that was built from its source."""
    folder = tmp_path_factory.mktemp("plugin")
    uv = Path(sys.executable).parent / "uv"
    build = [uv, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", folder / "dist", PLUGIN]
    subprocess.run(build, check=True, capture_output=True, text=True)
    wheel = next((folder / "dist").glob("*.whl"))
    install = [uv, "pip", "install", "--python", sys.executable, "--no-deps", "--target", folder / "site", wheel]
    subprocess.run(install, check=True, capture_output=True, text=True)
    return folder / "site"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plugin_lake") / "lake"
    yield folder
    stop_spark(folder)


def lake(home: Path, site: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "LAKE_HOME": str(home), "PYTHONPATH": paths, **variables}
    return subprocess.run([LAKE, *arguments], capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.spark
def test_a_plugin_is_reached_through_ingest_run_and_sql(home: Path, site: Path) -> None:
    ingested = lake(home, site, "ingest", "range://5", "--into", "t.numbers", "-o", "json")
    assert ingested.returncode == 0, ingested.stderr
    ran = lake(home, site, "run", "squares", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    query = "select n, square from t.squares where n > 2 order by n"
    read = lake(home, site, "sql", query, "--engine", "polars", "-o", "json", "--explain")
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout) == [{"n": 3, "square": 9}, {"n": 4, "square": 16}]
    assert "engine: polars" in read.stderr


@pytest.mark.slow
def test_names_that_no_package_registers_list_the_installed_ones(home: Path, site: Path) -> None:
    engine = lake(home, site, "sql", "select 1", "--engine", "polar", "-o", "json")
    assert engine.returncode == 2
    assert "polars" in json.loads(engine.stderr)["hint"]
    source = lake(home, site, "ingest", "ftp://host/file.csv", "--into", "t.numbers", "-o", "json")
    assert source.returncode == 2
    assert "range://" in json.loads(source.stderr)["hint"]


def test_a_plugins_catalog_is_opened_by_its_kind(tmp_path: Path, site: Path) -> None:
    database, register = tmp_path / "team.db", tmp_path / "address"
    register.write_text(f"{database}\n")
    catalog = {"LAKE_CATALOG__KIND": "registered", "LAKE_CATALOG__URI": str(register)}
    listed = lake(tmp_path / "lake", site, "tables", "-o", "json", **catalog)
    assert (listed.returncode, json.loads(listed.stdout)) == (0, []), listed.stderr
    assert database.exists()
    wrong = lake(tmp_path / "lake", site, "tables", "-o", "json", LAKE_CATALOG__KIND="registred")
    assert wrong.returncode == 2
    assert "registered" in wrong.stderr
