"""The Iceberg REST catalog below /catalog, with the keys of the service."""

from __future__ import annotations

import pyarrow
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, UnauthorizedError
from tests.support.servers.service import Client, Served

from lakehouse.config.secrets import secrets_of


def pyiceberg(client: Client, **properties: str) -> RestCatalog:
    return RestCatalog("lake", uri=f"{client.url}/catalog", token=client.key, **properties)


def test_pyiceberg_reads_and_writes_with_a_key(served: Served) -> None:
    served.admin.insert("ice.t", [{"id": 1}])
    catalog = pyiceberg(served.client("writer"))
    table = catalog.load_table("ice.t")
    table.append(pyarrow.table({"id": pyarrow.array([2], pyarrow.int64())}))
    assert served.admin.rows("select id from ice.t order by id") == [{"id": 1}, {"id": 2}]
    assert [entry["path"] for entry in served.admin.get("/audit").json()["entries"] if "/catalog/" in entry["path"]]


def test_a_reader_reads_and_does_not_write(served: Served) -> None:
    served.admin.insert("ice.r", [{"id": 1}])
    table = pyiceberg(served.client("reader")).load_table("ice.r")
    assert table.scan().to_arrow().num_rows == 1
    with pytest.raises(ForbiddenError):
        table.append(pyarrow.table({"id": pyarrow.array([2], pyarrow.int64())}))


def test_an_agent_writes_to_a_branch(served: Served) -> None:
    served.admin.insert("ice.a", [{"id": 1}])
    served.admin.post("/branches", {"name": "ice_agent"})
    agent, rows = served.client("agent"), pyarrow.table({"id": pyarrow.array([2], pyarrow.int64())})
    with pytest.raises(ForbiddenError):
        pyiceberg(agent).load_table("ice.a").append(rows)
    pyiceberg(agent, prefix="ice_agent").load_table("ice.a").append(rows)
    assert len(served.admin.rows("select * from ice.a", branch="ice_agent")) == 2
    assert len(served.admin.rows("select * from ice.a")) == 1


def test_the_token_of_the_catalog_works_there_and_nowhere_else(served: Served) -> None:
    holder = Client(served.url, secrets_of(served.service.settings).rest_token)
    assert isinstance(pyiceberg(holder).list_namespaces(), list)
    assert holder.get("/tables").status_code == 401
    with pytest.raises(UnauthorizedError):
        pyiceberg(Client(served.url, "wrong"))
