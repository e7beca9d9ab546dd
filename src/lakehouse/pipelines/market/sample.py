"""Minute bars that never happened, as the gzip CSV flat files of a real publisher and with their dirt.

The numbers are made up: prices that wander, busy opens and closes, thin trading before and after; the same ones for
the same seed, whichever other days are written.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Bars = dict[str, npt.NDArray[Any]]

HEADER = "ticker,volume,open,close,high,low,window_start,transactions"
KNOWN = ("AAPL", "AMD", "AMZN", "BRK.B", "GOOGL", "JPM", "META", "MSFT", "NVDA", "TSLA")

_NEW_YORK = ZoneInfo("America/New_York")
_FIRST_BAR = time(4)
#: 04:00 to 20:00, and where in it the regular session lies.
_MINUTES = 16 * 60
_REGULAR = slice(330, 720)
_SECOND_NS = 1_000_000_000
#: Fast, and a tenth larger than gzip's default.
_GZIP_LEVEL = 1
_PUBLISHED_AFTER = timedelta(hours=31)
_CORRECTED_AFTER = timedelta(hours=55)


@dataclass(frozen=True)
class Dirt:
    """How many rows of each kind a day's files have beyond the good ones."""

    duplicates: int = 5
    """The same row once more."""
    unparsed: int = 2
    """Lines cut off, or with a word where a number belongs."""
    crossed: int = 3
    """The low above the high."""
    negative_volume: int = 1
    free: int = 1
    """A price of zero."""
    nameless: int = 1
    other_day: int = 2
    """Bars of the day before."""
    corrected: int = 20
    """Bars that come again in a second file, with another close and volume; none: there is no such file."""

    @property
    def rejected(self) -> int:
        """The rows that silver must not take."""
        return self.unparsed + self.crossed + self.negative_volume + self.free + self.nameless + self.other_day


