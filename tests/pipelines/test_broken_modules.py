"""Modules of users that do not work: the error names table, function, file and line, and the other pipelines work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.conftest import Command, cache_only
from tests.support.servers.service import serving, wait_for

from lakehouse.config.load import load_settings
from lakehouse.lake.assemble import assemble
from lakehouse.orchestrate.assets import RESOURCE, LakeResource, pipeline_assets
from lakehouse.orchestrate.definitions import build_definitions

BROKEN = "from lakehouse.pipelines import Pipeline\n\nbroken = Pipelin('broken', ())\n"
FAILING = """from lakehouse.pipelines import Days, Pipeline, Source, Table


def published(context):
    folder = context.settings["path"]
    days = {"2026-01-14": "1"}
    return {day: days[folder] for day in days}


def rows(raw):
    return raw


tills = Source("tills", rows, published, settings={"path": "a folder"})
shop = Pipeline("shop", (Table("shop.sales", rows, inputs=(tills,)),), Days())
"""


@pytest.fixture(autouse=True)
def imported_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Projects of several tests have modules of the same names, which some import into this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for module in ("broken", "shop"):
        sys.modules.pop(module, None)


def project(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    names = ", ".join(f'"{name}"' for name in modules)
    (folder / "lake.toml").write_text(f'pipelines = [{names}]\n[sources.shop]\npath = "nowhere"\n')


def test_a_broken_module_is_named_and_the_other_pipelines_work(lake_command: Command, tmp_path: Path) -> None:
    project(tmp_path, broken=BROKEN, shop=FAILING)
    listed = lake_command("pipelines", "-o", "json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert {"shop", "market"} <= {row["pipeline"] for row in json.loads(listed.stdout)}
    assert "The module broken" in listed.stderr and "broken.py, line 3" in listed.stderr
    run = lake_command("run", "broken", cwd=tmp_path)
    assert run.returncode != 0
    assert "The module broken" in run.stderr and "name 'Pipelin' is not defined" in run.stderr


def test_an_error_of_user_code_names_table_function_file_and_line(lake_command: Command, tmp_path: Path) -> None:
    project(tmp_path, shop=FAILING)
    run = lake_command("run", "shop", cwd=tmp_path)
    assert run.returncode == 1
    place = f"shop.sales: <dictcomp> in {tmp_path / 'shop.py'}, line 7"
    assert f"KeyError: '{tmp_path / 'nowhere'}'" in run.stderr and place in run.stderr
    assert ">    7 |     return {day: days[folder] for day in days}" in run.stderr
    assert "     5 |     folder = context.settings" in run.stderr
    (record,) = json.loads(lake_command("runs", "-o", "json", cwd=tmp_path).stdout)
    assert place in lake_command("runs", "show", record["run"], cwd=tmp_path).stderr


@pytest.mark.slow
def test_the_service_names_a_broken_module_and_shows_where_user_code_failed(tmp_path: Path) -> None:
    project(tmp_path, broken=BROKEN, shop=FAILING)
    place = f"shop.sales: <dictcomp> in {tmp_path / 'shop.py'}, line 7"
    line = ">    7 |     return {day: days[folder] for day in days}"
    with serving(tmp_path / "lake") as served:
        listed = served.admin.get("/pipelines").json()
        assert {"shop", "market"} <= {pipeline["name"] for pipeline in listed["pipelines"]}
        assert [problem["module"] for problem in listed["problems"]] == ["broken"]
        assert "broken.py, line 3" in listed["problems"][0]["message"]
        assert served.client().get("/pipelines").json()["problems"] == [], "a reader does not see files of the server"
        started = served.admin.post("/pipelines/shop/runs", {}).json()
        job = wait_for(lambda: _failed(served.admin.get(f"/jobs/{started['job']['id']}").json()))
        assert place in job["error"]["message"] and line in job["error"]["message"]
        run = served.admin.get(f"/runs/{started['run']}").json()
        assert place in json.dumps(run, ensure_ascii=False) and json.dumps(line)[1:-1] in json.dumps(run)


def _failed(job: dict[str, object]) -> dict[str, object] | None:
    return job if job["state"] == "failed" else None


@pytest.mark.slow
def test_dagster_names_a_broken_module_and_shows_where_user_code_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project(tmp_path, broken=BROKEN, shop=FAILING)
    settings = load_settings({"home": tmp_path / "lake"}, tmp_path, cache_only())
    dg.get_dagster_logger("lakehouse").addHandler(caplog.handler)
    definitions = build_definitions(settings)
    assert "broken.py, line 3" in caplog.text
    assert definitions.resolve_job_def("shop_job") and definitions.resolve_job_def("market_job")
    with assemble(settings) as lake, dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [pipeline_assets(lake.pipelines()["shop"])],
            partition_key="2026-01-14",
            resources={RESOURCE: LakeResource(lake)},
            instance=instance,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    (failure,) = [event.step_failure_data for event in done.all_events if event.is_step_failure]
    assert failure.user_failure_data is not None
    said = str(failure.user_failure_data.description)
    assert f"shop.sales: <dictcomp> in {tmp_path / 'shop.py'}, line 7" in said
    assert ">    7 |     return {day: days[folder] for day in days}" in said
