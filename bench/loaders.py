"""Scripts that load a CSV file, each on the best bulk path of its engine.

Each is given `FILE`, `HOME`, and what `lake connect` prints for its engine: `spark` or PyIceberg's `catalog`. One that does not write
to the lake's catalog leaves the number of its rows in HOME/rows.txt.
"""

from __future__ import annotations

from dataclasses import dataclass

OURS = "lake ingest"
FLOOR, FLOOR_GZIP = "floor: parse, write Parquet", "floor: gunzip, parse, write Parquet"
SCHEMA = (
    "id bigint, ts timestamp, customer bigint, item string, price double, quantity bigint, city string, note string"
)


@dataclass(frozen=True)
class Loader:
    """A script and the engine whose configuration it needs (`spark`, `pyiceberg` or none)."""

    engine: str
    code: str


_ICEBERG = """
import sys, pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import DayTransform
def load(arrow):
    catalog.create_namespace_if_not_exists("bench")
    table = catalog.create_table("bench.t", schema=arrow.schema)
    with table.update_spec() as update:
        update.add_field("ts", DayTransform(), "day")
    table.append(arrow)
"""
_SPARK = """
spark.sql("create namespace if not exists lake.bench")
frame = spark.read.option("header", True){schema}.csv(FILE)
from pyspark.sql import functions as F
frame.writeTo("lake.bench.t").partitionedBy(F.days("ts")).create()
"""
_ARROW = """
import pyarrow.csv
times = pyarrow.csv.ConvertOptions(column_types={"ts": pyarrow.timestamp("us")}, timestamp_parsers=["%Y-%m-%d %H:%M:%S"])
load(pyarrow.csv.read_csv(FILE, convert_options=times))
"""
_DUCKDB = """
import duckdb
load(duckdb.sql(f"select * from read_csv('{FILE}')").to_arrow_table())
"""
_POLARS = """
import polars
frame = polars.read_csv(FILE, try_parse_dates=True).to_arrow()
large = {pyarrow.large_string(): pyarrow.string(), pyarrow.string_view(): pyarrow.string()}
load(frame.cast(pyarrow.schema([field.with_type(large.get(field.type, field.type)) for field in frame.schema])))
"""
_DUCKLAKE = """
import duckdb, importlib.util, pathlib
connection = duckdb.connect()
folder = importlib.util.find_spec("duckdb_extension_ducklake").submodule_search_locations[0]
connection.execute(f"LOAD '{folder}/extensions/v{duckdb.__version__}/ducklake.duckdb_extension'")
connection.execute(f"ATTACH 'ducklake:{HOME}/catalog.ducklake' AS peer (DATA_PATH '{HOME}/data')")
connection.execute(f"CREATE TABLE peer.t AS SELECT * FROM read_csv('{FILE}') LIMIT 0")
connection.execute("ALTER TABLE peer.t SET PARTITIONED BY (year(ts), month(ts), day(ts))")
connection.execute("CALL peer.set_option('parquet_compression', 'zstd')")
connection.execute(f"INSERT INTO peer.t SELECT * FROM read_csv('{FILE}')")
(rows,) = connection.execute("SELECT count(*) FROM peer.t").fetchone()
pathlib.Path(HOME, "rows.txt").write_text(str(rows))
"""
_DLT = """
import os, pathlib
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
import dlt, pyarrow, pyarrow.csv
from dlt.destinations.adapters import iceberg_adapter, iceberg_partition
times = pyarrow.csv.ConvertOptions(column_types={"ts": pyarrow.timestamp("us")}, timestamp_parsers=["%Y-%m-%d %H:%M:%S"])
@dlt.resource(name="t", table_format="iceberg", write_disposition="append")
def orders():
    yield from pyarrow.csv.open_csv(FILE, pyarrow.csv.ReadOptions(block_size=64 << 20), convert_options=times)
pipeline = dlt.pipeline("bench", destination=dlt.destinations.filesystem(bucket_url=f"file://{HOME}/data"), dataset_name="bench", pipelines_dir=f"{HOME}/work")
pipeline.run(iceberg_adapter(orders, partition=iceberg_partition.day("ts")), loader_file_format="parquet")
from dlt.common.libs.pyiceberg import get_iceberg_tables
(table,) = get_iceberg_tables(pipeline, "t").values()
pathlib.Path(HOME, "rows.txt").write_text(str(sum(task.file.record_count for task in table.scan().plan_files())))
"""
#: The least that a loader does: DuckDB parses with all cores and writes Parquet, with no table, checks or partitions.
_FLOOR = """
import duckdb, pathlib
(rows,) = duckdb.execute(f"COPY (SELECT * FROM read_csv('{FILE}')) TO '{HOME}/floor.parquet' (FORMAT parquet, COMPRESSION zstd)").fetchone()
pathlib.Path(HOME, "rows.txt").write_text(str(rows))
"""

LOADERS = {
    "PySpark inferSchema": Loader("spark", _SPARK.format(schema=".option('inferSchema', True)")),
    "PySpark schema": Loader("spark", _SPARK.format(schema=f".schema({SCHEMA!r})")),
    "PyArrow + PyIceberg": Loader("pyiceberg", _ICEBERG + _ARROW),
    "DuckDB + PyIceberg": Loader("pyiceberg", _ICEBERG + _DUCKDB),
    "Polars + PyIceberg": Loader("pyiceberg", _ICEBERG + _POLARS),
    "DuckLake": Loader("", _DUCKLAKE),
    "dlt": Loader("", _DLT),
    FLOOR: Loader("", _FLOOR),
    FLOOR_GZIP: Loader("", _FLOOR),
}
#: Those that run in an environment of their own.
PEERS = ("DuckLake", "dlt")
