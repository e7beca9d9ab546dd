"""A Nessie on which every commit to main conflicts: the catalog stops with an error and does not report success."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.core.errors import CatalogBusyError
from lakehouse.core.names import TableName

LEADS = TableName("crm", "leads")
CONTENT = {"type": "ICEBERG_TABLE", "id": "1", "metadataLocation": "s3://b/m.json", "snapshotId": 1, "schemaId": 0}


class _Conflicting(BaseHTTPRequestHandler):
    """Answers as Nessie does: the table exists, and another client is first at every commit to main."""

    commits = 0

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2].partition("@")[0]
        self._answer(200, {"reference": {"name": name, "hash": "aa", "type": "BRANCH"}, "noAncestorHash": "00"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/contents"):
            on_main = "/trees/main" in self.path
            listed = [{"key": {"elements": ["crm", "leads"]}, "content": CONTENT}] if on_main else []
            self._answer(200, {"contents": listed, "effectiveReference": {"hash": "aa"}})
        elif "/trees/main@" in self.path:
            type(self).commits += 1
            self._answer(409, {"errorCode": "REFERENCE_CONFLICT", "message": "Values of existing and expected differ"})
        else:
            self._answer(200, {"targetBranch": {"hash": "bb"}})

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def catalog() -> Iterator[NessieCatalog]:
    _Conflicting.commits = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Conflicting)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield NessieCatalog(NessieApi(f"http://127.0.0.1:{server.server_address[1]}/api/v2"), "s3://b")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "change",
    [lambda catalog: catalog.drop(LEADS, "2026-01-01"), lambda catalog: catalog.ensure_namespace("other")],
    ids=["drop", "namespace"],
)
def test_a_change_that_conflicts_every_time_is_an_error(
    catalog: NessieCatalog, change: Callable[[NessieCatalog], object]
) -> None:
    with pytest.raises(CatalogBusyError, match="20 times in a row"):
        change(catalog)
    assert _Conflicting.commits == 20
