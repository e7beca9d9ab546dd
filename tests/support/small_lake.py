"""A small lake with everything that a lake can have, written without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
from pyiceberg.catalog import Catalog as PyIceberg
from pyiceberg.catalog import load_catalog

from lakehouse.config.load import load_settings
from lakehouse.core.catalog import Catalog
from lakehouse.core.names import MAIN
from lakehouse.core.refs import Commit
from lakehouse.lake import Lake
from lakehouse.lake.assemble import Assembly
from lakehouse.lake.backend import Backend
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog
from tests.conftest import cache_only

ROWS = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])

Contents = dict[str, list[tuple[Any, ...]]]


@dataclass
class SmallLake:
    """An open lake and somebody who writes to it through PyIceberg."""

    backend: Backend
    lake: Lake
    writers: dict[str, PyIceberg] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.lake.folder

    @property
    def catalog(self) -> Catalog:
        return self.backend.catalog

    def writer(self, branch: str = MAIN) -> PyIceberg:
        if branch not in self.writers:
            here = self.catalog.on(branch)
            self.writers[branch] = load_catalog(here.name, **here.pyiceberg_properties())
        return self.writers[branch]

    def make(self, table: str, branch: str = MAIN) -> None:
        self.catalog.on(branch).ensure_namespace(table.split(".")[0])
        self.writer(branch).create_table(table, schema=ROWS, properties={"gc.enabled": "false"})

    def add(self, table: str, *ids: int, branch: str = MAIN) -> None:
        rows = pyarrow.table({"id": list(ids), "name": [f"name {number}" for number in ids]}, schema=ROWS)
        self.writer(branch).load_table(table).append(rows)

    def ids(self, table: str, branch: str = MAIN) -> list[int]:
        return sorted(row[0] for row in self.lake.sql(f"select id from {table}", engine="duckdb", branch=branch).rows())

    def contents(self) -> Contents:
        """Every row of every table on every branch and at every snapshot, and the refs."""
        contents: Contents = {
            "log": [(entry.id, entry.at, entry.commit) for entry in self.catalog.log(limit=1000)],
            "branches": [(ref,) for ref in self.catalog.branch_refs()],
            "tags": [(tag,) for tag in self.catalog.tags()],
            "dropped": [(str(table),) for table in self.catalog.dropped()],
            "runs": [(run.id, run.state) for run in self.lake.runs()],
        }
        for branch in (MAIN, *self.catalog.branches()):
            here = self.lake if branch == MAIN else self.lake.branch(branch)
            for info in here.tables():
                for snapshot in here.history(str(info.name)):
                    query = f"select * from {info.name} order by 1, 2"
                    rows = here.sql(query, engine="duckdb", as_of=snapshot.id).rows()
                    contents[f"{branch} {info.name} {snapshot.id}"] = [tuple(row) for row in rows]
        return contents

    def close(self) -> None:
        for writer in self.writers.values():
            writer.close()
        self.lake.close()


@contextmanager
def opened(home: Path, **settings: Any) -> Iterator[SmallLake]:
    """A lake in a folder; settings by their dotted names, with __ for the dot."""
    flags = {name.replace("__", "."): value for name, value in settings.items()}
    assembly = Assembly(load_settings({"home": home, **flags}, folder=home.parent, environ=cache_only()))
    small = SmallLake(assembly.backend, Lake(assembly.components()))
    try:
        yield small
    finally:
        small.close()


def fill(small: SmallLake) -> None:
    """Tables with history, a branch that changed, a tag, a dropped table, a log, and runs."""
    small.make("shop.orders")
    for number in range(3):
        small.add("shop.orders", number, number + 10)
    small.make("shop.items")
    small.add("shop.items", 1, 2)
    small.catalog.create_tag("v1")
    small.catalog.create_branch("exp")
    small.add("shop.orders", 77, branch="exp")
    small.writer("exp").load_table("shop.orders").delete("id = 1")
    small.make("shop.gone")
    small.add("shop.gone", 5)
    small.lake.drop("shop.gone")
    small.catalog.create_branch("run_r2")
    small.add("shop.orders", 20, 21, branch="run_r2")
    published = small.catalog.publish("run_r2", Commit("publish", "ada", "two more", "r2", "shop"), tag="run_r2")
    small.catalog.create_branch("run_r1")
    small.add("shop.items", 3, branch="run_r1")
    records = RunLog(small.home / "runs")
    records.save(RunRecord("r1", "shop", "kept", "run_r1", "2026-01-01T00:00:00+00:00"))
    records.save(RunRecord("r2", "shop", "published", "run_r2", "2026-01-02T00:00:00+00:00", commit=published.entry))
    records.save(RunRecord("r0", "shop", "failed", "run_r0", "2026-01-01T00:00:00+00:00"))


def filled_folder(folder: Path) -> Path:
    """Fill a lake in a folder, and keep a copy of it for `put_back`."""
    with opened(folder / "lake") as small:
        fill(small)
    shutil.copytree(folder / "lake", folder / "kept")
    return folder


@contextmanager
def put_back(folder: Path) -> Iterator[SmallLake]:
    """The lake of `filled_folder` as it was filled: its metadata has absolute paths, so it is always in the same place."""
    shutil.rmtree(folder / "lake", ignore_errors=True)
    shutil.copytree(folder / "kept", folder / "lake")
    with opened(folder / "lake") as small:
        yield small


def killed_right_before_its_end(home: Path, profile: str) -> None:
    """Let a migration look as if it had been killed when the catalog was filled."""
    marker = home / f"migration-{profile}"
    assert marker.read_text() == "done"
    marker.write_text("begun")
