"""Spark as the reference for generated statements: a session of a lake's Spark with the edge tables in memory."""

from __future__ import annotations

import re

from lakehouse.core.names import CATALOG
from lakehouse.engines.spark.errors import translated
from lakehouse.engines.spark.results import to_result
from lakehouse.lake import Lake
from tests.support.conformance.canonical import Answer, answer_of
from tests.support.conformance.values import tables

#: For statements that are each run once over a few rows: compiling a plan takes longer than to interpret it.
_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Rows in memory are planned as those of a table. Computed at once, a NULL without a type is not `<=>` to itself.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.datetime.java8API.enabled": "true",  # dates of the proleptic calendar reach the copies as they are
}
_TABLE = re.compile(r"\bedge\.(?=[a-z])")


class Reference:
    """Spark's answers over copies of the edge tables: what a scan without pruning gives, and without reading files."""

    def __init__(self, lake: Lake) -> None:
        from pyspark.sql import DataFrame

        self._session = lake.spark.newSession()
        for key, value in _SETTINGS.items():
            self._session.conf.set(key, value)
        for name in tables():
            rows = self._session.table(f"{CATALOG}.edge.{name}")._jdf
            copied = self._session._jsparkSession.createDataFrame(rows.collectAsList(), rows.schema())
            DataFrame(copied, self._session).createOrReplaceTempView(f"edge_{name}")

    def answer(self, sql: str) -> Answer:
        """Spark's answer to a query over `edge`; LakeError if Spark refuses it."""
        text = _TABLE.sub("edge_", sql)
        with translated(text):
            return answer_of(to_result(self._session.sql(text), "", arrow=True))
