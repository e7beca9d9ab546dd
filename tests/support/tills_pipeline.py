"""The text of a module with a pipeline of a user: sales by day, from files, with a rule that blocks."""

from __future__ import annotations

PIPELINE = '''
from pathlib import Path

from pyspark.sql import functions as F

from lakehouse.pipelines import Days, Pipeline, Source, Table
from lakehouse.quality import expect, not_null


def read(context):
    file = Path(context.settings["path"]) / f"{{context.partition}}.csv"
    rows = context.spark.read.schema("id bigint, item string, cents bigint").csv(str(file))
    return rows.withColumn("date", F.lit(context.partition).cast("date"))


def available(context):
    return {{file.stem: file.read_text() for file in Path(context.settings["path"]).glob("*.csv")}}


def sales(raw):
    """Sales as they came."""
    return raw.select("id", "item", "cents", "date")


def by_day(sales):
    """What was sold on a day."""
    return sales.groupBy("date").agg(F.sum("cents").alias("cents"))


till = Source("tills", read, available, settings={{"path": "the folder of the files"}})
rules = (not_null("id"), expect("not_forbidden", lambda: F.col("item") != "forbidden", "block"))
pipeline = Pipeline(
    "{name}",
    (
        Table("{name}.raw", sales, inputs=(till,), partition_by="date"),
        Table("{name}.sales", sales, inputs=("{name}.raw",), partition_by="date", rules=rules),
        Table("{name}.by_day", by_day, inputs=("{name}.sales",), partition_by="date"),
    ),
    Days("date"),
)
'''
