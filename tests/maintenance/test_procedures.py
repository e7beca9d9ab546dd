"""Maintenance in SQL, on the command line, and beside a log that remembers longer than the files stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Command
from tests.support.damaged_tables import (
    FUTURE_DAYS,
    NAME,
    T,
    append,
    catalog_of,
    damaged,
    data_files,
    delete,
    expire_all,
    ids,
)
from tests.support.light_runs import run, with_settings

from lakehouse.core.errors import LakeError, NoSuchCommitError, StatementRefusedError
from lakehouse.lake import Lake
from lakehouse.maintenance.procedures import parse_call


def test_calls_do_what_lake_maintain_does(lake: Lake) -> None:
    damaged(lake, 6)
    compacted = lake.sql(f"CALL lake.system.rewrite_data_files(table => '{T}')")
    assert compacted.rows()[0][:4] == ("compact", "done", 6, 1)
    assert compacted.explain.engine == "maintenance" and ids(lake) == list(range(6))
    append(lake, [9])
    merged = lake.sql(f"-- by hand\ncall `lake`.system.`rewrite_manifests`('{T}')").rows()
    assert merged[0][:2] == ("rewrite_manifests", "done")
    assert lake.sql(f"call system.expire_snapshots('{T}')").rows() == [], "the policy keeps all of them"
    assert len(data_files(lake)) == 2


@pytest.mark.parametrize("arguments", [f"'{T}', timestamp '2100-01-01'", f"table => '{T}', retain_last => 1"])
def test_a_call_cannot_expire_more_than_the_policy(lake: Lake, arguments: str) -> None:
    damaged(lake, 2)
    with pytest.raises(StatementRefusedError, match="keeps snapshots for 7 days"):
        lake.sql(f"call lake.system.expire_snapshots({arguments})")
    assert len(lake.history(T)) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "call lake.system.remove_orphan_files(table => 'a.b')",
        "call lake.system.rewrite_data_files(table => 'a.b', where => 'id = 1')",
        "call other.system.expire_snapshots('a.b')",
        "select 'call lake.system.expire_snapshots(1)'",
        "call lake.system.expire_snapshots('a.b'); drop table a.b",
    ],
)
def test_everything_else_goes_to_the_guard(statement: str) -> None:
    assert parse_call(statement) is None


def test_a_wrong_time_is_an_error_in_the_statement(lake: Lake) -> None:
    damaged(lake, 1)
    with pytest.raises(LakeError, match="is not a time"):
        lake.sql(f"call lake.system.expire_snapshots(table => '{T}', older_than => 'soon')")


def test_a_revert_to_what_was_removed_is_refused_and_changes_nothing(lake: Lake) -> None:
    run(lake, "one", T)
    run(lake, "two", T)
    entry = next(line.commit for line in lake.refs.log.lines() if line.run == "two")
    for tag in ("run_one", "run_two"):
        lake.refs.branches.drop_tag(tag)
    pointer = catalog_of(lake).pointer(NAME)
    from tests.support.damaged_tables import maintainer

    from lakehouse.core.requests import MaintainRequest

    maintainer(lake, FUTURE_DAYS, delete_after_hours=0).run(MaintainRequest(only=("remove_files",)))
    with pytest.raises(NoSuchCommitError, match="no longer there"):
        lake.refs.log.revert(entry)
    assert catalog_of(lake).pointer(NAME) == pointer
    assert lake.sql(f"select count(*) from {T}").rows() == [(2,)]


def test_the_commands_show_and_do_it(lake_command: Command, home: Path) -> None:
    with with_settings(home) as lake:
        damaged(lake, 6)
        delete(lake, "id == 0")
    scored = json.loads(lake_command("health", "-o", "json").stdout)
    assert scored[0]["table"] == T and scored[0]["reasons"][0]["what"] == "small_files"
    deep = json.loads(lake_command("health", T, "--deep", "-o", "json").stdout)
    assert deep[0]["deep"]["manifests"] > 1 and deep[0]["deep"]["bytes"]["old_snapshots"] > 0
    planned = json.loads(lake_command("maintain", "--dry-run", "-o", "json").stdout)
    assert planned[0]["dry_run"] and planned[0]["actions"][0]["state"] == "planned"
    assert lake_command("maintain").returncode == 2
    done = lake_command("maintain", "--all")
    assert done.returncode == 0 and "compact" in done.stdout and " done" in done.stdout
    assert "No table needs maintenance" in lake_command("maintain", T).stderr
    wrong = lake_command("maintain", "shop.nothing", "-o", "json")
    assert wrong.returncode == 2 and json.loads(wrong.stderr)["error"] == "no_such_table"
    assert "score" in lake_command("health").stdout


def test_settings_of_a_table_come_from_the_file(home: Path, tmp_path: Path) -> None:
    from lakehouse.config.load import load_settings
    from lakehouse.maintenance.policy import policy_for

    (tmp_path / "lake.toml").write_text(
        '[maintenance]\nkeep_days = 3\n[maintenance.tables."shop.sales"]\nkeep_days = 90\nenabled = false\n'
    )
    settings = load_settings(
        {"home": home}, folder=tmp_path, environ={"LAKE_MAINTENANCE__UNDROP_DAYS": "5"}
    ).maintenance
    assert (settings.keep_days, settings.undrop_days) == (3, 5)
    assert policy_for(settings, NAME).keep_days == 90 and not policy_for(settings, NAME).enabled


def test_the_retention_of_the_whole_lake_leaves_what_it_must(lake: Lake) -> None:
    damaged(lake, 3)
    assert expire_all(lake, enabled=False).actions == ()
