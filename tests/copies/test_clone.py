"""Shallow clones: they share data files, never change their source, and maintenance of either leaves the other whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.damaged_tables import FUTURE_DAYS, maintainer
from tests.support.small_lake import SmallLake, opened

from lakehouse.config.load import load_settings
from lakehouse.copies.clone import CLONE_FILE
from lakehouse.core.errors import TableExistsError
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake.copies import restore_lake
from lakehouse.storage.local import RESTORING


def restored(dest: Path, home: Path) -> None:
    restore_lake(load_settings({"home": home}, folder=home.parent, environ={}), dest)


def test_a_shallow_clone_shares_data_and_never_changes_its_source(small: SmallLake, tmp_path: Path) -> None:
    expected = small.contents()
    before = _files(small.home / "warehouse")
    report = small.lake.clone(tmp_path / "clone")
    assert report.tables == 2
    with opened(tmp_path / "clone") as clone:
        assert clone.ids("shop.orders") == small.ids("shop.orders")
        assert len(clone.lake.history("shop.orders")) == len(small.lake.history("shop.orders"))
        clone.add("shop.orders", 500)
        clone.writer().load_table("shop.items").delete("id = 1")
        assert 500 in clone.ids("shop.orders")
        assert clone.ids("shop.items") == [2]
        assert not clone.lake.verify().findings
        clone.lake.backup(tmp_path / "backups")
        assert not list((tmp_path / "clone" / "warehouse").rglob("_external"))
        assert 3 * sum(_files(tmp_path / "clone" / "warehouse").values()) < sum(before.values())
    assert _files(small.home / "warehouse") == before
    assert report.tag in [tag.name for tag in small.catalog.tags()]
    small.catalog.drop_tag(report.tag)
    assert small.contents() == expected
    # A backup of a clone holds the shared files, too.
    restored(tmp_path / "backups", tmp_path / "own")
    small.home.rename(small.home.parent / "away")
    try:
        with opened(tmp_path / "own") as own:
            assert 500 in own.ids("shop.orders")
    finally:
        (small.home.parent / "away").rename(small.home)


def _files(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def test_a_clone_of_a_tag_has_the_tables_of_the_tag(small: SmallLake, tmp_path: Path) -> None:
    small.lake.clone(tmp_path / "clone", from_ref="v1")
    with opened(tmp_path / "clone") as clone:
        assert clone.ids("shop.orders") == [0, 1, 2, 10, 11, 12]
    with pytest.raises(TableExistsError, match="not empty"):
        small.lake.clone(tmp_path / "clone")


@pytest.mark.parametrize("is_filled", [True, False], ids=["after the catalog was filled", "before it"])
def test_a_clone_that_was_killed_is_finished_by_the_same_command(
    small: SmallLake, tmp_path: Path, is_filled: bool
) -> None:
    home = tmp_path / "clone"
    killed = small.lake.clone(home)
    with opened(home) as clone:
        expected, files = clone.contents(), _files(home / "warehouse")
    # What a kill leaves: nobody may open the folder, and it does not say yet where it comes from.
    (home / CLONE_FILE).unlink()
    (home / RESTORING).touch()
    if not is_filled:
        for file in home.glob("catalog.db*"):
            file.unlink()
    small.add("shop.orders", 900)
    report = small.lake.clone(home)
    assert (report.tag, report.tables) == (killed.tag, 2)
    assert [ref.name for ref in small.catalog.tags() if ref.name.startswith("clone_")] == [report.tag]
    with opened(home) as clone:
        assert clone.contents() == expected
        assert not clone.lake.verify(deep=True).findings
    assert _files(home / "warehouse") == files


def maintain(small: SmallLake) -> int:
    """Maintain a lake as if everything were old, and return how many files were removed."""
    request = MaintainRequest(only=("expire", "remove_files"))
    settings = {"keep_snapshots": 1, "delete_after_hours": 0, "undrop_days": 10_000}
    return maintainer(small.lake, FUTURE_DAYS, **settings).run(request).sweep.removed_files


def test_maintenance_of_the_source_keeps_what_a_clone_needs(small: SmallLake, tmp_path: Path) -> None:
    report = small.lake.clone(tmp_path / "clone")
    with opened(tmp_path / "clone") as clone:
        expected = clone.contents()
        maintain(small)
        assert clone.contents() == expected
        assert not clone.lake.verify(deep=True).damage
        assert not small.lake.verify(deep=True).damage
    for tag in ("v1", "run_r2", report.tag):
        small.catalog.drop_tag(tag)
    for branch in small.catalog.branches():
        small.lake.refs.branches.drop(branch)
    assert maintain(small), "without the tag, the old snapshots are nobody's"
    with opened(tmp_path / "clone") as clone:
        assert {finding.kind for finding in clone.lake.verify().damage} == {"missing", "unreadable"}
    assert not small.lake.verify(deep=True).damage


def test_maintenance_of_a_clone_removes_nothing_of_its_source(small: SmallLake, tmp_path: Path) -> None:
    small.lake.clone(tmp_path / "clone")
    before, expected = _files(small.home / "warehouse"), small.contents()
    with opened(tmp_path / "clone") as clone:
        clone.add("shop.orders", 500)
        clone.writer().load_table("shop.orders").delete("id >= 0")
        maintain(clone)
        assert clone.ids("shop.orders") == []
    assert _files(small.home / "warehouse") == before
    assert small.contents() == expected


def test_a_maintained_lake_is_sound_and_its_backup_is_equal(small: SmallLake, tmp_path: Path) -> None:
    for tag in ("v1", "run_r2"):
        small.catalog.drop_tag(tag)
    assert maintain(small)
    assert not small.lake.verify(deep=True).damage
    small.lake.backup(tmp_path / "backups")
    restored(tmp_path / "backups", tmp_path / "own")
    with opened(tmp_path / "own") as own:
        assert own.contents() == small.contents()
        assert not own.lake.verify(deep=True, against=tmp_path / "backups").damage
