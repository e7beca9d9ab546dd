"""The origin of a month's file: a folder, the raw area, the web, or the raw area when the web is unreachable."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from tests.pipelines.taxi.source.conftest import FILE, NOW, Contexts
from tests.support.servers.web import Web, serving

from lakehouse.core.errors import BadSettingError, SourceError
from lakehouse.pipelines.taxi.source.months import find_month, list_months


@pytest.fixture
def published(web: Web, month_file: Path) -> bytes:
    web.files[f"/t/{FILE}"] = month_file.read_bytes()
    return month_file.read_bytes()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def raw_file(context: Contexts) -> Path:
    return context.raw / "taxi" / FILE


def test_a_month_is_fetched_into_the_raw_area_with_what_is_known_of_it(
    web: Web, context: Contexts, published: bytes
) -> None:
    month = find_month(context(url=f"{web.address}/t"))
    sha256 = digest(published)
    assert month.raw.shown == str(raw_file(context))
    assert raw_file(context).read_bytes() == published
    assert month.notes == {"source": f"{web.address}/t/{FILE}", "bytes": str(len(published)), "sha256": sha256}
    assert json.loads(raw_file(context).with_name(f"{FILE}.json").read_text()) == {
        "url": f"{web.address}/t/{FILE}",
        "etag": f'"{hash(published)}"',
        "last_modified": "",
        "size": len(published),
        "sha256": sha256,
        "fetched_at": NOW.isoformat(),
    }
    assert context.messages == [f"downloading {web.address}/t/{FILE}"]


def test_quarters_of_a_download_are_reported(web: Web, context: Contexts, published: bytes) -> None:
    web.cut_after = [len(published) // 2 + 1]
    find_month(context(url=f"{web.address}/t"))
    whole = f"{len(published) / 1e6:.1f} MB"
    assert [message for message in context.messages if message.endswith(whole)] == [
        f"{web.address}/t/{FILE}: {len(published) / 2e6:.1f} of {whole}"
    ]


def test_a_month_that_is_unchanged_is_not_fetched_again(web: Web, context: Contexts, published: bytes) -> None:
    first = find_month(context(url=f"{web.address}/t"))
    second = find_month(context(url=f"{web.address}/t"))
    assert second == first
    assert len(web.of("GET")) == 1
    assert context.messages[-1].startswith(f"{FILE} is unchanged since 2026-03-01")


def test_a_month_that_was_changed_on_the_server_is_fetched_again(
    web: Web, context: Contexts, published: bytes, other_month_file: Path
) -> None:
    find_month(context(url=f"{web.address}/t"))
    web.files[f"/t/{FILE}"] = other_month_file.read_bytes()
    assert find_month(context(url=f"{web.address}/t")).sha256 == digest(other_month_file.read_bytes())
    assert f"{FILE} has changed on the server" in context.messages


def test_a_file_of_the_same_size_with_another_etag_is_fetched_again(
    web: Web, context: Contexts, published: bytes
) -> None:
    find_month(context(url=f"{web.address}/t"))
    beside = raw_file(context).with_name(f"{FILE}.json")
    beside.write_text(json.dumps({**json.loads(beside.read_text()), "etag": '"older"'}))
    find_month(context(url=f"{web.address}/t"))
    assert len(web.of("GET")) == 2


def test_a_file_that_was_damaged_in_the_raw_area_is_fetched_again(
    web: Web, context: Contexts, published: bytes
) -> None:
    find_month(context(url=f"{web.address}/t"))
    damaged = bytearray(published)
    damaged[100] ^= 1
    raw_file(context).write_bytes(damaged)
    assert find_month(context(url=f"{web.address}/t")).sha256 == digest(published)


def test_a_server_without_head_is_asked_for_the_file(web: Web, context: Contexts, published: bytes) -> None:
    web.heads = False
    find_month(context(url=f"{web.address}/t"))
    find_month(context(url=f"{web.address}/t"))
    assert len(web.of("GET")) == 2


def test_head_follows_a_redirect_as_head(web: Web, context: Contexts, published: bytes) -> None:
    web.redirects = {f"/old/{FILE}": f"/t/{FILE}"}
    find_month(context(url=f"{web.address}/old"))
    find_month(context(url=f"{web.address}/old"))
    assert [method for method, path, _ in web.asked if path.startswith("/t/")] == ["GET", "HEAD"]


def test_offline_the_file_in_the_raw_area_does(context: Contexts, month_file: Path) -> None:
    with serving() as web:
        web.files[f"/t/{FILE}"] = month_file.read_bytes()
        online = find_month(context(url=f"{web.address}/t"))
    offline = find_month(context(url=f"{web.address}/t"))
    assert offline == online
    assert context.messages[-1].endswith(f"Connection refused; using {FILE} of the raw area")


def test_a_file_that_a_user_put_into_the_raw_area_needs_no_address(context: Contexts, month_file: Path) -> None:
    raw_file(context).parent.mkdir(parents=True)
    shutil.copy(month_file, raw_file(context))
    assert find_month(context()).raw.shown == str(raw_file(context))
    assert context.messages == [f"sources.taxi.url is not set: using {FILE} of the raw area"]


def test_a_file_that_a_user_put_into_the_raw_area_is_taken_if_its_size_is_right(
    web: Web, context: Contexts, published: bytes
) -> None:
    raw_file(context).parent.mkdir(parents=True)
    raw_file(context).write_bytes(published)
    find_month(context(url=f"{web.address}/t"))
    assert web.of("GET") == []


def test_no_output_shows_a_password(web: Web, context: Contexts, published: bytes) -> None:
    web.statuses = [503]
    address = web.address.replace("//", "//ann:s3cret@")
    month = find_month(context(url=f"{address}/t"))
    find_month(context(url=f"{address}/t"))
    beside = raw_file(context).with_name(f"{FILE}.json").read_text()
    assert "s3cret" not in " ".join([*context.messages, str(month.notes), beside])
    assert "***@127.0.0.1" in month.notes["source"]


def test_a_folder_is_read_where_it_is(context: Contexts, month_file: Path) -> None:
    month = find_month(context(path=str(month_file.parent)))
    assert month.raw.shown == str(month_file)
    assert month.notes["source"] == str(month_file)
    assert not context.raw.exists()


def test_a_folder_without_the_month_says_which_it_has(context: Contexts, month_file: Path) -> None:
    with pytest.raises(SourceError, match=r"There is no yellow_tripdata_2025-07\.parquet") as caught:
        find_month(context("2025-07", path=str(month_file.parent)))
    assert caught.value.hint == "It has the months 2026-01 to 2026-01."


def test_a_half_file_in_a_folder_is_refused(context: Contexts, month_file: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(month_file.read_bytes()[:-100])
    with pytest.raises(SourceError, match="not a complete Parquet file: Parquet magic bytes not found"):
        find_month(context(path=str(tmp_path)))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({}, SourceError, "There is no location for the trips of 2026-01"),
        ({"url": "https://a.org", "path": "/tmp"}, BadSettingError, "both a url and a path"),
        ({"path": "/no/such/folder"}, SourceError, "There is no folder /no/such/folder"),
        ({"url": "https://a.invalid", "tries": "many"}, BadSettingError, "sources.taxi.tries='many'"),
        ({"url": "https://a.invalid", "timeout_s": "nan"}, BadSettingError, "sources.taxi.timeout_s='nan'"),
    ],
)
def test_settings_that_cannot_work_say_so(
    context: Contexts, settings: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find_month(context(**settings))


def test_the_months_of_a_folder_have_fingerprints_that_change_with_their_files(
    context: Contexts, month_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "months"
    folder.mkdir()
    for name in ("yellow_tripdata_2025-12.parquet", FILE, "green_tripdata_2026-01.parquet", f"{FILE}.part"):
        shutil.copy(month_file, folder / name)
    before = list_months(context("", path=str(folder)))
    assert list(before) == ["2025-12", "2026-01"]
    os.utime(folder / FILE, ns=(0, 0))
    after = list_months(context("", path=str(folder)))
    assert after["2025-12"] == before["2025-12"]
    assert after["2026-01"] != before["2026-01"]


def test_of_a_web_address_the_months_that_were_fetched_are_there(web: Web, context: Contexts, published: bytes) -> None:
    assert list_months(context("", url=f"{web.address}/t")) == {}
    find_month(context(url=f"{web.address}/t"))
    assert list(list_months(context("", url=f"{web.address}/t"))) == ["2026-01"]
