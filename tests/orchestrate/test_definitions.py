"""The code location that `lake dagster` opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from lakehouse.config.load import load_settings
from lakehouse.orchestrate.assets import asset_key

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the pipeline `files` watches."""
    return tmp_path_factory.mktemp("inbox")


@pytest.fixture(scope="module")
def repository(inbox: Path, tmp_path_factory: pytest.TempPathFactory) -> dg.RepositoryDefinition:
    from lakehouse.orchestrate.definitions import build_definitions

    folder = tmp_path_factory.mktemp("definitions")
    environ = {"LAKE_HOME": str(folder / "lake"), "LAKE_SOURCES__FILES__PATH": str(inbox)}
    return build_definitions(load_settings({}, folder, environ)).get_repository_def()


def test_one_lineage_goes_from_the_download_to_gold(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    upstream = {
        key.to_user_string()
        for key in dg.AssetSelection.assets(asset_key("gold.fct_daily_trips")).upstream().resolve(graph)
    }
    assert upstream >= {"raw/yellow_trips", "bronze/yellow_trips", "silver/stg_yellow_trips", "gold/fct_daily_trips"}


def test_days_and_months_are_partitions(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    days, months = (graph.get(asset_key(name)).partitions_def for name in ("gold.daily_bars", "gold.fct_daily_trips"))
    assert days is not None and "2026-01-14" in days.get_partition_keys()
    assert months is not None and "2026-01" in months.get_partition_keys()


def test_blocking_rules_are_blocking_checks(repository: dg.RepositoryDefinition) -> None:
    checks = {key.name: repository.asset_graph.get(key).blocking for key in repository.asset_graph.asset_check_keys}
    assert checks["signups_at_least_1"] is True
    assert checks["email_not_null"] is False


def test_schedules_and_sensors_that_start_runs_are_stopped_by_default(repository: dg.RepositoryDefinition) -> None:
    assert {schedule.default_status for schedule in repository.schedule_defs} == {dg.DefaultScheduleStatus.STOPPED}
    on = {sensor.name for sensor in repository.sensor_defs if sensor.default_status == dg.DefaultSensorStatus.RUNNING}
    assert on == {"lake_runs"}


def test_every_asset_can_be_materialized_by_itself_with_its_checks(repository: dg.RepositoryDefinition) -> None:
    keys = list(repository.asset_graph.materializable_asset_keys)
    assert len(keys) > 12
    for key in keys:
        chosen = repository.get_job("__ASSET_JOB").get_subset(asset_selection={key})
        assert chosen.asset_layer.asset_graph.executable_asset_keys == {key}


def test_what_dagster_lists_says_what_it_is(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    assert [
        definition.name
        for definition in (*repository.schedule_defs, *repository.sensor_defs)
        if not definition.description
    ] == []
    assert [key for key in graph.asset_check_keys if not graph.get(key).description] == []
    assert graph.get(asset_key("raw.minute_aggs")).description == (
        "Rows from outside the lake, read by bronze.minute_aggs."
    )


def test_a_run_loads_the_code_location_once(repository: dg.RepositoryDefinition) -> None:
    assert {job.executor_def.name for job in repository.get_all_jobs()} == {"in_process"}


#: Names, partitions and sources that Dagster does not take as they are.
ODD = """
from dataclasses import dataclass
from lakehouse.pipelines import Days, Hours, Keys, Pipeline, Source, Table, Weeks
from lakehouse.quality import at_least, expect


@dataclass(frozen=True)
class Shops:
    column: str = "shop"
    start: str = "shop-0"

    def check(self, key):
        return key

    def between(self, first, last):
        return [first, last]

    def shifted(self, key, by):
        return key

    def sql_type(self):
        return "string"


def rows(raw):
    return raw


def pipeline(name, partitions):
    rules = (at_least("x", -100), at_least("x", 0.5), expect("x at least -100", None), expect("größer", None))
    table = Table(f"{name.replace('-', '_')}.t", rows, inputs=(Source("tills", rows),), rules=rules)
    return Pipeline(name, (table,), partitions)


own, hours, weeks = pipeline("own-shops", Shops()), pipeline("hours", Hours()), pipeline("weeks", Weeks())
keys, days = pipeline("keys", Keys(("eu", "us"), "region")), pipeline("days", Days())
"""


def test_any_name_of_a_rule_and_any_partitions_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakehouse.orchestrate.definitions import build_definitions

    (tmp_path / "odd_pipelines.py").write_text(ODD)
    (tmp_path / "lake.toml").write_text('pipelines = ["odd_pipelines"]\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = load_settings({}, tmp_path, {"LAKE_HOME": str(tmp_path / "lake")})
    graph = build_definitions(settings).get_repository_def().asset_graph
    checks = {key.name for key in graph.asset_check_keys if key.asset_key == asset_key("own_shops.t")}
    assert checks == {"x_at_least__100", "x_at_least_0_5", "x_at_least__100_2", "gr__er", "health"}
    partitions = {name: graph.get(asset_key(f"{name}.t")).partitions_def for name in ("hours", "weeks", "keys")}
    assert all(partitions.values())
    known = {name: definition.get_partition_keys() for name, definition in partitions.items() if definition}
    assert ("2026-01-14T05" in known["hours"], "2026-01-12" in known["weeks"]) == (True, True)
    assert known["keys"] == ["eu", "us"]
    assert isinstance(graph.get(asset_key("own_shops.t")).partitions_def, dg.DynamicPartitionsDefinition)


def test_the_folder_sensor_requests_one_run_for_the_same_files(
    repository: dg.RepositoryDefinition, inbox: Path
) -> None:
    sensor = repository.get_sensor_def("crm_leads_folder")

    def requested() -> list[str | None]:
        with dg.build_sensor_context(repository_def=repository) as context:
            return [request.run_key for request in sensor.evaluate_tick(context).run_requests or ()]

    assert requested() == [], "an empty folder"
    (inbox / "a.csv").write_text("id\n1\n")
    first = requested()
    assert len(first) == 1
    assert requested() == first
    (inbox / "b.csv").write_text("id\n2\n")
    assert requested() != first


def test_dagster_loads_the_code_location_of_the_lake_that_lake_home_names(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-m", "lakehouse.orchestrate.definitions"]
    environment = {**os.environ, "LAKE_HOME": str(tmp_path / "lake"), "DAGSTER_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Validation successful" in done.stderr + done.stdout
