"""`lake verify`: every kind of damage is found, a sound lake has none, and nothing is changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import command_for
from tests.support.lake_damage import DAMAGES, Damage, data, metadata
from tests.support.small_lake import SmallLake, filled_folder, opened

from lakehouse.core.errors import NoSuchTableError


@pytest.fixture(scope="module")
def opened_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SmallLake]]:
    folder = filled_folder(tmp_path_factory.mktemp("verify"))
    with opened(folder / "lake") as small:
        # It would answer with the damaged footer of an earlier test.
        small.lake.sql("select 1", engine="duckdb").rows()
        small.lake._components.duckdb._connected().execute("SET GLOBAL enable_external_file_cache = false")
        yield folder, small


@pytest.fixture
def small(opened_lake: tuple[Path, SmallLake]) -> SmallLake:
    """A lake that is opened once, and whose files are put back before each test."""
    folder, small = opened_lake
    for name in ("warehouse", "runs"):
        shutil.rmtree(folder / "lake" / name)
        shutil.copytree(folder / "kept" / name, folder / "lake" / name, copy_function=shutil.copy)
    for file in (folder / "lake").glob("catalog.db*"):
        file.unlink()
    for file in (folder / "kept").glob("catalog.db*"):
        shutil.copy(file, folder / "lake" / file.name)
    return small


def test_a_sound_lake_has_no_findings_and_is_not_changed(small: SmallLake) -> None:
    before = {file: file.stat().st_mtime_ns for file in small.home.rglob("warehouse/**/*") if file.is_file()}
    report = small.lake.verify(deep=True)
    assert not report.findings
    assert (report.tables, report.files) == (2, len(before))
    assert before == {file: file.stat().st_mtime_ns for file in small.home.rglob("warehouse/**/*") if file.is_file()}


def test_there_are_at_least_fifteen_kinds_of_damage() -> None:
    assert len({damage.id for damage in DAMAGES}) >= 15


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.id)
def test_damage_is_found(small: SmallLake, damage: Damage) -> None:
    named = damage.plant(small)
    report = small.lake.verify(deep=damage.deep)
    matching = [finding for finding in report.findings if finding.kind == damage.kind and named in finding.where]
    assert matching, f"not found; instead: {report.findings}"
    assert all(finding.is_damage == damage.is_damage for finding in matching)
    assert bool(report.damage) == damage.is_damage


def test_a_table_that_an_engine_cannot_read_is_named(small: SmallLake) -> None:
    data(small).unlink()
    kinds = {
        finding.kind for finding in small.lake.verify("shop.orders", deep=True).damage if finding.table == "shop.orders"
    }
    assert kinds == {"missing", "unreadable"}


def test_only_the_named_tables_are_checked(small: SmallLake) -> None:
    data(small).unlink()
    assert not small.lake.verify("shop.items").findings
    assert small.lake.verify("shop.orders").damage
    with pytest.raises(NoSuchTableError, match=r"shop\.orderz"):
        small.lake.verify("shop.orderz")


def test_a_lake_that_went_on_differs_from_its_backup(small: SmallLake, tmp_path: Path) -> None:
    small.lake.backup(tmp_path / "backups")
    assert not small.lake.verify(against=tmp_path / "backups").findings
    small.add("shop.items", 8)
    different = small.lake.verify(against=tmp_path / "backups").damage
    assert {(finding.kind, finding.table, finding.ref) for finding in different} == {
        ("different", "shop.items", "main")
    }


def test_the_exit_code_is_for_monitoring(small: SmallLake) -> None:
    run = command_for(small.home)
    orphan = metadata(small).with_name("orphan.avro")
    orphan.write_bytes(b"x")
    os.utime(orphan, (1, 1))
    noticed = run("verify", "-o", "json")
    assert (noticed.returncode, [finding["kind"] for finding in json.loads(noticed.stdout)]) == (0, ["unreachable"])
    data(small).unlink()
    damaged = run("verify", "-o", "json")
    assert damaged.returncode == 1
    (missing,) = (finding for finding in json.loads(damaged.stdout) if finding["kind"] == "missing")
    assert (missing["severity"], missing["table"], missing["ref"]) == ("damage", "shop.orders", "main")
    assert missing["where"].endswith(".parquet")
