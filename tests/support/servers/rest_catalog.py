"""A REST catalog for tests: the real application behind a real server on a free port of loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from tests.support.servers.application import running
from tests.support.servers.postgres import Postgres

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.rest_catalog.access import Owner
from lakehouse.rest_catalog.app import create_app

#: The token of a catalog whose test is not about tokens.
TOKEN = "a-token-of-tests"


@dataclass(frozen=True)
class Served:
    """A running catalog: its address, and the SQL catalog behind it."""

    url: str
    catalog: SqlCatalog
    token: str

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """One request; the path starts behind `/v1/`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("Authorization", f"Bearer {self.token}")
        return requests.request(method, f"{self.url}/v1/{path}", json=body, headers=sent, timeout=60)

    def pyiceberg(self, **properties: str) -> RestCatalog:
        """PyIceberg's own client."""
        return RestCatalog("lake", uri=self.url, **{"token": self.token, **properties})


Serve = Callable[..., Served]


@contextmanager
def serving(
    catalog: SqlCatalog, files: Mapping[str, str] | None = None, tokens: Sequence[str] = (TOKEN,), **options: Any
) -> Iterator[Served]:
    """A catalog behind a server until the block ends."""
    with running(create_app(catalog, files or {}, dict.fromkeys(tokens, Owner()), **options)) as url:
        yield Served(url, catalog, tokens[0])


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves catalogs until the test ends; without one, a new SQLite file below the test's folder."""
    with ExitStack() as stack:

        def served(catalog: SqlCatalog | None = None, **options: Any) -> Served:
            own = catalog or SqlCatalog(open_database(tmp_path / "catalog.db"), f"file://{tmp_path}/warehouse")
            return stack.enter_context(serving(own, **options))

        yield served


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def served(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> Served:
    """A catalog on each database that there is."""
    if request.param == "sqlite":
        return serve()
    server: Postgres = request.getfixturevalue("postgres_server")
    return serve(SqlCatalog(open_database(server.new_database().url), f"file://{tmp_path}/warehouse"))


SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "note", "type": "string", "required": False},
    ],
}


@pytest.fixture
def table(served: Served) -> dict[str, Any]:
    """A new, empty table `crm.leads`, as the catalog answered."""
    return make_table(served, "leads")


def make_table(served: Served, name: str, **extra: Any) -> dict[str, Any]:
    """A table in `crm`, as the catalog answered."""
    made = served.ask("POST", "namespaces", {"namespace": ["crm"]})
    assert made.status_code in (200, 409)
    answer = served.ask("POST", "namespaces/crm/tables", {"name": name, "schema": SCHEMA, **extra})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told
