"""`lake ingest range://10 --into t.numbers`: a source for URLs of the scheme range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.core.files import RemoteFile, SourceContext
from lakehouse.core.setting import read_options, setting


@dataclass(frozen=True)
class RangeSettings:
    """`[sources.range]` in lake.toml, `LAKE_SOURCES__RANGE__*` in the environment."""

    start: int = setting(0, "First number.")


def open_source(context: SourceContext) -> RangeSource:
    """Open the source with its settings."""
    return RangeSource(read_options(RangeSettings, context.options, "sources.range").start)


class RangeSource:
    """`range://N` is a CSV file with the numbers below N."""

    def __init__(self, start: int) -> None:
        self._start = start

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        return []

    def stat(self, name: str) -> RemoteFile | None:
        return RemoteFile(name, len(self._content(name)), etag=f"{self._start} {name}")

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        into.write_text(self._content(file.name))

    def _content(self, url: str) -> str:
        count = int(url.removeprefix("range://"))
        return "n\n" + "".join(f"{n}\n" for n in range(self._start, count))
