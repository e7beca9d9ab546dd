"""Generate sample minute bars as gzip CSV flat files, with the invalid values of real ones.

Prices follow a random walk, with busy opens and closes and thin trading before and after; the same seed gives the same
rows for a day, whichever other days are written.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from lakehouse.core.dataclass import dataclass

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
class Defects:
    """The number of invalid rows of each kind in a day's files."""

    duplicates: int = 5
    """Repeated rows."""
    unparsed: int = 2
    """Truncated lines, or with a word in place of a number."""
    crossed: int = 3
    """The low above the high."""
    negative_volume: int = 1
    free: int = 1
    """A price of zero."""
    nameless: int = 1
    other_day: int = 2
    """Bars of the day before."""
    corrected: int = 20
    """Bars that a second file repeats with another close and volume; 0: no second file."""

    @property
    def rejected(self) -> int:
        """The number of rows that silver rejects."""
        return self.unparsed + self.crossed + self.negative_volume + self.free + self.nameless + self.other_day


NO_DEFECTS = Defects(0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class SampleDay:
    """The files of a day."""

    files: tuple[Path, ...]
    bars: int
    """Valid rows, one per ticker and minute."""
    defects: Defects = field(default_factory=Defects)


def write_day(
    folder: Path, day: date, tickers: int | Sequence[str] = KNOWN, seed: int = 7, defects: Defects | None = None
) -> SampleDay:
    """Write a day's bars to YEAR/MONTH/DAY.csv.gz in a folder, and its late corrections beside it."""
    import numpy as np

    defects = defects or Defects()
    names = ticker_names(tickers) if isinstance(tickers, int) else sorted(tickers)
    random = np.random.default_rng([seed, day.toordinal()])
    bars = _bars(names, day, seed, random)
    month = folder / f"{day:%Y}" / f"{day:%m}"
    month.mkdir(parents=True, exist_ok=True)
    published = datetime.combine(day, time(), _NEW_YORK) + _PUBLISHED_AFTER
    files = [_write(month / f"{day}.csv.gz", _text(bars) + _defective_text(bars, defects, random), published)]
    if defects.corrected:
        corrected = _corrections(bars, defects.corrected, random)
        later = datetime.combine(day, time(), _NEW_YORK) + _CORRECTED_AFTER
        files.append(_write(month / f"{day}.corrections.csv.gz", _text(corrected), later))
    return SampleDay(tuple(files), len(bars["ticker"]), defects)


def ticker_names(count: int) -> list[str]:
    """Generated tickers in order: AAAA, AAAB, …"""
    letters = product(ascii_uppercase, repeat=4)
    return ["".join(next(letters)) for _ in range(count)]


def _bars(names: Sequence[str], day: date, seed: int, random: np.random.Generator) -> Bars:
    """Bars of all tickers and minutes with trades."""
    import numpy as np

    shape = (len(names), _MINUTES)
    base = np.exp(np.random.default_rng([seed]).normal(4.0, 1.0, (len(names), 1)))
    level = base * np.exp(random.normal(0.0, 0.02, (len(names), 1)))
    walk = np.cumsum(random.normal(0.0, 6e-4, shape), axis=1)
    close = level * np.exp(walk)
    opened = np.concatenate([level, close[:, :-1]], axis=1)
    spread = np.abs(random.normal(0.0, 3e-4, shape))
    activity = _activity()
    traded = random.random(shape) < activity
    volume = np.exp(random.normal(6.0, 1.2, shape) + activity).astype(np.int64) + 1
    start = int(datetime.combine(day, _FIRST_BAR, _NEW_YORK).timestamp())
    at = (start + 60 * np.arange(_MINUTES, dtype=np.int64)) * _SECOND_NS
    high, low = np.maximum(opened, close) * (1 + spread), np.minimum(opened, close) * (1 - spread)
    return {
        "ticker": np.repeat(np.array(names), _MINUTES).reshape(shape)[traded],
        "volume": volume[traded],
        **{
            name: _price(grid[traded])
            for name, grid in (("open", opened), ("close", close), ("high", high), ("low", low))
        },
        "window_start": np.broadcast_to(at, shape)[traded],
        "transactions": volume[traded] // 60 + 1,
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
    changed = _choose(bars, count, random)
    return {**changed, "close": changed["low"], "volume": changed["volume"] + 100}


def _defective_text(bars: Bars, defects: Defects, random: np.random.Generator) -> bytes:
    import numpy as np

    def some(count: int) -> Bars:
        return _choose(bars, count, random)

    crossed, free, negative = some(defects.crossed), some(defects.free), some(defects.negative_volume)
    nameless, earlier, broken = some(defects.nameless), some(defects.other_day), some(defects.unparsed)
    rows = [
        some(defects.duplicates),
        {**crossed, "low": crossed["high"] + 1, "high": crossed["low"]},
        {**free, "low": free["low"] * 0},
        {**negative, "volume": -negative["volume"]},
        {**nameless, "ticker": np.full_like(nameless["ticker"], "")},
        {**earlier, "window_start": earlier["window_start"] - 24 * 3600 * _SECOND_NS},
    ]
    lines = _text(broken).splitlines()[1:]
    # Every other line is truncated; the rest have a word as their volume, the second cell.
    broken_lines = [line.rsplit(b",", 3)[0] if at % 2 else _with_word(line) for at, line in enumerate(lines)]
    return b"".join(_text(row, header=False) for row in rows) + b"".join(line + b"\n" for line in broken_lines)


def _with_word(line: bytes) -> bytes:
    ticker, _, rest = line.split(b",", 2)
    return b",".join([ticker, b"many", rest])


def _choose(bars: Bars, count: int, random: np.random.Generator) -> Bars:
    positions = random.choice(len(bars["ticker"]), size=min(count, len(bars["ticker"])), replace=False)
    return {name: values[sorted(positions)] for name, values in bars.items()}


def _text(bars: Bars, header: bool = True) -> bytes:
    import pyarrow
    from pyarrow import csv

    out = io.BytesIO(f"{HEADER}\n".encode() if header else b"")
    out.seek(0, io.SEEK_END)
    table = pyarrow.table({name: pyarrow.array(bars[name]) for name in HEADER.split(",")})
    # Arrow writes the shortest text of a number, as prices are published.
    csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="none", batch_size=1 << 16))
    return out.getvalue()


def _write(file: Path, text: bytes, modified: datetime) -> Path:
    # Without name and time in the gzip header, the same bars give the same bytes.
    with file.open("wb") as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as packed:
        packed.write(text)
    os.utime(file, (modified.timestamp(), modified.timestamp()))
    return file
