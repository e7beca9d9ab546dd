"""Where files are made ready and scanned: scratch space, one DuckDB, and the cures for what its CSV reader trips over."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.core import quoting
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files import duck
from lakehouse.ingest.files.casts import MISFIT
from lakehouse.ingest.files.errors import DamagedFileError
from lakehouse.ingest.files.model import FilePlan, Reject, StageOptions
from lakehouse.ingest.files.records import Record, count_lines, mend
from lakehouse.ingest.files.rejects import has_rejects
from lakehouse.ingest.files.text import make_plain

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

#: What DuckDB sets aside for each column while it copies: several batches of 2,048 values.
_COLUMN_BYTES = 200_000


@dataclass(frozen=True)
class Ready:
    """A text file that DuckDB can scan, and how.

    At first it is scanned by all threads, and any bad row makes the scan fail. A `careful` scan goes row by row and
    puts bad ones aside. There is nothing between: DuckDB's threads start in the middle of the file, and it checks that
    their pieces fit together only if bad rows are errors. Otherwise whole pieces may be missing, or lines of a long
    quoted value be taken for rows, without a word. For the same reason the rows are counted in the end.
    """

    path: Path
    has_quote: bool
    lines: int
    encoding: str
    line_size: int = duck.LINE_SIZES[0]
    careful: bool = False
    mended: bool = False
    records: int = 0
    """Of a careful scan: how many there must be, header included, rejects of the mending not."""
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class Rows:
    """A query for the rows of a file, and SQL for the raw value and the text of each of its fields."""

    query: str
    raw: Callable[[int], str]
    text: Callable[[int], str]
    good: str = "true"
    """SQL that is false for rows that cannot be used, for the reason in `why`."""
    why: str = "''"


@dataclass
class Workspace:
    """One DuckDB and one scratch folder for a set of files."""

    options: StageOptions
    settings: ReadOptions
    folder: Path
    _ready: dict[str, Ready] = field(default_factory=dict)
    _connection: Any = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = duck.connect(self.options.memory_limit, self.options.threads, self.folder / "spill")
        return self._connection  # type: ignore[no-any-return]  # Any, so that duckdb is not imported for the annotation

    def ready(self, plan: FilePlan) -> Ready:
        """The file as text that can be scanned; unpacking and recoding happen once."""
        if plan.file.path not in self._ready:
            guessed = self.settings.encoding is None
            plain = make_plain(plan, guessed, self.folder / f"{len(self._ready)}.txt")
            path = Path(duck.reachable(str(plain.path), self.folder))
            self._ready[plan.file.path] = Ready(path, plain.has_quote, plain.lines, plain.encoding)
        return self._ready[plan.file.path]

    def scan(self, plan: FilePlan, run: Callable[[Rows], T]) -> T:
        """Run something on the rows of a file; again, if DuckDB's reader needs help with it first."""
        import duckdb

        self._make_room(len(plan.fields))
        while True:
            ready = self.ready(plan)
            self.connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
            try:
                result = run(rows_of(plan, ready, self))
            except (duckdb.InvalidInputException, duckdb.NotImplementedException) as exc:
                if MISFIT in str(exc) or not self._eased(plan, ready, str(exc)):
                    raise
                continue
            if ready.careful and self._rejects_long_rows() and self._eased(plan, ready, "line size"):
                continue
            return result

    def count_again(self, plan: FilePlan, rows: int) -> bool:
        """Whether a scan of all rows found as many as there are; if not, it must be done again, with care."""
        ready = self.ready(plan)
        found = rows + plan.dialect.header
        if ready.careful:
            if found != ready.records:
                raise _hopeless(plan)
            return True
        # Values may go over several lines only if there are quotes; with those, DuckDB's own check must do.
        if ready.has_quote or found == ready.lines or found == count_lines(ready.path):
            return True
        self._be_careful(plan, ready)
        return False

    def encoding(self, plan: FilePlan) -> str:
        """What a file's encoding turned out to be, or nothing if it was never needed as text."""
        ready = self._ready.get(plan.file.path)
        return ready.encoding if ready else ""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _make_room(self, width: int) -> None:
        """A very wide file needs memory for one batch of rows at least, whatever the limit; most of it stays untouched."""
        if width * _COLUMN_BYTES > self.options.memory_limit:
            self.connection.execute(f"SET memory_limit = '{width * _COLUMN_BYTES}B'; SET threads = 1")

    def _eased(self, plan: FilePlan, ready: Ready, trouble: str) -> bool:
        """Make the next scan of a file less likely to fail, if there is a way."""
        longer = [size for size in duck.LINE_SIZES if size > ready.line_size]
        if "line size" in trouble.lower() and longer:
            self._ready[plan.file.path] = replace(ready, line_size=longer[0])
        elif not ready.careful or ("state machine" in trouble and not ready.mended):
            self._be_careful(plan, ready, mixed="state machine" in trouble)
        else:
            return False
        return True

    def _be_careful(self, plan: FilePlan, ready: Ready, mixed: bool = False) -> None:
        if not (ready.has_quote or mixed):
            careful = replace(ready, careful=True, records=count_lines(ready.path))
        else:
            # After a quote that is not closed DuckDB drops rows, and line ends of two kinds it does not read at all.
            into, rejects = self.folder / f"{ready.path.name}.mended", []

            def reject(record: Record) -> None:
                why = "a quote is not closed, or text follows it"
                rejects.append(Reject(plan.file.name, record.line, why, record.text))

            count = mend(ready.path, plan.dialect, into, reject)
            careful = replace(ready, path=into, careful=True, mended=True, records=count, rejects=tuple(rejects))
        self._ready[plan.file.path] = careful

    def _rejects_long_rows(self) -> bool:
        query = "SELECT 1 FROM reject_errors WHERE error_type = 'LINE SIZE OVER MAXIMUM' LIMIT 1"
        return has_rejects(self.connection) and self.connection.execute(query).fetchone() is not None


