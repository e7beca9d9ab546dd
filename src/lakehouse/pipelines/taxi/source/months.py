"""The file of a month: in a folder, in the lake's raw area, or downloaded to it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import BadSettingError, SourceError
from lakehouse.pipelines.taxi.source.address import Address, address_of
from lakehouse.pipelines.taxi.source.download import (
    DownloadRequest,
    RetryPolicy,
    check_parquet,
    download,
    fetch_version,
)
from lakehouse.pipelines.taxi.source.web import FileVersion, HttpStatusError, TransientError
from lakehouse.process.locks import locked

if TYPE_CHECKING:
    from lakehouse.pipelines.model import SourceContext

_FILE = re.compile(r"yellow_tripdata_(\d{4}-(?:0[1-9]|1[0-2]))\.parquet")
_MEGABYTE = 1_000_000
#: Statuses of servers without HEAD: only a download shows whether the file has changed.
_NO_HEAD = {405, 501}


@dataclass(frozen=True)
class MonthFile:
    """The local file of a month."""

    file: Path
    source: str
    sha256: str

    @property
    def notes(self) -> dict[str, str]:
        return {"source": self.source, "bytes": str(self.file.stat().st_size), "sha256": self.sha256}


@dataclass(frozen=True)
class DownloadRecord:
    """The origin of a file in the raw area: the JSON file beside it."""

    url: str
    etag: str
    last_modified: str
    size: int
    sha256: str
    fetched_at: str

    @property
    def version(self) -> FileVersion:
        return FileVersion(self.etag, self.last_modified, self.size)


def file_name(month: str) -> str:
    """The city's name of a month's file."""
    return f"yellow_tripdata_{month}.parquet"


def local_file(context: SourceContext) -> MonthFile:
    """The complete file of the requested month, downloaded first if need be."""
    url, path = context.settings.get("url", ""), context.settings.get("path", "")
    if url and path:
        raise BadSettingError("sources.taxi has both a url and a path.", "Remove one of them.")
    if path:
        return _in_folder(Path(path).expanduser(), context.partition)
    raw = context.raw / "taxi" / file_name(context.partition)
    if url:
        raw.parent.mkdir(parents=True, exist_ok=True)
        address = address_of(url, raw.name)
        with locked(raw.with_name(raw.name + ".lock")):
            return _downloaded(_request(context, address), raw, context.now.isoformat())
    if not raw.exists():
        raise SourceError(
            f"There is no location for the trips of {context.partition}.",
            "Set sources.taxi.url to the address of the city's files, or sources.taxi.path to a folder with some.",
        )
    context.progress(f"sources.taxi.url is not set: using {raw.name} of the raw area")
    return _cached(raw, str(raw))


def local_months(context: SourceContext) -> Mapping[str, str]:
    """The months with a local file, each with a fingerprint. A web address cannot be listed."""
    path = context.settings.get("path", "")
    folder = Path(path).expanduser() if path else context.raw / "taxi"
    if path and not folder.is_dir():
        raise _no_folder(folder)
    files = {match[1]: file for file in sorted(folder.glob("*.parquet")) if (match := _FILE.fullmatch(file.name))}
    return {month: _fingerprint(file) for month, file in files.items()}


def _fingerprint(file: Path) -> str:
    stat = file.stat()
    return f"{file.name} {stat.st_size} {stat.st_mtime_ns}"


def _in_folder(folder: Path, month: str) -> MonthFile:
    if not folder.is_dir():
        raise _no_folder(folder)
    file = folder / file_name(month)
    if not file.is_file():
        months = [match[1] for each in sorted(folder.iterdir()) if (match := _FILE.fullmatch(each.name))]
        raise SourceError(
            f"There is no {file.name} in {folder}.",
            f"It has the months {months[0]} to {months[-1]}." if months else "It has no file of that kind.",
        )
    return _cached(file, str(file))


def _request(context: SourceContext, address: Address) -> DownloadRequest:
    settings, default = context.settings, RetryPolicy()
    retry = RetryPolicy(
        int(_number(settings, "tries", default.tries)),
        _number(settings, "timeout_s", default.timeout_s),
        _number(settings, "wait_s", default.wait_s),
    )
    on_bytes = _quarters(context.progress, address.shown)
    return DownloadRequest(address, context.partition, retry, context.progress, on_bytes)


def _number(settings: Mapping[str, str], name: str, default: float) -> float:
    given = settings.get(name, "")
    try:
        number = float(given) if given else default
    except ValueError:
        number = -1.0
    if not 0 < number < 100_000:  # NaN fails this as well
        raise BadSettingError(f"sources.taxi.{name}={given!r} is not a number above 0.", f"The default is {default:g}.")
    return number


def _downloaded(request: DownloadRequest, raw: Path, now: str) -> MonthFile:
    """The file in the raw area, downloaded again if it has changed on the server."""
    record = _record(raw)
    shown = request.address.shown
    if record is not None:
        try:
            unchanged = record.version.matches(fetch_version(request))
        except TransientError as exc:
            return _offline(request, raw, exc.reason)
        except HttpStatusError as exc:
            if exc.status not in _NO_HEAD:
                return _offline(request, raw, f"the server answers {exc.status}")
            unchanged = False
        if unchanged:
            request.progress(f"{raw.name} is unchanged since {record.fetched_at or 'it was put into the raw area'}")
            return _cached(raw, shown)
        request.progress(f"{raw.name} has changed on the server")
    request.progress(f"downloading {shown}")
    version = download(request, raw)
    found = MonthFile(raw, shown, _sha256(raw))
    size = raw.stat().st_size
    _save(raw, DownloadRecord(shown, version.etag, version.last_modified, size, found.sha256, now))
    return found


def _offline(request: DownloadRequest, raw: Path, reason: str) -> MonthFile:
    request.progress(f"{request.address.shown}: {reason}; using {raw.name} of the raw area")
    return _cached(raw, request.address.shown)


def _record(raw: Path) -> DownloadRecord | None:
    """The record of a file in the raw area; None if there is no file, or if it is not the recorded one."""
    if not raw.exists():
        return None
    size = raw.stat().st_size
    try:
        record = DownloadRecord(**json.loads(_record_file(raw).read_text()))
    except FileNotFoundError:
        # A user put the file there: only its size can be compared.
        return DownloadRecord("", "", "", size, "", "")
    except (ValueError, TypeError):
        return None
    return record if record.size == size and record.sha256 == _sha256(raw) else None


def _save(raw: Path, record: DownloadRecord) -> None:
    unfinished = _record_file(raw).with_suffix(".writing")
    unfinished.write_text(json.dumps(asdict(record), indent=1) + "\n")
    os.replace(unfinished, _record_file(raw))


def _record_file(raw: Path) -> Path:
    return raw.with_name(raw.name + ".json")


def _cached(file: Path, source: str) -> MonthFile:
    try:
        check_parquet(file)
    except ValueError as exc:
        raise SourceError(f"{file} is not a complete Parquet file: {exc}.", "Download or copy it again.") from exc
    return MonthFile(file, source, _sha256(file))


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _no_folder(folder: Path) -> SourceError:
    return SourceError(f"There is no folder {folder}.", "Check sources.taxi.path.")


def _quarters(progress: Callable[[str], None], name: str) -> Callable[[int, int | None], None]:
    """Reports each quarter of a download."""
    reported = 0

    def on_bytes(done: int, size: int | None) -> None:
        nonlocal reported
        quarter = done * 4 // size if size else 0
        if size and reported < quarter < 4:
            progress(f"{name}: {done / _MEGABYTE:.1f} of {size / _MEGABYTE:.1f} MB")
        reported = max(reported, quarter)

    return on_bytes
