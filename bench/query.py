"""TPC-H through one open `Lake`, beside bare DuckDB on the same files; and what a statement costs beyond DuckDB's own time.

`python -m bench.query SCALE [--rounds N] [--home DIR] [--trino URL/CATALOG/SCHEMA]`. The tables are written with PyIceberg. The 22
texts run in turns: `lake.sql(text).to_arrow()`, DuckDB with views over `iceberg_scan` of the same metadata files, and DuckDB with
views over `read_parquet` of the same data files. `--home` keeps the lake, so that Trino can be pointed at it and a second run
need not write it again. Keeps bench/results/query_sfSCALE.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import sqlglot
from sqlglot import exp

from bench.lakes import bare_duckdb, catalog_of, metadata_location, open_lake
from bench.measure import ROUNDS, Figure, Ratio, Times, beside_own, interleaved, report, versus
from lakehouse.lake import Lake

NAMESPACE = "tpch"
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
TOTAL_LIMIT, QUERY_LIMIT, OVERHEAD_MS = 1.15, 1.5, 5.0
#: Reads of a snapshot or a branch cost the same as main; the rest is noise.
SAME = 1.15
STATEMENTS = 100
#: Rows of lineitem that are in memory at a time: SF1 whole.
SCALE_PER_STEP = 1.0
Answer = Callable[[str], Any]


@dataclass(frozen=True)
class Contenders:
    """The ways to run a text."""

    lake: Lake
    scan: duckdb.DuckDBPyConnection
    parquet: duckdb.DuckDBPyConnection
    trino: Answer | None = None

    def ways(self) -> dict[str, Answer]:
        answers: dict[str, Answer] = {
            "lake": lambda text: self.lake.sql(in_namespace(text)).to_arrow(),
            "DuckDB, iceberg_scan": lambda text: self.scan.execute(text).to_arrow_table(),
            "DuckDB, read_parquet": lambda text: self.parquet.execute(text).to_arrow_table(),
        }
        return {**answers, "Trino": self.trino} if self.trino else answers


def write_tables(home: Path, scale: float) -> None:
    """The tables of TPC-H as Iceberg tables, in steps that fit in memory; nothing if they are there."""
    catalog = catalog_of(home)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    written = home / "tpch.json"
    if written.exists():
        if json.loads(written.read_text()) != scale:
            raise SystemExit(f"{home} has the tables of another scale: name another folder with --home.")
        print(f"{home} has the tables", flush=True)
        return
    steps = max(1, math.ceil(scale / SCALE_PER_STEP))
    for step in range(steps):
        source = bare_duckdb("tpch")
        whole = f"sf = {scale}" if steps == 1 else f"sf = {scale}, children = {steps}, step = {step}"
        source.execute(f"CALL dbgen({whole})")
        for name in TABLES:
            rows = source.execute(f"select * from {name}").to_arrow_table()
            table = catalog.create_table_if_not_exists(f"{NAMESPACE}.{name}", schema=rows.schema)
            if rows.num_rows:  # a step has its share of every table, of the 5 regions too
                table.append(rows)
        source.close()
    check_counts(catalog)
    written.write_text(json.dumps(scale))


def check_counts(catalog: Any) -> None:
    """All nations and regions are there: a folder with half of the tables must not be measured."""
    for name, expected in {"nation": 25, "region": 5}.items():
        rows = catalog.load_table(f"{NAMESPACE}.{name}").scan().count()
        if rows != expected:
            raise SystemExit(
                f"{NAMESPACE}.{name} has {rows} rows instead of {expected}: name another folder with --home."
            )


def bare(home: Path, reader: Callable[[str], str]) -> duckdb.DuckDBPyConnection:
    """DuckDB alone, with a view for each table."""
    connection = bare_duckdb("avro", "iceberg")
    for name in TABLES:
        connection.execute(f"create view {name} as select * from {reader(name)}")
    return connection


def data_files(home: Path, name: str) -> str:
    """The data files of a table, for read_parquet."""
    files = (home / "warehouse").rglob(f"{NAMESPACE}/{name}/**/*.parquet")
    return f"read_parquet([{', '.join(repr(str(file)) for file in sorted(files))}])"


@cache  # not a part of what is measured
def in_namespace(text: str) -> str:
    """A text of TPC-H in Spark's dialect, on the tables of our namespace."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    for table in tree.find_all(exp.Table):
        if table.name in TABLES and not table.db:
            table.set("db", exp.to_identifier(NAMESPACE))
    return str(tree.sql(dialect="spark"))


def texts() -> dict[int, str]:
    """The 22 texts by their number."""
    queries = bare_duckdb("tpch").execute("select query_nr, query from tpch_queries() order by 1").fetchall()
    return {int(number): str(text) for number, text in queries}


