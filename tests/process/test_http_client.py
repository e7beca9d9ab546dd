"""HTTP requests: any status is an answer, no answer is one kind of error, and redirects get no secrets."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tests.support.servers.ports import free_port
from tests.support.servers.web import Web, serving

from lakehouse.process.http_client import TIMEOUT, HttpRequest, NoAnswerError, send, stream


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        running.files = {"/a": b"content" * 10_000}
        yield running


def test_any_status_is_an_answer(web: Web) -> None:
    assert send(HttpRequest(f"{web.address}/a"), max_bytes=7).body == b"content"
    assert send(HttpRequest(f"{web.address}/missing")).status == 404
    web.statuses = [503]
    assert send(HttpRequest(f"{web.address}/a")).status == 503


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/", "http://127.0.0.1:notaport/", "nowhere"])
def test_no_answer_is_an_error_without_the_address(url: str) -> None:
    address = url.format(port=free_port())
    with pytest.raises(NoAnswerError) as raised:
        send(HttpRequest(address, timeout_s=5))
    assert raised.value.reason in ("Connection refused", "the address is not valid", "the connection broke")
    assert raised.value.is_address == ("{port}" not in url)


def test_silence_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswerError) as raised:
        send(HttpRequest(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_s=0.2))
    assert raised.value.reason == TIMEOUT


def test_a_body_that_is_cut_off_is_an_error_however_it_is_read(web: Web) -> None:
    for read in ("read", "read_available"):
        web.cut_after = [1000]
        with stream(HttpRequest(f"{web.address}/a")) as response, pytest.raises(NoAnswerError, match="broke"):
            while getattr(response, read)(400):
                pass
    web.cut_after = [1000]
    with pytest.raises(NoAnswerError):
        send(HttpRequest(f"{web.address}/a"))


def test_redirects_are_followed_only_if_asked_for_and_other_hosts_get_no_token(web: Web) -> None:
    with serving() as other:
        other.files, web.redirects = {"/a": b"other"}, {"/moved": f"{other.address}/a", "/near": "/a"}
        headers = {"Authorization": "Bearer secret"}
        assert send(HttpRequest(f"{web.address}/moved", headers=headers)).status == 302
        assert send(HttpRequest(f"{web.address}/moved", headers=headers, redirects=True)).body == b"other"
        assert [sent for sent in other.of("GET") if "Authorization" in sent] == []
        assert send(HttpRequest(f"{web.address}/near", headers=headers, redirects=True)).status == 200
        assert web.of("GET")[-1]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_a_redirect_to_another_scheme_is_not_followed(web: Web, target: str) -> None:
    web.redirects = {"/moved": target}
    assert send(HttpRequest(f"{web.address}/moved", redirects=True)).status == 302


def test_proxies_of_the_environment_are_left_out_where_the_server_is_our_own(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("no_proxy", "")
    assert send(HttpRequest(f"{web.address}/a", proxies=False)).status == 200
    with pytest.raises(NoAnswerError):
        send(HttpRequest(f"{web.address}/a"))
