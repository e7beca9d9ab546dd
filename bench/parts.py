"""The parts of the benchmark: each is a process of its own with sizes and a time budget."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part: what is run, how long it may take, and the file that it writes."""

    name: str
    title: str
    module: str
    arguments: tuple[str, ...]
    minutes: int
    """The part is ended after this time."""
    quick: tuple[str, ...] | None = None
    """Arguments for `--quick`, which takes seconds; None: `--quick` skips the part."""
    quick_name: str = ""
    """The file that `--quick` writes (default: the same)."""

    def command(self, quick: bool) -> list[str]:
        return [self.module, *((self.quick or ()) if quick else self.arguments)]

    def result(self, quick: bool) -> str:
        return (self.quick_name if quick else "") or self.name


_ONE = ("--rounds", "1")
_THREE = ("--rounds", "3")

#: In the order of the page; what people wait for comes first.
PARTS = (
    Part("start", "Start: a cold query, help, the first Spark statement", "bench.start", (), 10,
         ("--rows", "10000", "--rounds", "3", "--spark-rounds", "1")),
    Part("small_runs", "Small runs: 11,000 rows, four tables", "bench.small_runs", ("--stack",), 40, _ONE),
    Part("models", "dbt: ten small models in a warm lake", "bench.models", (), 10, _ONE),
    Part("query_sf1", "TPC-H, scale factor 1", "bench.query", ("1",), 20, ("0.01", *_ONE), "query_sf0.01"),
    Part("query_sf10", "TPC-H, scale factor 10", "bench.query", ("10",), 90),
    Part("ingest", "Ingest: 10 million CSV rows into a table partitioned by day", "bench.ingest", ("10000000",), 60,
         ("20000", *_ONE)),
    Part("ingest_memory", "The largest input of each path in 4 GiB", "bench.ingest",
         ("256000000", "--memory-limit", "4g"), 240, ("40000", "--memory-limit", "4g", "--first-rows", "20000")),
    Part("upsert", "Upsert: 1 million keyed rows into 10 million", "bench.upsert", ("10000000",), 120, ("20000", *_ONE)),
    Part("pipelines_market_5m", "Pipeline market, 5 million rows", "bench.pipelines", ("market", "5000000", *_THREE), 60,
         ("market", "20000", *_ONE), "pipelines_market_0m"),
    Part("pipelines_market_20m", "Pipeline market, 20 million rows", "bench.pipelines", ("market", "20000000", *_THREE), 120),
    Part("pipelines_taxi_3m", "Pipeline taxi, 3 million rows", "bench.pipelines", ("taxi", "3000000", *_THREE), 60,
         ("taxi", "20000", *_ONE), "pipelines_taxi_0m"),
    Part("pipelines_taxi_12m", "Pipeline taxi, 12 million rows", "bench.pipelines", ("taxi", "12000000", *_THREE), 120),
    Part("publish", "Publishing 1 to 100 tables", "bench.publish", (), 10, ("--rounds", "3")),
    Part("growth_market", "Growth: one more day after 1, 10 and 100 times the history", "bench.growth", ("market",), 120,
         ("market", "--days", "1", "--tickers", "5", "--factors", "1", "2", *_ONE)),
    Part("growth_snapshots", "Growth: reads after 10 to 10,000 snapshots", "bench.growth", ("snapshots", "--rounds", "9"), 20,
         ("snapshots", "--counts", "10", "100")),
    Part("writers", "1 to 16 writers at once", "bench.writers", (), 60,
         ("--writers", "1", "2", "--commits", "2", *_ONE)),
    Part("maintain", "Maintenance: reads after `lake maintain`, and health", "bench.maintain", (), 20,
         ("--commits", "8", "--partitions", "8", "--rounds", "3", "--mends", "1", "--no-spark")),
    Part("maintain_trino", "Maintenance beside Trino's optimize, in an object store", "bench.maintain_trino", (), 20),
    Part("ndv", "Statistics of distinct values: TPC-H on Trino with and without them", "bench.ndv", (), 20),
    Part("tricks", "Optimizations of the taxi pipeline, one by one", "bench.tricks", ("1000000", *_THREE), 30),
)  # fmt: skip


def title_of(name: str) -> tuple[int, str]:
    """The place and the title of a result on the page; results of no part come last."""
    for number, part in enumerate(PARTS):
        if name == part.name:
            return number, part.title
        if name == part.quick_name:
            return number, f"{part.title} (in tiny sizes)"
        if name == f"{part.name}_some":
            return number, f"{part.title} (some contenders)"
    return len(PARTS), name
