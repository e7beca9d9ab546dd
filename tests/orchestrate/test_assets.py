"""A pipeline as Dagster assets: selected, partitioned, checked, and materialized only when the run is published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
from tests.support.sales_pipeline import shop_of  # noqa: F401 - a fixture

from lakehouse.cli.run import run_pipeline
from lakehouse.core.errors import RunBlockedError
from lakehouse.core.requests import RunRequest
from lakehouse.orchestrate.assets import RESOURCE, LakeResource, asset_key, pipeline_assets

pytestmark = pytest.mark.spark

MONDAY, TUESDAY = "2026-01-05", "2026-01-06"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def materialize(pipeline: Any, lake: Any, instance: dg.DagsterInstance, **options: Any) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [pipeline_assets(pipeline)],
        resources={RESOURCE: LakeResource(lake)},
        instance=instance,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        **options,
    )


def test_a_partition_is_built_and_every_asset_names_its_snapshot(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n,tea,2,1\n", TUESDAY: "2,tea,4,1\n"})
    done = materialize(pipeline, lake, instance, partition_key=MONDAY)
    assert done.success
    metadata = {
        event.asset_key.path[-1]: event.step_materialization_data.materialization.metadata
        for event in done.get_asset_materialization_events()
        if event.asset_key
    }
    assert set(metadata) == {"sales", "bronze", "silver", "gold", "growth"}
    assert metadata["silver"]["snapshot"].value == lake.describe(f"{pipeline.name}.silver").current.id
    assert metadata["silver"]["rows_written"].value == 1
    assert metadata["silver"]["rows_rejected"].value == 1
    assert "| 1 | tea |" in str(metadata["silver"]["preview"].value)
    checks = {check.check_name: check.passed for check in done.get_asset_check_evaluations()}
    assert checks["id_not_null"] is False
    assert checks["unique_id"] is True
    assert lake.sql(f"select count(*) from {pipeline.name}.bronze").rows()[0][0] == 2, "Tuesday was not requested"


def test_a_backfill_of_many_partitions_is_one_run(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n", TUESDAY: "2,tea,4,1\n"})
    tags = {"dagster/asset_partition_range_start": MONDAY, "dagster/asset_partition_range_end": TUESDAY}
    assert materialize(pipeline, lake, instance, tags=tags).success
    assert lake.runs()[0].tables[0].partitions == (MONDAY, TUESDAY)
    assert len(lake.history(f"{pipeline.name}.silver")) == 1


def test_only_selected_tables_are_built(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    selected = [asset_key(f"{pipeline.name}.bronze"), asset_key(f"{pipeline.name}.silver")]
    assert materialize(pipeline, lake, instance, partition_key=MONDAY, selection=selected).success
    existing = {str(info.name) for info in lake.tables()}
    assert f"{pipeline.name}.silver" in existing
    assert f"{pipeline.name}.gold" not in existing


def test_a_source_by_itself_builds_the_tables_that_read_it(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n", TUESDAY: "2,tea,4,1\n"})
    source = next(source.name for table in pipeline.tables for source in table.sources)
    assert materialize(pipeline, lake, instance, partition_key=MONDAY, selection=[asset_key(source)]).success
    assert [report.table for report in lake.runs()[0].tables] == [f"{pipeline.name}.bronze"]
    for name in (source, f"{pipeline.name}.bronze"):
        assert instance.get_materialized_partitions(asset_key(name)) == {MONDAY}, name


def misspelled(raw: Any) -> Any:
    return raw.select("id", "amont")


def doubled(raw: Any) -> Any:
    from pyspark.sql import functions as F

    def twice(amount: int) -> int:
        return amount * undefined_factor  # type: ignore[name-defined, no-any-return] # noqa: F821

    return raw.withColumn("amount", F.udf(twice, "bigint")("amount"))


@pytest.mark.parametrize(
    ("function", "message", "place"),
    [
        pytest.param(
            misspelled,
            "with name `amont` cannot be resolved. Did you mean one of the following? [`amount`,",
            'return raw.select("id", "amont")',
            id="a column that is not there",
        ),
        pytest.param(
            doubled,
            "NameError: name 'undefined_factor' is not defined",
            "return amount * undefined_factor",
            id="a function that Spark calls for each row",
        ),
    ],
)
def test_an_error_of_spark_names_the_column_the_nearest_names_and_the_line(
    shop_of: Any,  # noqa: F811
    instance: Any,
    function: Any,
    message: str,
    place: str,
) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    bronze, *others = pipeline.tables
    broken = replace(pipeline, tables=(replace(bronze, transform=function), *others))
    done = materialize(broken, lake, instance, partition_key=MONDAY)
    (failure,) = [event.step_failure_data for event in done.all_events if event.is_step_failure]
    said = str(failure.user_failure_data and failure.user_failure_data.description)
    assert message in said
    assert f"{pipeline.name}.bronze: " in said and f"{__file__}, line " in said
    assert any(line.startswith(">") and place in line for line in said.splitlines()), said
    assert said.splitlines()[-1].startswith("lake runs show "), "the hint has a line of its own"


def test_a_blocked_run_fails_with_its_check_and_materializes_nothing(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,forbidden,10,1\n"})
    done = materialize(pipeline, lake, instance, partition_key=MONDAY)
    assert not done.success
    assert done.get_asset_materialization_events() == []
    broken = [check.check_name for check in done.get_asset_check_evaluations() if not check.passed]
    assert broken == ["not_forbidden"]
    with pytest.raises(RunBlockedError, match="not_forbidden"):
        run_pipeline(lake, pipeline, RunRequest((MONDAY,)))


def test_lake_run_builds_the_same_tables_without_dagster(shop_of: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    steps: list[str] = []
    record = run_pipeline(lake, pipeline, RunRequest(), steps.append)
    assert record.state == "published"
    assert f"{pipeline.name}.silver: {MONDAY} (changed input {pipeline.name}.bronze)" in steps
    assert run_pipeline(lake, pipeline, RunRequest(), steps.append).state == "nothing"


def test_partitions_that_dagster_did_not_request_are_shown_as_built(shop_of: Any, instance: Any) -> None:  # noqa: F811
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n", TUESDAY: "2,tea,4,1\n"})
    gold = asset_key(f"{pipeline.name}.gold")
    assert materialize(pipeline, lake, instance).success, "as a schedule does, without a partition"
    assert set(instance.get_materialized_partitions(gold)) >= {MONDAY, TUESDAY}


def test_runs_made_outside_are_reported_once(shop_of: Any, instance: Any) -> None:  # noqa: F811
    from lakehouse.config.load import load_settings
    from lakehouse.orchestrate.outside_runs import runs_sensor

    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n,tea,2,1\n"})
    sensor = runs_sensor(load_settings({"home": lake.folder, "spark.master": "local[2]"}, environ={}), [pipeline])

    def reported(cursor: str | None) -> tuple[list[tuple[str, str | None]], str | None]:
        with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
            result = sensor.evaluate_tick(context)
        checked.update(
            {event.check_name: event.passed for event in result.asset_events if hasattr(event, "check_name")}
        )
        built = [event for event in result.asset_events if isinstance(event, dg.AssetMaterialization)]
        return [(event.asset_key.path[-1], event.partition) for event in built], result.cursor

    checked: dict[str, bool] = {}
    run_pipeline(lake, pipeline, RunRequest())
    events, cursor = reported(None)
    assert set(events) == {(name, MONDAY) for name in ("sales", "bronze", "silver", "gold", "growth")}
    assert checked["id_not_null"] is False and checked["unique_id"] is True, "rules and checks show, too"
    assert reported(cursor)[0] == []
    (folder / f"{TUESDAY}.csv").write_text("2,tea,4,1\n")
    run_pipeline(lake, pipeline, RunRequest())
    events, cursor = reported(cursor)
    assert ("gold", TUESDAY) in events and ("gold", MONDAY) not in events
    materialize(pipeline, lake, instance, partition_key=MONDAY)
    assert reported(cursor)[0] == [], "Dagster's own runs are shown already"