def trino_way(address: str) -> Answer:
    """Runs a text on Trino: http://host:port/CATALOG/SCHEMA."""
    from trino.dbapi import connect

    parts = urlsplit(address)
    catalog, schema = parts.path.strip("/").split("/")
    connection = connect(
        host=parts.hostname, port=parts.port, user="bench", catalog=catalog, schema=schema, http_scheme=parts.scheme
    )

    def answer(text: str) -> Any:
        cursor = connection.cursor()
        cursor.execute(text.strip().rstrip(";"))
        return cursor.fetchall()

    return answer


def compare(contenders: Contenders, rounds: int) -> list[Ratio]:
    """Each text and their total, ours over each other's."""
    ways, queries = contenders.ways(), texts()
    times: dict[str, dict[int, Times]] = {name: {} for name in ways}
    for number, text in queries.items():
        answers = {name: way(text) for name, way in ways.items()}  # warms up, and checks
        ours = answers["lake"].num_rows
        for name, answer in answers.items():
            rows = len(answer) if isinstance(answer, list) else answer.num_rows
            assert rows == ours, f"query {number}: {name} has {rows} rows, lake {ours}"
        taken = interleaved({name: partial(way, text) for name, way in ways.items()}, rounds)
        for name, time in taken.items():
            times[name][number] = time
        print(f"{number:2}  " + "  ".join(f"{name} {time.median:.3f} s" for name, time in taken.items()), flush=True)
    totals = {name: total(list(by_query.values())) for name, by_query in times.items()}
    ratios = []
    for name in list(ways)[1:]:
        held = name == "DuckDB, iceberg_scan"
        ratios.append(versus("22 texts", totals["lake"], name, totals[name], TOTAL_LIMIT if held else None))
        ratios += [
            versus(f"query {number}", times["lake"][number], name, times[name][number], QUERY_LIMIT if held else None)
            for number in queries
        ]
    return ratios


def total(times: list[Times]) -> Times:
    """Round by round, the sum over all texts."""
    return Times(tuple(map(sum, zip(*(time.runs for time in times), strict=True))))


def overhead(contenders: Contenders, statements: int) -> Figure:
    """What a tiny statement in an open lake costs beyond DuckDB's own time."""
    text = "select count(*), max(n_name) from nation"
    ways = contenders.ways()
    for name in ("lake", "DuckDB, iceberg_scan"):
        ways[name](text)
    taken = interleaved({name: partial(ways[name], text) for name in ("lake", "DuckDB, iceberg_scan")}, statements)
    beyond = taken["lake"].less(taken["DuckDB, iceberg_scan"])
    return Figure(
        "a tiny statement in an open lake, beyond DuckDB",
        1000 * beyond.median,
        "ms",
        OVERHEAD_MS,
        tuple(1000 * seconds for seconds in (min(beyond.runs), beyond.median, max(beyond.runs))),
        f"lake {1000 * taken['lake'].median:.1f} ms, DuckDB {1000 * taken['DuckDB, iceberg_scan'].median:.1f} ms;"
        f" {statements} pairs",
    )


def elsewhere(lake: Lake, rounds: int) -> list[Ratio]:
    """A scan of lineitem as of a snapshot and on a branch, beside main."""
    text = in_namespace(texts()[6])
    lake.refs.branches.create("bench")
    try:
        snapshot = lake.history(f"{NAMESPACE}.lineitem")[-1].id
        with lake.branch("bench") as branch:
            ways: dict[str, Callable[[], object]] = {
                "main": lambda: lake.sql(text).to_arrow(),
                "as of a snapshot": lambda: lake.sql(text, as_of=snapshot).to_arrow(),
                "on a branch": lambda: branch.sql(text).to_arrow(),
            }
            for way in ways.values():
                way()
            taken = interleaved(ways, rounds)
    finally:
        lake.refs.branches.drop("bench")
    return [beside_own(f"query 6 {name}", taken[name], "main", taken["main"], SAME) for name in list(ways)[1:]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scale", type=float)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--home", type=Path, help="a lake to keep (default: a temporary one)")
    parser.add_argument("--trino", default="", help="URL/CATALOG/SCHEMA of a Trino that has the same tables")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        home = asked.home or Path(scratch) / "lake"
        write_tables(home, asked.scale)
        with open_lake(home) as lake:
            contenders = Contenders(
                lake,
                bare(home, lambda name: f"iceberg_scan('{metadata_location(home, f'{NAMESPACE}.{name}')}')"),
                bare(home, lambda name: data_files(home, name)),
                trino_way(asked.trino) if asked.trino else None,
            )
            ratios = [*compare(contenders, asked.rounds), *elsewhere(lake, max(asked.rounds, 9))]
            figures = [overhead(contenders, STATEMENTS)]
    notes = [] if asked.trino else ["Trino was not asked for (--trino)."]
    return report(f"query_sf{asked.scale:g}", ratios, figures=figures, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
