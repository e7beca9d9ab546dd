"""Generated minute bars: the true schema, the same bytes for the same seed, and just the requested defects."""

from __future__ import annotations

import gzip
import os
from datetime import date
from pathlib import Path

from lakehouse.pipelines.market.sample import HEADER, NO_DEFECTS, Defects, ticker_names, write_day

DAY = date(2026, 1, 14)


def lines(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().splitlines()


def test_the_same_seed_writes_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    one, again, other = (
        write_day(tmp_path / name, DAY, ["AAPL", "MSFT"], seed)
        for name, seed in (("one", 1), ("again", 1), ("other", 2))
    )
    assert [file.read_bytes() for file in one.files] == [file.read_bytes() for file in again.files]
    assert one.files[0].read_bytes() != other.files[0].read_bytes()


def test_a_day_does_not_depend_on_which_others_are_written(tmp_path: Path) -> None:
    alone = write_day(tmp_path / "alone", DAY)
    write_day(tmp_path / "after", date(2026, 1, 13))
    after = write_day(tmp_path / "after", DAY)
    assert alone.files[0].read_bytes() == after.files[0].read_bytes()


def test_the_files_are_named_by_their_day_and_the_corrections_are_younger(tmp_path: Path) -> None:
    bars, corrections = write_day(tmp_path, DAY).files
    assert bars == tmp_path / "2026" / "01" / "2026-01-14.csv.gz"
    assert corrections == tmp_path / "2026" / "01" / "2026-01-14.corrections.csv.gz"
    assert os.stat(bars).st_mtime < os.stat(corrections).st_mtime


def test_clean_bars_are_sound_and_sorted(tmp_path: Path) -> None:
    written = write_day(tmp_path, DAY, ["B", "A"], defects=NO_DEFECTS)
    assert len(written.files) == 1
    header, *rows = lines(written.files[0])
    assert header == HEADER
    assert len(rows) == written.bars > 2 * 390 * 0.7
    keys = []
    for row in rows:
        ticker, volume, opened, close, high, low, at, trades = row.split(",")
        assert 0 < float(low) <= min(float(opened), float(close)) <= max(float(opened), float(close)) <= float(high)
        assert int(volume) >= int(trades) >= 1
        assert int(at) % 60_000_000_000 == 0
        keys.append((ticker, int(at)))
    assert keys == sorted(set(keys))


def test_the_dirt_is_as_much_as_was_asked_for(tmp_path: Path) -> None:
    defects = Defects(duplicates=4, unparsed=3, corrected=6)
    written = write_day(tmp_path, DAY, ["A", "B"], defects=defects)
    bars, corrections = map(lines, written.files)
    assert len(bars) - 1 == written.bars + defects.duplicates + defects.rejected
    assert len(corrections) - 1 == defects.corrected
    assert len(bars) - len(set(bars)) == defects.duplicates
    assert not set(corrections[1:]) & set(bars)


def test_tickers_can_be_counted_instead_of_named() -> None:
    assert ticker_names(3) == ["AAAA", "AAAB", "AAAC"]