def _hopeless(plan: FilePlan) -> DamagedFileError:
    return DamagedFileError(
        f"{plan.file.name} cannot be cut into rows for certain, and none must be lost.",
        "Say which delimiter, quote and escape it uses, or that it quotes nothing.",
        file=plan.file.name,
    )


@contextmanager
def workspace(options: StageOptions, settings: ReadOptions, near: Path | None = None) -> Iterator[Workspace]:
    """A workspace that leaves nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix=".lake-stage-", dir=options.scratch or near))
    space = Workspace(options, settings, folder)
    try:
        yield space
    finally:
        space.close()
        shutil.rmtree(folder, ignore_errors=True)


def rows_of(plan: FilePlan, ready: Ready, space: Workspace) -> Rows:
    """How to scan a text file."""
    # Powers of two: with others, DuckDB's threads lose the rows between two buffers.
    buffer = 32 << 20
    while buffer > 4 << 20 and buffer > space.options.memory_limit // 16:
        buffer //= 2
    limits = {
        "max_line_size": ready.line_size,
        "buffer_size": max(buffer, 2 * ready.line_size),
        "parallel": not ready.careful,
        "store_rejects": ready.careful,
    }
    if plan.kind == "json":
        return _json_rows(plan, duck.lines_scan(ready.path, **limits))
    query = duck.csv_scan(ready.path, plan.dialect, len(plan.fields), space.settings.null_words, **limits)
    return Rows(query, duck.field, duck.field)


def _json_rows(plan: FilePlan, lines: str) -> Rows:
    pointers = ("/" + key.replace("~", "~0").replace("/", "~1") for key in plan.fields)
    paths = "[" + ", ".join(quoting.text(pointer) for pointer in pointers) + "]::VARCHAR[]"
    query = f"""SELECT f0, CAST(json_extract(j, {paths}) AS VARCHAR[]) AS r, json_extract_string(j, {paths}) AS t, ok
      FROM (SELECT f0, j, coalesce(json_type(j) = 'OBJECT', false) AS ok
            FROM (SELECT f0, TRY_CAST(f0 AS JSON) AS j FROM ({lines})))"""
    return Rows(
        query,
        # JSON's null is no value; without this it would be the text "null".
        lambda place: f"CASE WHEN t[{place + 1}] IS NULL THEN NULL ELSE r[{place + 1}] END",
        lambda place: f"t[{place + 1}]",
        good="ok",
        why="'is not a JSON object'",
    )
