"""Modules of users that do not work: the error names table, function, file and line, and the other pipelines work."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Command

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
