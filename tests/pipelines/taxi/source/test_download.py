"""Downloads from a server that misbehaves: what arrives is whole and right, or an error says why not."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.taxi.source.conftest import FILE, MONTH
from tests.support.servers.web import Web, serving

from lakehouse.core.errors import SourceError
from lakehouse.pipelines.taxi.source.download import DownloadRequest, RetryPolicy, download
from lakehouse.pipelines.taxi.source.web import address_of

QUICK = RetryPolicy(tries=3, timeout_s=0.5, wait_s=0.01)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / FILE


@pytest.fixture
def content(web: Web, month_file: Path) -> bytes:
    """What is published."""
    web.files[f"/data/{FILE}"] = month_file.read_bytes()
    return month_file.read_bytes()


def request(web: Web, retry: RetryPolicy = QUICK) -> DownloadRequest:
    return DownloadRequest(address_of(f"{web.address}/data/", FILE), MONTH, retry)


def left_over(into: Path) -> list[str]:
    return sorted(file.name for file in into.parent.iterdir() if file != into)


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(web: Web, into: Path, content: bytes) -> None:
    seen: list[tuple[int, int | None]] = []
    counting = replace(request(web), on_bytes=lambda done, size: seen.append((done, size)))
    version = download(counting, into)
    assert into.read_bytes() == content
    assert version.size == len(content)
    assert seen[-1] == (len(content), len(content))
    assert left_over(into) == []


@pytest.mark.parametrize("statuses", [[500], [503, 503], [429]], ids=["500", "503 twice", "429"])
def test_a_server_that_recovers_is_asked_again(web: Web, into: Path, content: bytes, statuses: list[int]) -> None:
    web.statuses = list(statuses)
    download(request(web), into)
    assert into.read_bytes() == content
    assert len(web.asked) == len(statuses) + 1


def test_a_server_that_does_not_recover_is_given_up(web: Web, into: Path, content: bytes) -> None:
    web.statuses = [503] * 10
    with pytest.raises(SourceError, match=r"in 3 tries: the server answered 503 Service Unavailable"):
        download(request(web), into)
    assert len(web.asked) == 3
    assert not into.exists()


def test_retry_after_is_waited_for(web: Web, into: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("lakehouse.pipelines.taxi.source.download.time.sleep", waited.append)
    web.statuses, web.retry_after = [503], "7"
    download(request(web), into)
    assert 5 < waited[0] < 9


def test_what_broke_off_is_resumed_and_not_fetched_twice(web: Web, into: Path, content: bytes) -> None:
    web.cut_after = [10_000]
    download(request(web), into)
    assert into.read_bytes() == content
    first, second = web.of("GET")
    assert "Range" not in first
    assert second["Range"] == "bytes=10000-"
    assert second["If-Range"] == f'"{hash(content)}"'


def test_a_later_process_resumes_what_an_earlier_one_left(web: Web, into: Path, content: bytes) -> None:
    web.cut_after = [10_000]
    with pytest.raises(SourceError):
        download(request(web, RetryPolicy(tries=1, timeout_s=0.5, wait_s=0.01)), into)
    assert left_over(into) == [f"{FILE}.part", f"{FILE}.part.json"]
    download(request(web), into)
    assert into.read_bytes() == content
    assert web.of("GET")[1]["Range"] == "bytes=10000-"
    assert left_over(into) == []


def test_last_modified_resumes_where_there_is_no_etag(web: Web, into: Path, content: bytes) -> None:
    web.etags, web.last_modified, web.cut_after = False, "Sun, 01 Mar 2026 00:00:00 GMT", [10_000]
    download(request(web), into)
    assert into.read_bytes() == content
    assert web.of("GET")[1]["If-Range"] == "Sun, 01 Mar 2026 00:00:00 GMT"


def test_without_a_validator_it_starts_over(web: Web, into: Path, content: bytes) -> None:
    web.etags, web.cut_after = False, [10_000]
    download(request(web), into)
    assert into.read_bytes() == content
    assert "Range" not in web.of("GET")[1]


def test_a_server_that_ignores_ranges_sends_it_all_again(web: Web, into: Path, content: bytes) -> None:
    web.ranges, web.cut_after = False, [10_000]
    download(request(web), into)
    assert into.read_bytes() == content


@pytest.mark.parametrize("careful", [True, False], ids=["the server checks If-Range", "the server ignores If-Range"])
def test_a_file_that_changes_between_its_parts_starts_over(
    web: Web, into: Path, content: bytes, other_month_file: Path, careful: bool
) -> None:
    web.checks_if_range, web.cut_after = careful, [10_000]
    web.then = {f"/data/{FILE}": other_month_file.read_bytes()}
    download(request(web), into)
    assert into.read_bytes() == other_month_file.read_bytes()


def test_parts_of_two_files_of_one_size_are_not_joined(web: Web, into: Path, content: bytes) -> None:
    changed = bytearray(content)
    changed[100] ^= 1
    web.checks_if_range, web.cut_after, web.then = False, [10_000], {f"/data/{FILE}": bytes(changed)}
    download(request(web), into)
    assert into.read_bytes() == changed


def test_a_file_that_is_shorter_now_than_its_part_starts_over(web: Web, into: Path, content: bytes) -> None:
    version = {"etag": f'"{hash(content)}"', "last_modified": "", "size": None}
    state = {"source": f"{web.address}/data/{FILE}", "version": version}
    into.with_name(f"{FILE}.part").write_bytes(b"x" * (len(content) + 5))
    into.with_name(f"{FILE}.part.json").write_text(json.dumps(state))
    download(request(web), into)
    assert into.read_bytes() == content
    assert web.of("GET")[0]["Range"] == f"bytes={len(content) + 5}-"


def test_a_part_of_another_address_is_not_used(web: Web, into: Path, content: bytes) -> None:
    web.cut_after = [10_000]
    with pytest.raises(SourceError):
        download(request(web, RetryPolicy(tries=1, timeout_s=0.5, wait_s=0.01)), into)
    with serving() as other:
        other.files = web.files
        download(request(other), into)
        assert "Range" not in other.of("GET")[0]
    assert into.read_bytes() == content


def test_a_stalled_connection_is_left_and_resumed(web: Web, into: Path, content: bytes) -> None:
    web.stall_after = [5_000]
    download(request(web), into)
    assert into.read_bytes() == content
    assert web.of("GET")[1]["Range"] == "bytes=5000-"


def test_tries_count_only_while_nothing_arrives(web: Web, into: Path, content: bytes) -> None:
    web.cut_after = [1_000] * 8
    download(request(web), into)
    assert into.read_bytes() == content
    assert len(web.of("GET")) == 9


def test_a_cut_without_a_length_is_seen_by_the_missing_end(web: Web, into: Path, content: bytes) -> None:
    web.lengths, web.cut_after = False, [10_000]
    with pytest.raises(SourceError, match="magic bytes not found"):
        download(request(web), into)
    assert not into.exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>Sign in to this network</html>", "magic bytes not found"),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "deserialize thrift"),
        (b"", "size is 0 bytes"),
    ],
    ids=["a page", "no footer", "nothing"],
)
def test_what_is_not_parquet_is_refused(web: Web, into: Path, body: bytes, reason: str) -> None:
    web.files[f"/data/{FILE}"] = body
    into.write_bytes(b"what was there")
    with pytest.raises(SourceError, match=reason):
        download(request(web), into)
    assert into.read_bytes() == b"what was there"
    assert left_over(into) == []


def test_a_month_that_is_not_there_is_not_published_yet(web: Web, into: Path) -> None:
    with pytest.raises(SourceError, match="The month 2026-01 is not published") as caught:
        download(request(web), into)
    assert "two months" in caught.value.hint
    assert len(web.asked) == 1


def test_a_forbidden_file_may_be_a_month_that_is_not_published(web: Web, into: Path) -> None:
    web.statuses = [403]
    with pytest.raises(SourceError, match="403 Forbidden") as caught:
        download(request(web), into)
    assert "may not be published yet" in caught.value.hint


def test_a_refused_connection_says_so(into: Path) -> None:
    with serving() as gone:
        refused = request(gone)
    with pytest.raises(SourceError, match="in 3 tries: Connection refused"):
        download(refused, into)


def test_a_redirect_is_followed_on_the_web(web: Web, into: Path, content: bytes) -> None:
    web.redirects = {f"/old/{FILE}": f"/data/{FILE}"}
    download(DownloadRequest(address_of(f"{web.address}/old", FILE), MONTH, QUICK), into)
    assert into.read_bytes() == content


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x.parquet", "file:///etc/passwd", "/data/loop"])
def test_a_redirect_elsewhere_is_not_followed(web: Web, into: Path, target: str) -> None:
    web.redirects = {f"/data/{FILE}": target, "/data/loop": "/data/loop"}
    with pytest.raises(SourceError, match="redirects in a cycle, or to"):
        download(request(web), into)


def test_a_password_goes_to_its_own_server_and_into_no_text(web: Web, into: Path, content: bytes) -> None:
    with serving() as other:
        other.files = web.files
        web.redirects = {f"/old/{FILE}": f"{other.address}/data/{FILE}"}
        base = f"{web.address.replace('//', '//ann:s3cr%2Ft@')}/old?token=t0ken"
        download(DownloadRequest(address_of(base, FILE), MONTH, QUICK), into)
        assert "Authorization" not in other.of("GET")[0]
    assert web.of("GET")[0]["Authorization"] == "Basic YW5uOnMzY3IvdA=="
    assert web.asked[0][1] == f"/old/{FILE}?token=t0ken"


@pytest.mark.parametrize("status", [404, 403, 500, 418])
def test_no_error_shows_a_password(web: Web, into: Path, status: int) -> None:
    web.statuses = [status] * 3
    progress: list[str] = []
    base = f"{web.address.replace('//', '//ann:s3cret@')}/old?token=t0ken"
    with pytest.raises(SourceError) as caught:
        download(DownloadRequest(address_of(base, FILE), MONTH, QUICK, progress.append), into)
    shown = " ".join([str(caught.value), caught.value.hint, repr(caught.value), *progress])
    assert "s3cret" not in shown
    assert "t0ken" not in shown
    assert "***@127.0.0.1" in shown


@pytest.mark.parametrize("proxy", ["http://ann:s3cret@127.0.0.1:9", "ann:s3cret@nowhere:x", "http:/ann:s3cret@nowhere"])
def test_no_error_shows_a_proxys_password(into: Path, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(SourceError) as caught:
        download(DownloadRequest(address_of("http://data.invalid/x", FILE), MONTH, QUICK), into)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + caught.value.hint
