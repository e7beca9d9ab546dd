"""One suite over every catalog and every engine, on the real servers: what one makes, writes, changes and drops, all the others see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.catalogs.threads import at_once
from tests.contract.engines import ENGINES, Engine, Missing, Rows
from tests.contract.matrix import FILE, KINDS, Matrix, gap
from tests.servers.stack import Stack

from lakehouse.config.load import load_settings
from lakehouse.config.profiles import filled_in
from lakehouse.config.settings import Settings
from lakehouse.core.names import TableName
from lakehouse.formats.iceberg import IcebergTables
from lakehouse.opening import Opened, open_parts

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix]

SERVICES = {"postgres": (), "rest": ("rest",), "nessie": ("nessie",), "hive": ("hive",)}
PROFILES = {"postgres": "sql", "rest": "rest", "nessie": "stack", "hive": "hive"}
MATRIX = Matrix()


def settings_of(kind: str, stack: Stack, folder: Path) -> Settings:
    """A lake on a catalog of that kind."""
    from tests.conftest import cache_only

    if kind == "sqlite":
        return load_settings({"home": folder / "lake"}, environ=cache_only())
    stack.need("storage", "postgres", "trino", *SERVICES[kind])
    settings = replace(stack.settings, profile=PROFILES[kind])
    if kind == "rest":  # as others see it; the lake itself would go straight to the database
        settings = replace(settings, catalog=replace(settings.catalog, kind="rest"))
    return filled_in(settings)


@dataclass(frozen=True)
class Desk:
    """A catalog, and every engine that can be set up on it."""

    kind: str
    parts: Opened
    engines: dict[str, Engine]

    def asked(self, engine: str, ability: str) -> AbstractContextManager[None]:
        return MATRIX.asked(self.kind, engine, ability)

    def able(self, ability: str) -> dict[str, Engine]:
        """The engines that can do something here."""
        return {name: engine for name, engine in self.engines.items() if not gap(self.kind, name, ability)}

    def all_read(self, table: str, wanted: Rows, but: str = "") -> None:
        for name, engine in self.able("reads").items():
            if name != but:
                with self.asked(name, "reads"):
                    assert engine.read(table) == wanted, name

    def newest(self, table: str) -> int:
        return int(IcebergTables(self.parts.catalog, self.parts.files).history(TableName.parse(table))[-1].id)


@pytest.fixture(scope="module", params=list(KINDS))
def desk(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    settings = settings_of(request.param, stack, tmp_path_factory.mktemp(request.param))
    parts = open_parts(settings)
    parts.catalog.ready()
    parts.catalog.ensure_namespace("contract")
    made = {name: make(settings) for name, make in ENGINES.items() if not gap(request.param, name, "reads")}
    yield Desk(request.param, parts, made)
    for engine in made.values():
        engine.close()


@pytest.mark.parametrize("writer", list(ENGINES))
def test_what_one_engine_does_all_others_see(desk: Desk, writer: str) -> None:
    if reason := gap(desk.kind, writer, "creates"):
        pytest.skip(reason)
    engine, table = desk.engines[writer], f"contract.by_{writer}"
    with desk.asked(writer, "creates"):
        engine.create(table)
    with desk.asked(writer, "writes"):
        engine.insert(table, (1, "a"))
    desk.all_read(table, [(1, "a")])
    first = desk.newest(table)
    with desk.asked(writer, "adds a column"):
        engine.add_column(table)
    rows: Rows = [(1, "a", None)]
    # What DuckDB asks there, Nessie's REST endpoint, tells of a new column with the next rows.
    desk.all_read(table, rows, but="duckdb" if desk.kind == "nessie" else "")
    for number, (name, other) in enumerate(desk.able("writes").items(), start=2):
        with desk.asked(name, "writes"):
            other.insert(table, (number, name), noted=True)
        rows.append((number, name, None))
        desk.all_read(table, rows)
    for name, other in desk.able("travels").items():
        with desk.asked(name, "travels"):
            assert other.read_at(table, first) == [(1, "a")], name
    if not gap(desk.kind, writer, "renames"):
        with desk.asked(writer, "renames"):
            engine.rename(table, f"{table}_now")
        table += "_now"
        desk.all_read(table, rows)
    with desk.asked(writer, "drops"):
        engine.drop(table)
    for name, other in desk.able("reads").items():
        with pytest.raises(Missing):
            other.read(table)
        assert name


def test_commits_of_all_engines_at_once_lose_nothing_that_was_acknowledged(desk: Desk) -> None:
    writers = list(desk.able("writes").items())
    _, first = writers[0]
    first.create("contract.at_once")
    first.insert("contract.at_once", (0, "first"))

    def write(number: int) -> None:
        name, engine = writers[number]
        for again in range(3):
            engine.insert("contract.at_once", (10 * (number + 1) + again, name))

    answers = at_once(write, len(writers))
    held = {row[0] for row in first.read("contract.at_once")}
    for number, answer in enumerate(answers):
        if answer is None:  # one that was refused has said so, and may try again
            assert held >= {10 * (number + 1) + again for again in range(3)}, writers[number][0]
    assert any(answer is None for answer in answers)
    assert len(held) == len(first.read("contract.at_once"))
    first.drop("contract.at_once")


def test_the_table_in_the_docs_is_what_was_seen() -> None:
    """Last, since it is about the tests before it. WRITE_MATRIX=1 writes it anew."""
    found = MATRIX.text()
    if os.environ.get("WRITE_MATRIX"):
        FILE.write_text(found)
    assert FILE.read_text() == found
