"""`lake ingest range://10 --into t.numbers`: a source for URLs of the scheme range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lakehouse.core.files import RemoteFile


class RangeSource:
    """`range://N` is a CSV file with the numbers below N."""

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        return []

    def stat(self, name: str) -> RemoteFile | None:
        content = _content(name)
        return RemoteFile(name, len(content), etag=name)

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        into.write_text(_content(file.name))


def _content(url: str) -> str:
    count = int(url.removeprefix("range://"))
    return "n\n" + "".join(f"{n}\n" for n in range(count))
