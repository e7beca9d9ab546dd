"""What the tests of the Nessie catalog share: a catalog, a table in it, and PyIceberg beside it."""

from __future__ import annotations

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.core.names import TableName
from tests.support.servers.nessie import NessieServer

ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture
def catalog(nessie_server: NessieServer) -> NessieCatalog:
    return nessie_server.catalog(author="tests")


@pytest.fixture
def leads(catalog: NessieCatalog, namespace: str) -> TableName:
    """A table with two rows."""
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "leads")
    theirs(catalog).create_table(str(table), schema=ROWS.schema).append(ROWS)
    return table


@pytest.fixture
def branch(namespace: str) -> str:
    return f"b_{namespace}"[:100]


def theirs(catalog: NessieCatalog, branch: str = "") -> Catalog:
    """PyIceberg on a branch."""
    here = catalog.on(branch)
    return load_catalog(here.name, **here.pyiceberg_properties())


def append(catalog: NessieCatalog, table: TableName, branch: str = "") -> None:
    theirs(catalog, branch).load_table(str(table)).append(ROWS)


def count(catalog: NessieCatalog, table: TableName, branch: str = "") -> int:
    return theirs(catalog, branch).load_table(str(table)).scan().to_arrow().num_rows
