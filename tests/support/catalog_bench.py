"""Catalogs that can branch, each with real writers: one suite for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog import Catalog as PyIceberg
from pyiceberg.catalog import load_catalog
from pyiceberg.types import StringType

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.overlay import BranchOverlay
from lakehouse.catalogs.rest import RestCatalog
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.catalog import CatalogContext
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import MAIN
from lakehouse.core.registry import require
from tests.support.repetitions import repetitions
from tests.support.servers.nessie import NessieServer, nessie_server
from tests.support.servers.postgres import Postgres
from tests.support.servers.rest_catalog import Served, serving
from tests.support.spark_process import spark_apart

__all__ = ["nessie_server", "spark_apart"]

DATABASES = ("sqlite", "postgres")
#: Every catalog that can branch is in this list, and passes the same suite.
#: PostgreSQL, which shares its SQL with SQLite, in `make test-faults`; other tests try its transactions in every run.
KINDS = (
    *repetitions(smoke=("sqlite",), full=DATABASES),
    "aside",
    "plugin",
    pytest.param("nessie", marks=pytest.mark.slow),
)

Branched = SqlCatalog | NessieCatalog | BranchOverlay

IDS = pyarrow.schema([("id", pyarrow.int64())])


class Bench:
    """A catalog and somebody who writes to its branches as strangers do: through PyIceberg."""

    def __init__(self, catalog: Branched) -> None:
        self.catalog = catalog
        self._theirs: dict[str, PyIceberg] = {}

    def writer(self, branch: str = MAIN) -> PyIceberg:
        here = self.catalog.on(branch)
        if branch not in self._theirs:
            self._theirs[branch] = load_catalog(here.name, **here.pyiceberg_properties())
        return self._theirs[branch]

    def make(self, table: str, *ids: int, branch: str = MAIN) -> None:
        """A table with rows."""
        namespace = table.split(".")[0]
        self.catalog.on(branch).ensure_namespace(namespace)
        self.writer(branch).create_table(table, schema=IDS)
        if ids:
            self.add(table, *ids, branch=branch)

    def add(self, table: str, *ids: int, branch: str = MAIN) -> None:
        self.writer(branch).load_table(table).append(pyarrow.table({"id": list(ids)}, schema=IDS))

    def add_column(self, table: str, column: str, branch: str = MAIN) -> None:
        with self.writer(branch).load_table(table).update_schema() as change:
            change.add_column(column, StringType())

    def ids(self, table: str, branch: str = MAIN) -> list[int]:
        rows = self.writer(branch).load_table(table).scan().to_arrow()
        return sorted(rows["id"].to_pylist())

    def columns(self, table: str, branch: str = MAIN) -> list[str]:
        return [field.name for field in self.writer(branch).load_table(table).schema().fields]

    def has(self, table: str, branch: str = MAIN) -> bool:
        return bool(self.writer(branch).table_exists(table))

    def close(self) -> None:
        for theirs in self._theirs.values():
            theirs.close()


def catalog_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Branched:
    """An empty catalog of a kind; its tables' files go to a folder, or to a bucket."""
    if kind == "aside":
        served: Served = request.getfixturevalue("served_beside")
        branches = SqlCatalog(open_database(folder / "branches.db"), f"file://{folder}/warehouse", author="ada")
        return BranchOverlay(RestCatalog(served.url, token=served.token), branches)
    if kind == "plugin":
        request.getfixturevalue("plugin")
        context = CatalogContext(f"file://{folder}/warehouse", folder, author="ada")
        opened: BranchOverlay = require("lakehouse.catalogs", "json")(context)
        return opened
    if kind == "nessie":
        server: NessieServer = request.getfixturevalue("nessie_server")
        return server.emptied().catalog(author="ada")
    where: str | Path = folder / "catalog.db"
    if kind == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        where = postgres.url
    return SqlCatalog(open_database(where), f"file://{folder}/warehouse", author="ada")


@pytest.fixture
def served_beside(tmp_path: Path) -> Iterator[Served]:
    """A REST server that is taken for somebody else's."""
    with serving(SqlCatalog(open_database(tmp_path / "catalog.db"), f"file://{tmp_path}/warehouse")) as running:
        yield running


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if lacking := next((mark for mark in request.node.iter_markers("lacking") if request.param in mark.args), None):
        request.applymarker(pytest.mark.xfail(strict=True, raises=NotSupportedError, reason=lacking.kwargs["reason"]))
    bench = Bench(catalog_of(request.param, tmp_path, request))
    yield bench
    bench.close()


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a catalog is, for tests that open it in processes of their own."""
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        return postgres.url
    return os.fspath(tmp_path / "catalog.db")
