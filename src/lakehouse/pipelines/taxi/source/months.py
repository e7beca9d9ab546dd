"""The file of a month: in a folder, in the lake's raw area, or downloaded to it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, SourceError
from lakehouse.pipelines.taxi.source.download import (
    DownloadRequest,
    RetryPolicy,
    check_parquet,
    download,
    fetch_version,
)
from lakehouse.pipelines.taxi.source.web import Address, FileVersion, HttpStatusError, TransientError, address_of
from lakehouse.process.files import locked
from lakehouse.storage.raw import RawArea, local_raw_area
from lakehouse.storage.tree import FileStat

if TYPE_CHECKING:
    from lakehouse.pipelines.model import SourceContext

_FILE = re.compile(r"yellow_tripdata_(\d{4}-(?:0[1-9]|1[0-2]))\.parquet")
#: The pipeline's folder in the raw area.
_FOLDER = "taxi"
_MEGABYTE = 1_000_000
#: Statuses of servers without HEAD: only a download shows whether the file has changed.
_NO_HEAD = {405, 501}


@dataclass(frozen=True)
class MonthFile:
    """The complete file of a month, and its origin."""

    raw: RawMonth
    source: str
    size: int
    sha256: str

    @property
    def notes(self) -> dict[str, str]:
        return {"source": self.source, "bytes": str(self.size), "sha256": self.sha256}


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


@dataclass(frozen=True)
class RawMonth:
    """The file of a month and the record beside it, in the raw area or in a folder of the user's."""

    area: RawArea
    path: str
    """The path of the file in the area."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def uri(self) -> str:
        """Its location, as Spark reads it."""
        return self.area.uri(self.path)

    @property
    def shown(self) -> str:
        """Its location for people."""
        return self.uri.removeprefix("file://")

    @property
    def file(self) -> FileStat | None:
        return self.area.stat(self.path)

    def open(self) -> BinaryIO:
        return self.area.open(self.path)

    def sha256(self) -> str:
        with self.open() as content:
            return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # Arrow's files have readinto

    def record(self) -> DownloadRecord | None:
        """The record of the file; None if there is no file, or if it is not the recorded one."""
        file = self.file
        if not file:
            return None
        try:
            with self.area.open(f"{self.path}.json") as content:
                record = DownloadRecord(**json.load(content))
        except FileNotFoundError:
            # A user put the file there: only its size can be compared.
            return DownloadRecord("", "", "", file.size, "", "")
        except (ValueError, TypeError):
            return None
        return record if record.size == file.size and record.sha256 == self.sha256() else None

    def save(self, record: DownloadRecord) -> None:
        self.area.write(f"{self.path}.json", (json.dumps(asdict(record), indent=1) + "\n").encode())


def file_name(month: str) -> str:
    """The city's name of a month's file."""
    return f"yellow_tripdata_{month}.parquet"


def find_month(context: SourceContext) -> MonthFile:
    """The complete file of the requested month, downloaded first if need be."""
    url, path = context.settings.get("url", ""), context.settings.get("path", "")
    if url and path:
        raise BadSettingError("sources.taxi has both a url and a path.", "Remove one of them.")
    if path:
        return _in_folder(_folder(path), context.partition)
    raw = RawMonth(context.raw, f"{_FOLDER}/{file_name(context.partition)}")
    if url:
        return _from_web(context, url, raw)
    if not raw.file:
        raise SourceError(
            f"There is no location for the trips of {context.partition}.",
            "Set sources.taxi.url to the address of the city's files, or sources.taxi.path to a folder with some.",
        )
    context.progress(f"sources.taxi.url is not set: using {raw.name} of the raw area")
    return _checked(raw, raw.shown)


def list_months(context: SourceContext) -> Mapping[str, str]:
    """The months that have a file, each with a fingerprint. A web address cannot be listed."""
    path = context.settings.get("path", "")
    files = _folder(path).list("") if path else context.raw.list(_FOLDER)
    return {match[1]: _fingerprint(file) for file in files if (match := _month_of(file))}


def _month_of(file: FileStat) -> re.Match[str] | None:
    """The match of a file directly in the folder."""
    return _FILE.fullmatch(file.name.removeprefix(f"{_FOLDER}/"))


def _fingerprint(file: FileStat) -> str:
    return f"{file.name.rpartition('/')[2]} {file.size} {file.modified_ns}"


def _folder(path: str) -> RawArea:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}.", "Check sources.taxi.path.")
    return local_raw_area(folder)


def _in_folder(area: RawArea, month: str) -> MonthFile:
    wanted = RawMonth(area, file_name(month))
    if not wanted.file:
        known = [match[1] for file in area.list("") if (match := _month_of(file))]
        raise SourceError(
            f"There is no {wanted.name} in {area.work}.",
            f"It has the months {known[0]} to {known[-1]}." if known else "It has no file of that kind.",
        )
    return _checked(wanted, wanted.shown)


def _from_web(context: SourceContext, url: str, raw: RawMonth) -> MonthFile:
    target = context.raw.work / raw.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(target.name + ".lock")):
        return _downloaded(_request(context, address_of(url, raw.name)), raw, context.now.isoformat())


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


def _downloaded(request: DownloadRequest, raw: RawMonth, now: str) -> MonthFile:
    """The file in the raw area, downloaded again if it has changed on the server."""
    record = raw.record()
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
            since = record.fetched_at or "it was put into the raw area"
            request.progress(f"{raw.name} is unchanged since {since}")
            return _checked(raw, shown)
        request.progress(f"{raw.name} has changed on the server")
    request.progress(f"downloading {shown}")
    target = raw.area.work / raw.path
    version = download(request, target)
    raw.area.put(raw.path, target)
    checked = _checked(raw, shown)
    raw.save(DownloadRecord(shown, version.etag, version.last_modified, checked.size, checked.sha256, now))
    return checked


def _offline(request: DownloadRequest, raw: RawMonth, reason: str) -> MonthFile:
    request.progress(f"{request.address.shown}: {reason}; using {raw.name} of the raw area")
    return _checked(raw, request.address.shown)


def _checked(raw: RawMonth, source: str) -> MonthFile:
    file = raw.file
    assert file  # every caller has seen it
    try:
        with raw.open() as content:
            check_parquet(content)
    except ValueError as exc:
        raise SourceError(f"{raw.shown} is not a complete Parquet file: {exc}.", "Download or copy it again.") from exc
    return MonthFile(raw, source, file.size, raw.sha256())


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
