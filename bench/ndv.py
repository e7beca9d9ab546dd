"""Whether statistics of distinct values (NDV, in Puffin files) change plans: Trino over TPC-H, with and without them.

`python -m bench.ndv [--scale N] [--rounds N]` starts the servers of the profile `sql` with Trino. Two copies of the tables share
their data files; Trino's ANALYZE writes the statistics of one. Keeps bench/results/ndv.json.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import duckdb
from tests.support.tpc import for_trino, texts, with_namespace, written_to

from bench.damages import copied
from bench.measure import Figure, Ratio, beside_own, interleaved, report
from bench.trino import TrinoStack, trino_stack
from lakehouse.config.load import load_settings
from lakehouse.engines.duckdb.connection import load_extension
from lakehouse.lake.assemble import assemble

WITHOUT, WITH = "tpch", "tpch_ndv"
#: What differs between two plans of the same shape: names of symbols, estimates, the schema.
_NUMBERS = re.compile(r"_\d+|\{.*?\}|Estimates:.*|tpch_ndv|tpch")


def shape(stack: TrinoStack, sql: str) -> str:
    """A plan without estimates: which tables are joined how, and in which order."""
    plan = str(stack.ask(f"explain (type distributed) {sql}")[0][0])
    return "\n".join(line for line in _NUMBERS.sub("", plan).splitlines() if line.strip(" │├└─"))


def measure(stack: TrinoStack, queries: dict[str, dict[str, str]], rounds: int) -> tuple[list[Ratio], list[str]]:
    """The times of each query on both copies, and the queries whose plans differ."""
    ratios, changed = [], []
    for name, forms in queries.items():
        if shape(stack, forms[WITHOUT]) != shape(stack, forms[WITH]):
            changed.append(name)
        times = interleaved({schema: partial(stack.ask, sql) for schema, sql in forms.items()}, rounds)
        ratios.append(beside_own(f"{name} with statistics", times[WITH], "without", times[WITHOUT]))
    return ratios, changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        trino_stack(Path(folder), WITHOUT) as stack,
        duckdb.connect() as plain,
    ):
        load_extension(plain, "tpch")
        plain.execute(f"call dbgen(sf = {asked.scale})")
        tables = [name for (name,) in plain.execute("show tables").fetchall()]
        settings = load_settings({}, environ={**os.environ, **stack.environment})
        stack.ask(f"drop schema {WITHOUT}")
        with assemble(settings) as lake:
            written_to(lake, plain, WITHOUT)
            stack.ask(f"create schema {WITH}")
            for table in tables:
                copied(lake, f"{WITHOUT}.{table}", f"{WITH}.{table}")
        begun = time.perf_counter()
        for table in tables:
            stack.ask(f"analyze {WITH}.{table}")
        analyzed = Figure("ANALYZE of all tables", time.perf_counter() - begun, "s")
        queries = {
            f"Q{number}": {
                schema: with_namespace(for_trino(text), tables, schema, "trino") for schema in (WITHOUT, WITH)
            }
            for number, text in enumerate(texts(plain, "tpch"), 1)
        }
        measure(stack, dict(list(queries.items())[:3]), 1)  # for Java's compiler
        ratios, changed = measure(stack, queries, asked.rounds)
    before, after = (sum(ratio.against_seconds for ratio in ratios), sum(ratio.seconds for ratio in ratios))
    note = f"TPC-H at scale {asked.scale}, Trino with a heap of 3 GB. Other plans: {', '.join(changed) or 'none'}."
    figures = [analyzed, Figure("all queries without statistics", before, "s"), Figure("with statistics", after, "s")]
    return report("ndv", ratios, figures=figures, notes=[note])


if __name__ == "__main__":
    sys.exit(main())
