"""`lake setup`: download what Spark needs and build the class archive for a fast start. Safe to repeat."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.engines.spark.archive import build_archive, find_archive
from lakehouse.lake import Lake
from lakehouse.lake.assemble import Assembly
from lakehouse.lake.spark import DownloadReporter, StatusReporter, fetch_runtime
from lakehouse.pipelines.market.sample import write_day

# A typical first session, with a run of a pipeline after it: the classes that they load are archived.
_TRAINING = (
    "CREATE TABLE warm.orders (id INT, item STRING, price DECIMAL(10,2), at TIMESTAMP) PARTITIONED BY (days(at))",
    "INSERT INTO warm.orders VALUES (1, 'tea', 2.50, TIMESTAMP '2026-01-01 10:00:00')",
    "MERGE INTO warm.orders t USING (SELECT 1 AS id, 'mate' AS item) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET t.item = s.item",
    "ALTER TABLE warm.orders ADD COLUMN note STRING",
    "SELECT item, sum(price) AS total FROM warm.orders WHERE id > 0 GROUP BY item ORDER BY total DESC",
    "CREATE TABLE warm.visits (id INT, page STRING, at BIGINT) USING hudi"
    " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'at')",
    "INSERT INTO warm.visits VALUES (1, 'home', 1)",
    "UPDATE warm.visits SET page = 'shop' WHERE id = 1",
    "SELECT o.item, v.page FROM warm.orders o JOIN warm.visits v ON o.id = v.id",
)
_DAYS = (date(2026, 1, 14), date(2026, 1, 15))


def prepare(settings: Settings, status: StatusReporter, download: DownloadReporter) -> Path | None:
    """Download the jars and build the class archive if missing; returns the archive, or None if Java cannot build one."""
    java, jars = fetch_runtime(settings, download)
    if archive := find_archive(settings.cache, java, jars):
        return archive
    with tempfile.TemporaryDirectory(prefix="lake-setup-") as scratch:
        class_list = Path(scratch) / "classes.txt"
        with status("Recording the classes that Spark loads (about a minute, once per machine)"):
            _train(settings, Path(scratch) / "lake", class_list)
        with status("Building the class archive, which halves Spark's start time (about a minute)"):
            return build_archive(settings.cache, java, jars, class_list)


def _train(settings: Settings, home: Path, class_list: Path) -> None:
    """Use Spark in a lake of its own, whatever the profile: nothing is written to a catalog that others use."""
    files = home.parent / "files"
    for day in _DAYS:
        write_day(files, day)
    embedded = Settings(
        home=home,
        cache=settings.cache,
        maven_repo=settings.maven_repo,
        spark=replace(settings.spark, master="local[*]", driver_memory="1g", conf={}),
        sources={"market": {"path": str(files)}},
    )
    with Lake(Assembly(embedded, class_list=class_list).components()) as lake:
        for statement in _TRAINING:
            lake.sql(statement, engine="spark")
        for day in _DAYS:
            lake.run("market", str(day))
