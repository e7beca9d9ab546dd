"""Which engine does what on which catalog, as the suites have seen it: the tables in docs/matrix.md are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.contract.engines import Engine, Missing, Rows

FILE = Path(__file__).parents[2] / "docs" / "matrix.md"
ABILITIES = ("creates", "writes", "reads", "adds a column", "travels", "renames", "drops")
HEAD = """\
# Engines, catalogs, formats

`make matrix` writes this page from the results of `tests/contract/test_engines.py` and `tests/contract/test_hudi.py`. Every engine is a plain installation, configured with the
output of `lake connect`; every other engine reads what it writes. `lake` itself (ingest, runs, branches) works on every catalog: [catalogs.md](catalogs.md).
"""


@dataclass(frozen=True)
class Section:
    """One format: the kinds of catalog or place that its tables have, the engines, and what was seen in this run."""

    format: str
    head: str
    """What the first column is called."""
    kinds: Mapping[str, str]
    engines: Sequence[str]
    gaps: Mapping[tuple[str, str, str], str]
    """What an engine cannot do on a kind, and why; `*` stands for all. The suite does not ask for it."""
    text: str = ""
    seen: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def gap(self, kind: str, engine: str, ability: str) -> str:
        """Why an engine cannot do something; nothing if it can."""
        return self.gaps.get((kind, engine, "*")) or self.gaps.get((kind, engine, ability), "")

    @contextmanager
    def asked(self, kind: str, engine: str, ability: str) -> Iterator[None]:
        """Around something that an engine is asked for: it has to work every time."""
        key = (kind, engine, ability)
        try:
            yield
        except BaseException:
            self.seen[key] = False
            raise
        self.seen.setdefault(key, True)

    def not_begun(self) -> list[str]:
        """The kinds and engines that nobody was asked about: only a part of the tests was run."""
        able = [(k, e) for k in self.kinds for e in self.engines if not self.gap(k, e, "creates")]
        return [f"{engine} on {kind}" for kind, engine in able if (kind, engine, "creates") not in self.seen]

    def lines(self) -> list[str]:
        """The table, and the reasons of its gaps."""
        reasons: dict[str, int] = {}
        rows = [
            f"| {words} | {engine} | {' | '.join(self._cell(kind, engine, verb, reasons) for verb in ABILITIES)} |"
            for kind, words in self.kinds.items()
            for engine in self.engines
        ]
        numbered = [f"{number}. {reason}." for reason, number in reasons.items()]
        header = [f"| {self.head} | engine | {' | '.join(ABILITIES)} |", f"|---|---|{'---|' * len(ABILITIES)}"]
        return [f"## {self.format}", "", *([self.text] if self.text else []), *header, *rows, "", *numbered]

    def _cell(self, kind: str, engine: str, ability: str, reasons: dict[str, int]) -> str:
        reason = self.gap(kind, engine, ability)
        if reason:
            return f"no ({reasons.setdefault(reason, len(reasons) + 1)})"
        return "yes" if self.seen.get((kind, engine, ability)) else "?"


def document(sections: Sequence[Section]) -> str:
    """All of docs/matrix.md."""
    return "\n".join([HEAD, *("\n".join([*section.lines(), ""]) for section in sections)])


@dataclass(frozen=True)
class Desk:
    """A kind of catalog or place, and every engine that can be set up on it."""

    section: Section
    kind: str
    engines: dict[str, Engine]
    newest: Callable[[str], int]
    """The newest snapshot of a table."""
    sees_columns_late: str = ""
    """An engine that is told of a new column with the next rows."""

    def asked(self, engine: str, ability: str) -> AbstractContextManager[None]:
        return self.section.asked(self.kind, engine, ability)

    def able(self, ability: str) -> dict[str, Engine]:
        """The engines that can do something here."""
        return {name: engine for name, engine in self.engines.items() if not self.section.gap(self.kind, name, ability)}

    def all_read(self, table: str, wanted: Rows, but: str = "") -> None:
        for name, engine in self.able("reads").items():
            if name != but:
                with self.asked(name, "reads"):
                    rows = engine.read(table)
                    assert rows == wanted, f"{name} reads {rows}"

    def nobody_reads(self, table: str) -> None:
        for name, engine in self.able("reads").items():
            with pytest.raises(Missing):
                pytest.fail(f"{name} still reads {engine.read(table)}")

    def try_all_of(self, writer: str) -> None:
        """Have one engine make, write, change and drop a table, all writers write to it, and all readers look."""
        engine, table = self.engines[writer], f"contract.by_{writer}"
        with self.asked(writer, "creates"):
            engine.create(table)
        with self.asked(writer, "writes"):
            engine.insert(table, (1, "a"))
        self.all_read(table, [(1, "a")])
        first = self.newest(table)
        with self.asked(writer, "adds a column"):
            engine.add_column(table)
        rows: Rows = [(1, "a", None)]
        self.all_read(table, rows, but=self.sees_columns_late)
        for number, (name, other) in enumerate(self.able("writes").items(), start=2):
            with self.asked(name, "writes"):
                other.insert(table, (number, name), noted=True)
            rows.append((number, name, None))
        self.all_read(table, rows)
        for name, other in self.able("travels").items():
            with self.asked(name, "travels"):
                assert other.read_at(table, first) == [(1, "a")], name
        self._rename_and_drop(writer, table, rows)

    def _rename_and_drop(self, writer: str, table: str, rows: Rows) -> None:
        engine = self.engines[writer]
        if writer in self.able("renames"):
            with self.asked(writer, "renames"):
                engine.rename(table, f"{table}_now")
            self.nobody_reads(table)
            table += "_now"
            self.all_read(table, rows)
        with self.asked(writer, "drops"):
            engine.drop(table)
        self.nobody_reads(table)


CHANGES = ("creates", "writes", "adds a column", "renames", "drops")
ICEBERG = Section(
    format="Iceberg",
    head="catalog",
    kinds={
        "sqlite": "SQL catalog in SQLite",
        "postgres": "SQL catalog in PostgreSQL",
        "rest": "our Iceberg REST catalog",
        "nessie": "Nessie",
        "hive": "Hive Metastore",
    },
    engines=("spark", "pyiceberg", "duckdb", "trino"),
    gaps={
        ("sqlite", "trino", "*"): "Trino has no driver for SQLite: serve the lake over REST (`lake up rest`)",
        **{
            (kind, "duckdb", ability): "DuckDB writes Iceberg only through a REST catalog"
            for kind in ("sqlite", "postgres", "hive")
            for ability in CHANGES
        },
        **{
            (
                kind,
                "duckdb",
                "travels",
            ): "the printed configuration reads the current snapshot; `lake sql --as-of` reads earlier ones"
            for kind in ("sqlite", "postgres", "hive")
        },
        **{
            (
                "nessie",
                "duckdb",
                ability,
            ): "Nessie's REST endpoint loses history and first rows (docs/catalogs.md): use it for reading only"
            for ability in CHANGES
        },
        **{
            (
                kind,
                "trino",
                ability,
            ): "Trino's DROP there deletes files that branches and tags need: the stack's rules refuse it, and"
            " with it CREATE and ALTER, unless `stack.trino_ownership` is set"
            for kind in ("nessie", "hive")
            for ability in ("creates", "adds a column", "renames", "drops")
        },
        ("nessie", "duckdb", "travels"): "Nessie's REST endpoint returns only the newest snapshot",
    },
)
