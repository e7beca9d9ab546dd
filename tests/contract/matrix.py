"""Which engine does what on which catalog, as the suite has seen it: the table in docs/matrix.md is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "matrix.md"
KINDS = {
    "sqlite": "SQL catalog in SQLite",
    "postgres": "SQL catalog in PostgreSQL",
    "rest": "our Iceberg REST catalog",
    "nessie": "Nessie",
    "hive": "Hive Metastore",
}
ENGINES = ("spark", "pyiceberg", "duckdb", "trino")
ABILITIES = ("creates", "writes", "reads", "adds a column", "travels", "renames", "drops")
#: What an engine cannot do on a catalog, and why; `*` stands for all. The suite does not ask for it.
GAPS: dict[tuple[str, str, str], str] = {
    ("sqlite", "trino", "*"): "Trino has no driver for SQLite: serve the lake over REST (`lake up rest`)",
    ("hive", "duckdb", "*"): "DuckDB cannot ask a metastore; `lake sql --engine duckdb` reads there",
    **{
        (kind, "duckdb", ability): "DuckDB writes Iceberg through a REST catalog alone"
        for kind in ("sqlite", "postgres")
        for ability in ("creates", "writes", "adds a column", "renames", "drops")
    },
    **{
        (kind, "duckdb", "travels"): "what is printed reads the present; `lake sql --as-of` travels"
        for kind in ("sqlite", "postgres")
    },
    **{
        (
            "nessie",
            "duckdb",
            ability,
        ): "Nessie's REST endpoint loses history and first rows (docs/catalogs.md): read only"
        for ability in ("creates", "writes", "adds a column", "renames", "drops")
    },
    ("nessie", "duckdb", "travels"): "Nessie's REST endpoint tells of the newest snapshot alone",
}


def gap(kind: str, engine: str, ability: str) -> str:
    """Why an engine cannot do something; nothing if it can."""
    return GAPS.get((kind, engine, "*")) or GAPS.get((kind, engine, ability), "")


@dataclass
class Matrix:
    """What was seen in this run."""

    seen: dict[tuple[str, str, str], bool] = field(default_factory=dict)

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

    def text(self) -> str:
        """The table, and the reasons of its gaps."""
        reasons: dict[str, int] = {}
        lines = [
            "# Engines, catalogs, formats",
            "",
            "Made by `tests/contract/test_engines.py` from what it saw: every engine is plain, set up by what `lake connect` prints; what one",
            "writes all the others read. `lake` itself (ingest, runs, branches) works on every catalog: [catalogs.md](catalogs.md).",
            "",
            "## Iceberg",
            "",
            f"| catalog | engine | {' | '.join(ABILITIES)} |",
            f"|---|---|{'---|' * len(ABILITIES)}",
        ]
        for kind, words in KINDS.items():
            for engine in ENGINES:
                cells = [self._cell(kind, engine, ability, reasons) for ability in ABILITIES]
                lines.append(f"| {words} | {engine} | {' | '.join(cells)} |")
        lines += ["", *(f"{number}. {reason}." for reason, number in reasons.items()), ""]
        return "\n".join(lines)

    def _cell(self, kind: str, engine: str, ability: str, reasons: dict[str, int]) -> str:
        reason = gap(kind, engine, ability)
        if reason:
            return f"no ({reasons.setdefault(reason, len(reasons) + 1)})"
        return "yes" if self.seen.get((kind, engine, ability)) else "?"
