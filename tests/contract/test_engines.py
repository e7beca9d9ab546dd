"""One suite over every catalog and every engine, on the real servers: what one makes, writes, changes and drops, all the others see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.engines import ENGINES, Engine, settings_of
from tests.contract.matrix import ICEBERG, Desk
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack
from tests.support.threads import at_once

from lakehouse.core.errors import CommitConflictError
from lakehouse.core.names import TableName
from lakehouse.formats.iceberg import IcebergTables
from lakehouse.lake.backend import open_backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Engines that do not try a commit again which another writer has overtaken, and what they say instead.
WITHOUT_RETRIES = {"duckdb": "DuckDB refuses the second of two commits"}


#: Catalogs with servers that only they need.
STRETCHES = {"nessie": pytest.mark.stretch("nessie"), "hive": pytest.mark.stretch("hive")}


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=STRETCHES.get(kind, ())) for kind in ICEBERG.kinds])
def desk(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    kind = request.param
    settings = settings_of(kind, stack, tmp_path_factory.mktemp(kind))
    parts = open_backend(settings)
    parts.catalog.ensure_ready()
    parts.catalog.ensure_namespace("contract")

    def newest(table: str) -> int:
        return int(IcebergTables(parts.catalog, parts.files).history(TableName.parse(table))[-1].id)

    able = [name for name in ENGINES if not ICEBERG.gap(kind, name, "reads")]
    made: dict[str, Engine] = {name: ENGINES[name](settings) for name in able}
    # What DuckDB asks there, Nessie's REST endpoint, tells of a new column with the next rows.
    yield Desk(ICEBERG, kind, made, newest, sees_columns_late="duckdb" if kind == "nessie" else "")
    for engine in made.values():
        engine.close()


#: The engine that creates, renames and drops; all of them write and read its table. `make matrix` tries each on each catalog.
CREATORS = {"sqlite": "pyiceberg", "postgres": "trino", "rest": "duckdb", "nessie": "spark", "hive": "spark"}


@pytest.mark.faults
@pytest.mark.parametrize("writer", repetitions(smoke=["one"], full=list(ENGINES)))
def test_what_one_engine_does_all_others_see(desk: Desk, writer: str) -> None:
    writer = CREATORS[desk.kind] if writer == "one" else writer
    if reason := ICEBERG.gap(desk.kind, writer, "creates"):
        pytest.skip(reason)
    desk.try_all_of(writer)


@pytest.mark.faults
@pytest.mark.parametrize(
    "writer",
    repetitions(smoke=["pyiceberg", "trino"], full=[name for name in ENGINES if name not in WITHOUT_RETRIES]),
)
def test_two_writers_at_once_both_succeed(desk: Desk, writer: str) -> None:
    if reason := ICEBERG.gap(desk.kind, writer, "creates"):
        pytest.skip(reason)
    engine, table, rows = desk.engines[writer], f"contract.two_of_{writer}", []
    engine.create(table)
    for number in range(0, 2 * repetitions(smoke=2, full=25), 2):
        pair = [(number, "one"), (number + 1, "other")]
        engine.insert_at_once(table, pair)
        rows += pair
    desk.all_read(table, rows)
    engine.drop(table)


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
        if writers[number][0] not in WITHOUT_RETRIES:
            # Beside four others Trino's own attempts may not be enough; then it says that it lost, and wrote nothing.
            assert answer is None or isinstance(answer, CommitConflictError), answer
        if answer is None:  # one that was refused has said so, and may try again
            assert held >= {10 * (number + 1) + again for again in range(3)}, writers[number][0]
    assert any(answer is None for answer in answers)
    assert len(held) == len(first.read("contract.at_once"))
    first.drop("contract.at_once")
