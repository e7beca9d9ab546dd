"""Where the file of a month is: in a folder of the user's, in the lake's raw area, or still to be fetched."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import BadSettingError, SourceError
from lakehouse.pipelines.taxi.source.address import Address, address_of
from lakehouse.pipelines.taxi.source.download import Order, RetryPolicy, download, look
from lakehouse.pipelines.taxi.source.marks import Mark
from lakehouse.pipelines.taxi.source.whole import NotWhole, check_whole, sha256_of
from lakehouse.pipelines.taxi.source.wire import Answered, Transient
from lakehouse.process.locks import locked

if TYPE_CHECKING:
    from lakehouse.pipelines.model import Reading

_FILE = re.compile(r"yellow_tripdata_(\d{4}-(?:0[1-9]|1[0-2]))\.parquet")
_MEGABYTE = 1_000_000
#: Servers that do not know HEAD, or keep it from strangers: only a download tells whether the file has changed.
_NO_HEAD = {405, 501}


@dataclass(frozen=True)
class Found:
    """The file of a month, here."""

    file: Path
    source: str
    sha256: str

    @property
    def notes(self) -> dict[str, str]:
        return {"source": self.source, "bytes": str(self.file.stat().st_size), "sha256": self.sha256}


@dataclass(frozen=True)
class Kept:
    """What is known of a file in the raw area: the small JSON beside it."""

    url: str
    etag: str
    last_modified: str
    size: int
    sha256: str
    fetched_at: str

    @property
    def mark(self) -> Mark:
        return Mark(self.etag, self.last_modified, self.size)


def file_name(month: str) -> str:
    """What the city calls the file of a month."""
    return f"yellow_tripdata_{month}.parquet"


def bring(reading: Reading) -> Found:
    """The file of the month that is wanted, on this machine and whole."""
    url, path = reading.settings.get("url", ""), reading.settings.get("path", "")
    if url and path:
        raise BadSettingError("sources.taxi has both a url and a path.", "Keep the one that is meant.")
    if path:
        return _in_folder(Path(path).expanduser(), reading.partition)
    raw = reading.raw / "taxi" / file_name(reading.partition)
    if url:
        raw.parent.mkdir(parents=True, exist_ok=True)
        address = address_of(url, raw.name)
        with locked(raw.with_name(raw.name + ".lock")):
            return _fetched(_order(reading, address), raw, reading.now.isoformat())
    if not raw.exists():
        raise SourceError(
            f"Nothing says where the trips of {reading.partition} are.",
            "Set sources.taxi.url to the address of the city's files, or sources.taxi.path to a folder with some.",
        )
    reading.say(f"no sources.taxi.url is set: using {raw.name} as it is in the raw area")
    return _as_kept(raw, str(raw))


def months_there(reading: Reading) -> Mapping[str, str]:
    """The months whose files are here already. What a web address has cannot be listed."""
    path = reading.settings.get("path", "")
    folder = Path(path).expanduser() if path else reading.raw / "taxi"
    if path and not folder.is_dir():
        raise _no_folder(folder)
    files = {match[1]: file for file in sorted(folder.glob("*.parquet")) if (match := _FILE.fullmatch(file.name))}
    return {month: _fingerprint(file) for month, file in files.items()}


def _fingerprint(file: Path) -> str:
    facts = file.stat()
    return f"{file.name} {facts.st_size} {facts.st_mtime_ns}"


def _in_folder(folder: Path, month: str) -> Found:
    if not folder.is_dir():
        raise _no_folder(folder)
    file = folder / file_name(month)
    if not file.is_file():
        there = [match[1] for each in sorted(folder.iterdir()) if (match := _FILE.fullmatch(each.name))]
        raise SourceError(
            f"There is no {file.name} in {folder}.",
            f"Months there: {there[0]} to {there[-1]}." if there else "The folder has no file of that kind.",
        )
    return Found(_whole(file), str(file), sha256_of(file))


def _order(reading: Reading, address: Address) -> Order:
    settings, usual = reading.settings, RetryPolicy()
    patience = RetryPolicy(
        int(_number(settings, "tries", usual.tries)),
        _number(settings, "timeout_s", usual.timeout_s),
        _number(settings, "wait_s", usual.wait_s),
    )
    return Order(address, reading.partition, patience, reading.say, _quarters(reading.say, address.shown))


def _number(settings: Mapping[str, str], name: str, usual: float) -> float:
    given = settings.get(name, "")
    try:
        number = float(given) if given else usual
    except ValueError:
        number = -1.0
    # Also refused: NaN, for which nothing is true, and what no clock can wait for.
    if not 0 < number < 100_000:
        raise BadSettingError(f"sources.taxi.{name}={given!r} is not a number above 0.", f"The usual one is {usual:g}.")
    return number


def _fetched(order: Order, raw: Path, now: str) -> Found:
    """The file in the raw area, fetched unless the server says that it is the one that is there."""
    kept = _known(raw)
    if kept is not None:
        try:
            unchanged = kept.mark.same_as(look(order))
        except Transient as exc:
            return _offline(order, raw, f"{exc.reason}")
        except Answered as exc:
            if exc.status not in _NO_HEAD:
                return _offline(order, raw, f"the server answers {exc.status}")
            unchanged = False
        if unchanged:
            order.say(f"{raw.name} is unchanged since {kept.fetched_at or 'it was put into the raw area'}")
            return _as_kept(raw, order.address.shown)
        order.say(f"{raw.name} has been published anew")
    order.say(f"fetching {order.address.shown}")
    mark = download(order, raw)
    found = Found(raw, order.address.shown, sha256_of(raw))
    size = raw.stat().st_size
    _remember(raw, Kept(order.address.shown, mark.etag, mark.last_modified, size, found.sha256, now))
    return found


def _offline(order: Order, raw: Path, reason: str) -> Found:
    order.say(f"{order.address.shown}: {reason}; using {raw.name} as it is in the raw area")
    return _as_kept(raw, order.address.shown)


def _known(raw: Path) -> Kept | None:
    """What is kept in the raw area, or None if nothing is, or if it is not what was kept there."""
    if not raw.exists():
        return None
    size = raw.stat().st_size
    try:
        kept = Kept(**json.loads(_beside(raw).read_text()))
    except FileNotFoundError:
        # Somebody put the file there. Its size has to do.
        return Kept("", "", "", size, "", "")
    except (ValueError, TypeError):
        return None
    return kept if kept.size == size and kept.sha256 == sha256_of(raw) else None


def _as_kept(raw: Path, source: str) -> Found:
    return Found(_whole(raw), source, sha256_of(raw))


def _remember(raw: Path, kept: Kept) -> None:
    unfinished = _beside(raw).with_suffix(".writing")
    unfinished.write_text(json.dumps(vars(kept), indent=1) + "\n")
    os.replace(unfinished, _beside(raw))


def _beside(raw: Path) -> Path:
    return raw.with_name(raw.name + ".json")


def _whole(file: Path) -> Path:
    try:
        check_whole(file)
    except NotWhole as exc:
        raise SourceError(f"{file} is not a whole Parquet file: {exc}.", "Fetch or copy it again.") from exc
    return file


def _no_folder(folder: Path) -> SourceError:
    return SourceError(f"There is no folder {folder}.", "Look at sources.taxi.path.")


def _quarters(say: Callable[[str], None], what: str) -> Callable[[int, int | None], None]:
    """Tells of each quarter of a download that is done."""
    told = 0

    def progress(done: int, size: int | None) -> None:
        nonlocal told
        quarter = done * 4 // size if size else 0
        if size and told < quarter < 4:
            say(f"{what}: {done / _MEGABYTE:.1f} of {size / _MEGABYTE:.1f} MB")
        told = max(told, quarter)

    return progress
