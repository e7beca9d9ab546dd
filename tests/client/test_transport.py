"""What a network does to a client: lost requests, lost answers, results that end early, results that are large."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from tests.support.servers.service import Served, serving, wait_for
from tests.support.unreliable_proxy import Unreliable, unreliable

import lakehouse
from lakehouse.client import RemoteLake
from lakehouse.client.messages import Request
from lakehouse.client.transport import Transport
from lakehouse.client.uploads import UploadFile, multipart
from lakehouse.core.cancel import CancelScope
from lakehouse.core.errors import (
    BadSettingError,
    ForbiddenError,
    LakeError,
    NotSupportedError,
    RequestTooLargeError,
    ResultTruncatedError,
    ServiceError,
    ServiceUnreachableError,
    SourceError,
    StatementCanceledError,
    UnauthorizedError,
)
from lakehouse.http.principal import OWNER


@pytest.fixture
def network(served: Served) -> Iterator[tuple[RemoteLake, Unreliable]]:
    """A client behind a proxy that can break connections."""
    with (
        unreliable(served.url) as (url, proxy),
        lakehouse.connect(url, key=served.admin.key) as lake,
    ):
        yield lake, proxy


# ---- retries --------------------------------------------------------------------------------------------------------


def test_a_read_is_sent_again(network: tuple[RemoteLake, Unreliable]) -> None:
    lake, proxy = network
    proxy.refuse = 2
    assert lake.sql("select 1 as one").rows() == [(1,)]
    proxy.lose_answers = 1
    assert lake.tables() is not None
    assert len(proxy.requests) == 3


def test_a_write_whose_answer_is_lost_is_done_once(network: tuple[RemoteLake, Unreliable], namespace: str) -> None:
    lake, proxy = network
    lake.ingest_rows([{"id": 1}], f"{namespace}.leads", mode="append")
    proxy.requests.clear()
    proxy.lose_answers = 1
    report = lake.ingest_rows([{"id": 2}], f"{namespace}.leads", mode="append")
    keys = {line for data in proxy.requests for line in data.split(b"\r\n") if line.lower().startswith(b"idempotency")}
    assert (len(proxy.requests), len(keys)) == (2, 1)
    assert report.inserted == 1
    assert [snapshot.rows_total for snapshot in lake.history(f"{namespace}.leads")] == [1, 2]


def test_a_service_that_does_not_answer_is_named(network: tuple[RemoteLake, Unreliable]) -> None:
    lake, proxy = network
    proxy.refuse = 99
    with pytest.raises(ServiceUnreachableError, match="does not answer") as raised:
        lake.sql("select 1")
    assert "lake serve" in raised.value.hint


def test_a_program_that_is_not_a_service_is_named(tmp_path: Path) -> None:
    from http.server import HTTPServer, SimpleHTTPRequestHandler

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with lakehouse.connect(f"http://127.0.0.1:{server.server_port}", key="k") as lake:
            with pytest.raises(ServiceError, match="answered with the status 404") as raised:
                lake.tables()
            assert "Is this the address" in raised.value.hint
        server.shutdown()


# ---- large results --------------------------------------------------------------------------------------------------


def test_a_large_result_is_never_in_memory_as_a_whole(lake: RemoteLake) -> None:
    before, most, rows = pyarrow.total_allocated_bytes(), 0, 0
    result = lake.sql("select id from range(20000000) t(id)")
    for batch in result.batches():
        rows += batch.num_rows
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert rows == 20_000_000, "160 MB"
    assert most < 48 << 20
    assert result.engine == "duckdb"
    with pytest.raises(LakeError, match="were read before"):
        result.to_arrow()


def test_a_result_that_ends_early_is_an_error(network: tuple[RemoteLake, Unreliable]) -> None:
    lake, proxy = network
    proxy.cut_after = 40 << 20
    with pytest.raises(ServiceUnreachableError, match="ended its answer"):
        lake.sql("select id from range(20000000) t(id)").to_arrow()


def test_a_result_that_nobody_reads_ends_its_statement(served: Served, lake: RemoteLake) -> None:
    running = served.service.queries.running
    result = lake.sql("select id from range(20000000) t(id)")
    (query,) = running.all(OWNER)
    assert len(result.columns) == 1
    del result
    gc.collect()
    wait_for(lambda: query not in running.all(OWNER))


def test_a_service_that_says_nothing_is_an_error_that_names_the_request(served: Served) -> None:
    impatient = lakehouse.connect(served.url, key=served.admin.key, timeout_s=1)
    with pytest.raises(ServiceUnreachableError, match="silent for 1 s after POST /query"):
        impatient.sql("select sum(a.id * b.id) as s from range(10000000) a(id), range(100000) b(id)")


def test_a_canceled_scope_ends_the_statement_here_and_on_the_service(served: Served, lake: RemoteLake) -> None:
    scope, raised = CancelScope(), []

    def work() -> None:
        with scope.active():
            try:
                lake.sql("select sum(a.id * b.id) as s from range(10000000) a(id), range(100000) b(id)").rows()
            except StatementCanceledError as exc:
                raised.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: served.service.queries.pool.busy)
    scope.cancel()
    thread.join(60)
    assert not thread.is_alive() and len(raised) == 1
    wait_for(lambda: not served.service.queries.pool.busy)


def test_a_truncated_result_is_an_error_unless_it_was_asked_for(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "lake", max_rows=10) as served,
        lakehouse.connect(served.url, key=served.admin.key) as lake,
    ):
        assert len(lake.sql("select * from range(100) t(i)", limit=10)) == 10
        assert len(lake.sql("select * from range(10) t(i)")) == 10
        with pytest.raises(ResultTruncatedError, match="more than the 10 rows") as raised:
            lake.sql("select * from range(11) t(i)")
        assert "serve.max_rows" in raised.value.hint


# ---- uploads --------------------------------------------------------------------------------------------------------


def test_an_upload_is_read_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    with file.open("wb") as out:
        out.truncate(50 << 20)
    content = multipart({"into": "a.b"}, [UploadFile(file, 'la"rge.csv', 50 << 20)])
    sizes = [len(piece) for piece in content.read()]
    assert sum(sizes) == content.length
    assert max(sizes) <= 1 << 20
    assert b'filename="la_rge.csv"' in b"".join(piece for piece in content.read() if len(piece) < 1000)


def test_a_file_that_changes_during_its_upload_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "growing.csv"
    file.write_text("id\n1\n")
    content = multipart({}, [UploadFile(file, "growing.csv", 5)])
    file.write_text("id\n1\n2\n")
    with pytest.raises(SourceError, match=r"growing\.csv changed"):
        list(content.read())


def test_an_upload_that_is_too_large_is_refused_by_the_service(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    file.write_bytes(b"id\n" + b"1\n" * 2_000_000)
    with (
        serving(tmp_path / "lake", max_upload="1MB") as served,
        lakehouse.connect(served.url, key=served.admin.key) as lake,
        pytest.raises(RequestTooLargeError, match="larger than"),
    ):
        lake.ingest(file, into="a.b")


# ---- keys and addresses -----------------------------------------------------------------------------------------------


def test_a_key_is_never_shown(served: Served) -> None:
    lake = lakehouse.connect(served.url, key="lake_secret_text")
    assert "secret" not in repr(lake) + repr(vars(lake))
    with pytest.raises(UnauthorizedError) as raised:
        lake.tables()
    assert "secret_text" not in str(raised.value.as_dict())


def test_a_key_comes_from_the_settings(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnauthorizedError, match="no key") as raised:
        lakehouse.connect(served.url).tables()
    assert "LAKE_KEY" in raised.value.hint
    (tmp_path / "key").write_text(served.admin.key + "\n")
    monkeypatch.setenv("LAKE_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("LAKE_URL", served.url)
    with lakehouse.connect() as lake:
        assert lake.url == served.url and lake.sql("select 4 as four").rows() == [(4,)]
    monkeypatch.setenv("LAKE_URL", "http://127.0.0.1:1")
    with pytest.raises(UnauthorizedError, match="no key"):  # the key is for the other address
        lakehouse.connect(served.url).tables()


def test_a_scope_is_enforced(served: Served, namespace: str) -> None:
    reader = served.client("reader")
    with lakehouse.connect(served.url, key=reader.key) as lake, pytest.raises(ForbiddenError, match="reader"):
        lake.ingest_rows([{"id": 1}], f"{namespace}.leads")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://lake.example.com", "not the address of a service"),
        ("127.0.0.1:8600", "not the address of a service"),
        ("http://me:secret@127.0.0.1:8600", "no user and no password"),
        ("http://127.0.0.1:99999", "Port out of range"),
        ("http://lake.example.com", "clear text"),
        ("http://10.0.0.7:8600", "clear text"),
    ],
)
def test_an_address_that_a_key_must_not_go_to_is_refused(url: str, reason: str) -> None:
    with pytest.raises(BadSettingError, match=reason) as raised:
        Transport(url, "lake_key")
    assert "secret" not in raised.value.message


def test_a_key_crosses_a_trusted_network_on_request() -> None:
    assert str(Transport("http://serve:8600/lake/", "k", allow_http=True).address) == "http://serve:8600/lake"
    assert str(Transport("https://lake.example.com", "k").address) == "https://lake.example.com"
    assert str(Transport("http://[::1]:8600", "k").address) == "http://[::1]:8600"


def test_all_pages_of_a_list_are_read(lake: RemoteLake, namespace: str) -> None:
    tables = [f"{namespace}.t{number}" for number in range(3)]
    for table in tables:
        lake.ingest_rows([{"id": 1}], table)
    pages = lake._service.pages(Request("GET", "/tables", {"page_size": 1}), "tables")  # noqa: SLF001 - so few tables are one page by default
    assert [entry["name"] for entry in pages] == lake.table_names() == [str(info.name) for info in lake.tables()]
    assert set(tables) <= set(lake.table_names())


def test_what_only_a_lake_of_this_machine_has_is_refused(lake: RemoteLake) -> None:
    with pytest.raises(NotSupportedError, match="spark works on a lake of this machine"):
        _ = lake.spark
    with pytest.raises(AttributeError):
        _ = lake.nothing


def test_a_run_from_a_branch_is_not_sent(lake: RemoteLake) -> None:
    lake.refs.branches.create("no_run")
    with pytest.raises(NotSupportedError, match="starts from main"):
        lake.branch("no_run").run("market")
