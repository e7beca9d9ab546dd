"""The scripts that one would write without a lakehouse: the same two pipelines, with Spark and without.

Each is given `FOLDER`, and `spark` or PyIceberg's `catalog` as `lake connect` prints them.
"""

from __future__ import annotations

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
#: The same tables from the same columns, with Spark alone: nothing is quarantined, checked or published at once.
MARKET_SAME = """
import glob
from datetime import date, datetime, timezone
from functools import reduce
from pyspark.sql import functions as F
from lakehouse.pipelines.market import bronze
from lakehouse.pipelines.market import gold
from lakehouse.pipelines.market.rules import MINUTE_RULES as RULES
from lakehouse.pipelines.market import silver
from lakehouse.pipelines.market.source import parse_lines
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
lines = spark.read.text(FOLDER + "/*/*/*.csv.gz").select("value", F.col("_metadata.file_path").alias("source_file"), F.col("_metadata.file_modification_time").alias("file_modified_at"))
raw = parse_lines(lines).withColumn("date", F.to_date(F.regexp_extract("source_file", r"(\\d{4}-\\d\\d-\\d\\d)", 1))).withColumn("ingested_at", F.lit(datetime.now(timezone.utc)))
bronze.minute_aggs(raw).writeTo("lake.bronze.minute_aggs").partitionedBy("date").create()
transformed = silver.minute_aggs(spark.table("lake.bronze.minute_aggs"))
good = transformed.where(reduce(lambda a, b: a & b, [F.coalesce(rule.condition(), F.lit(True)) for rule in RULES]))
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
from lakehouse.pipelines.taxi import bronze
from lakehouse.pipelines.taxi import gold
from lakehouse.pipelines.taxi.pipeline import stg_yellow_trips
from lakehouse.pipelines.taxi import silver
from lakehouse.storage.raw import local_raw_area
from lakehouse.pipelines.taxi.source.months import RawMonth
from lakehouse.pipelines.taxi.source.published import read_published, with_lineage
for name in ("bronze", "silver", "gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
now = datetime.now(timezone.utc)
months = [with_lineage(read_published(spark, RawMonth(local_raw_area(Path(file).parent), Path(file).name))[0], file[-15:-8], file, now) for file in sorted(glob.glob(FOLDER + "/*.parquet"))]
raw = reduce(lambda a, b: a.unionByName(b), months)
bronze.yellow_trips(raw).writeTo("lake.bronze.yellow_trips").partitionedBy("month").create()
transformed = silver.stg_yellow_trips(spark.table("lake.bronze.yellow_trips"))
rules = [rule for rule in stg_yellow_trips.rules if rule.severity == "quarantine"]
good = transformed.where(reduce(lambda a, b: a & b, [F.coalesce(rule.condition(), F.lit(True)) for rule in rules]))
good.dropDuplicates(list(silver.TRIP_KEY)).writeTo("lake.silver.stg_yellow_trips").partitionedBy("month").create()
rows = spark.table("lake.silver.stg_yellow_trips")
for make in (gold.fct_daily_trips, gold.fct_hourly_revenue, gold.fct_trip_distance_stats):
    make(rows).writeTo(f"lake.gold.{make.__name__}").partitionedBy("month").create()
"""
#: Three tables of PostgreSQL, and the gold tables of `social`: psycopg reads, Spark writes.
SOCIAL_SPARK = """
import psycopg
from lakehouse.pipelines.social import gold
from psycopg.rows import dict_row
for name in ("plain", "plain_gold"):
    spark.sql(f"create namespace if not exists lake.{name}")
COLUMNS = {
    "users": "id bigint, name string, email string, country string, plan string, created_at timestamp, updated_at timestamp",
    "posts": "id bigint, user_id bigint, body string, tags array<string>, visibility string, likes int, created_at timestamp, updated_at timestamp",
    "follows": "follower_id bigint, followed_id bigint, created_at timestamp, updated_at timestamp",
}
with psycopg.connect(URL, row_factory=dict_row) as connection:
    for table, columns in COLUMNS.items():
        names = ", ".join(column.split()[0] for column in columns.split(", "))
        rows = connection.execute(f"select {names} from {table}").fetchall()
        spark.createDataFrame([tuple(row.values()) for row in rows], columns).writeTo(f"lake.plain.{table}").createOrReplace()
users, posts, follows = (spark.table(f"lake.plain.{table}") for table in COLUMNS)
gold.daily_signups(users).writeTo("lake.plain_gold.daily_signups").createOrReplace()
gold.user_activity(users, posts, follows).writeTo("lake.plain_gold.user_activity").createOrReplace()
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
