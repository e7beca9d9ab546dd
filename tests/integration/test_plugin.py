"""A package outside of this repository's source adds a catalog, an engine, a source, a pipeline and a profile, and users reach all of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import LAKE, stop_spark


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plugin_lake") / "lake"
    yield folder
    stop_spark(folder)


def lake(home: Path, site: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a lake of the plugin's profile, whose catalog is the plugin's."""
    paths = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    own = {"LAKE_HOME": str(home), "LAKE_PROFILE": "json", "PYTHONPATH": paths}
    environment = {**os.environ, **own, **variables}
    return subprocess.run([LAKE, *arguments], capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.spark
def test_a_plugin_is_reached_through_ingest_run_and_sql(home: Path, plugin_site: Path) -> None:
    start = {"LAKE_SOURCES__RANGE__START": "1"}
    ingested = lake(home, plugin_site, "ingest", "range://5", "--into", "t.numbers", "-o", "json", **start)
    assert ingested.returncode == 0, ingested.stderr
    ran = lake(home, plugin_site, "run", "squares", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    query = "select n, square from t.squares order by n"
    streaming = {"LAKE_ENGINES__POLARS__COLLECT": "streaming"}
    read = lake(home, plugin_site, "sql", query, "--engine", "polars", "-o", "json", "--explain", **streaming)
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout) == [{"n": n, "square": n * n} for n in (1, 2, 3, 4)]
    assert "engine: polars" in read.stderr
    # Its pointers are where the plugin stores them, and nowhere else.
    assert set(json.loads((home / "catalog.json").read_text())["tables"]) == {"t.numbers", "t.squares"}
    assert not (home / "catalog.db").exists()


@pytest.mark.spark
def test_spark_is_refused_on_main_and_writes_on_a_branch(home: Path, plugin_site: Path) -> None:
    lake(home, plugin_site, "ingest", "range://3", "--into", "t.few", "-o", "json")
    refused = lake(home, plugin_site, "sql", "insert into t.few values (7)", "-o", "json")
    assert refused.returncode != 0
    assert "Spark has no client for the catalog" in refused.stderr
    for command in (
        ["branch", "create", "exp"],
        ["sql", "insert into t.few values (7)", "--branch", "exp"],
        ["branch", "merge", "exp"],
    ):
        done = lake(home, plugin_site, *command)
        assert done.returncode == 0, done.stderr
    counted = lake(home, plugin_site, "sql", "select count(*) as n, max(n) as top from t.few", "-o", "json")
    assert json.loads(counted.stdout) == [{"n": 4, "top": 7}], counted.stderr


@pytest.mark.slow
def test_what_the_plugin_does_not_know_is_refused_with_what_it_does(home: Path, plugin_site: Path) -> None:
    engine = lake(home, plugin_site, "sql", "select 1", "--engine", "polar", "-o", "json")
    assert engine.returncode == 2
    assert "polars" in json.loads(engine.stderr)["hint"]
    source = lake(home, plugin_site, "ingest", "ftp://host/file.csv", "--into", "t.numbers", "-o", "json")
    assert source.returncode == 2
    assert "range://" in json.loads(source.stderr)["hint"]
    option = {"LAKE_ENGINES__POLARS__COLLECT": "slowly"}
    collect = lake(home, plugin_site, "sql", "select 1", "--engine", "polars", "-o", "json", **option)
    assert collect.returncode == 2
    assert "in-memory" in json.loads(collect.stderr)["hint"]


def test_a_kind_and_a_profile_that_nobody_registers_list_the_plugins(tmp_path: Path, plugin_site: Path) -> None:
    listed = lake(tmp_path / "lake", plugin_site, "tables", "-o", "json")
    assert (listed.returncode, json.loads(listed.stdout)) == (0, []), listed.stderr
    for variable in ("LAKE_CATALOG__KIND", "LAKE_PROFILE"):
        wrong = lake(tmp_path / "lake", plugin_site, "tables", "-o", "json", **{variable: "jsn"})
        assert wrong.returncode == 2
        assert "json" in json.loads(wrong.stderr)["hint"]
    own = lake(tmp_path / "lake", plugin_site, "tables", "-o", "json", LAKE_CATALOG__PROPERTIES__WAIT="3")
    assert own.returncode == 2
    assert "wait_s" in json.loads(own.stderr)["hint"]