CLEAN = Dirt(0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Written:
    """What was written for a day."""

    files: tuple[Path, ...]
    bars: int
    """Good rows, one per ticker and minute."""
    dirt: Dirt = field(default_factory=Dirt)


def write_day(
    folder: Path, day: date, tickers: int | Sequence[str] = KNOWN, seed: int = 7, dirt: Dirt | None = None
) -> Written:
    """Write a day's bars below a folder as YEAR/MONTH/DAY.csv.gz, and its late corrections beside it."""
    import numpy as np

    dirt = dirt or Dirt()
    names = ticker_names(tickers) if isinstance(tickers, int) else sorted(tickers)
    random = np.random.default_rng([seed, day.toordinal()])
    bars = _bars(names, day, seed, random)
    place = folder / f"{day:%Y}" / f"{day:%m}"
    place.mkdir(parents=True, exist_ok=True)
    published = datetime.combine(day, time(), _NEW_YORK) + _PUBLISHED_AFTER
    files = [_write(place / f"{day}.csv.gz", _text(bars) + _dirty_text(bars, dirt, random), published)]
    if dirt.corrected:
        corrected = _corrections(bars, dirt.corrected, random)
        later = datetime.combine(day, time(), _NEW_YORK) + _CORRECTED_AFTER
        files.append(_write(place / f"{day}.corrections.csv.gz", _text(corrected), later))
    return Written(tuple(files), len(bars["ticker"]), dirt)


def ticker_names(count: int) -> list[str]:
    """So many tickers, sorted: AAAA, AAAB, …"""
    letters = product(ascii_uppercase, repeat=4)
    return ["".join(next(letters)) for _ in range(count)]


def _bars(names: Sequence[str], day: date, seed: int, random: np.random.Generator) -> Bars:
    """A grid of tickers by minutes, of which only the minutes with trades are kept."""
    import numpy as np

    shape = (len(names), _MINUTES)
    base = np.exp(np.random.default_rng([seed]).normal(4.0, 1.0, (len(names), 1)))
    level = base * np.exp(random.normal(0.0, 0.02, (len(names), 1)))
    walk = np.cumsum(random.normal(0.0, 6e-4, shape), axis=1)
    close = level * np.exp(walk)
    opened = np.concatenate([level, close[:, :-1]], axis=1)
    spread = np.abs(random.normal(0.0, 3e-4, shape))
    activity = _activity()
    kept = random.random(shape) < activity
    volume = np.exp(random.normal(6.0, 1.2, shape) + activity).astype(np.int64) + 1
    start = int(datetime.combine(day, _FIRST_BAR, _NEW_YORK).timestamp())
    at = (start + 60 * np.arange(_MINUTES, dtype=np.int64)) * _SECOND_NS
    high, low = np.maximum(opened, close) * (1 + spread), np.minimum(opened, close) * (1 - spread)
    return {
        "ticker": np.repeat(np.array(names), _MINUTES).reshape(shape)[kept],
        "volume": volume[kept],
        **{
            name: _price(grid[kept])
            for name, grid in (("open", opened), ("close", close), ("high", high), ("low", low))
        },
        "window_start": np.broadcast_to(at, shape)[kept],
        "transactions": volume[kept] // 60 + 1,
    }


def _activity() -> Numbers:
    """The share of minutes with trades: a smile over the regular session, little outside of it."""
    import numpy as np

    share = np.full(_MINUTES, 0.08)
    share[_REGULAR] = 0.75 + 0.24 * np.linspace(-1.0, 1.0, _REGULAR.stop - _REGULAR.start) ** 2
    return share


def _price(values: Numbers) -> Numbers:
    """Four decimals, as published, and never nothing."""
    import numpy as np

    return np.maximum(np.round(values, 4), 0.0001)


def _corrections(bars: Bars, count: int, random: np.random.Generator) -> Bars:
    changed = _picked(bars, count, random)
    return {**changed, "close": changed["low"], "volume": changed["volume"] + 100}


def _dirty_text(bars: Bars, dirt: Dirt, random: np.random.Generator) -> bytes:
    import numpy as np

    def some(count: int) -> Bars:
        return _picked(bars, count, random)

    crossed, free, negative = some(dirt.crossed), some(dirt.free), some(dirt.negative_volume)
    nameless, earlier, broken = some(dirt.nameless), some(dirt.other_day), some(dirt.unparsed)
    rows = [
        some(dirt.duplicates),
        {**crossed, "low": crossed["high"] + 1, "high": crossed["low"]},
        {**free, "low": free["low"] * 0},
        {**negative, "volume": -negative["volume"]},
        {**nameless, "ticker": np.full_like(nameless["ticker"], "")},
        {**earlier, "window_start": earlier["window_start"] - 24 * 3600 * _SECOND_NS},
    ]
    lines = _text(broken).splitlines()[1:]
    # Every other one is cut off; the rest have a word for their volume, the second cell.
    spoilt = [line.rsplit(b",", 3)[0] if at % 2 else _with_word(line) for at, line in enumerate(lines)]
    return b"".join(_text(each, header=False) for each in rows) + b"".join(line + b"\n" for line in spoilt)


def _with_word(line: bytes) -> bytes:
    ticker, _, rest = line.split(b",", 2)
    return b",".join([ticker, b"many", rest])


def _picked(bars: Bars, count: int, random: np.random.Generator) -> Bars:
    places = random.choice(len(bars["ticker"]), size=min(count, len(bars["ticker"])), replace=False)
    return {name: values[sorted(places)] for name, values in bars.items()}


def _text(bars: Bars, header: bool = True) -> bytes:
    import pyarrow
    from pyarrow import csv

    out = io.BytesIO(f"{HEADER}\n".encode() if header else b"")
    out.seek(0, io.SEEK_END)
    table = pyarrow.table({name: pyarrow.array(bars[name]) for name in HEADER.split(",")})
    # Numbers come out as the shortest text that means them, which is how prices are published.
    csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="none", batch_size=1 << 16))
    return out.getvalue()


def _write(file: Path, text: bytes, modified: datetime) -> Path:
    # Neither a name nor a time inside, so that the same bars are the same bytes.
    with file.open("wb") as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as packed:
        packed.write(text)
    os.utime(file, (modified.timestamp(), modified.timestamp()))
    return file
