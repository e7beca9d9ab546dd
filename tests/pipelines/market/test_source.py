"""Flat files of minute bars: which days there are, what their lines hold, and the errors when something is missing."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core.errors import SourceError
from lakehouse.pipelines.market.source import HEADER, available, read, read_days, s3a_options
from lakehouse.pipelines.model import SourceContext
from lakehouse.storage.raw import local_raw_area
from lakehouse.storage.s3 import S3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.servers.s3 import S3Server

DAY = "2026-01-14"
NOW = datetime(2026, 1, 16, 12, tzinfo=UTC)
BAR = "A,10,1.5,2,2.25,1.000001,1768401000000000000,3"


def flat_file(file: Path, *lines: str, modified: datetime = NOW) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(line + "\n" for line in (HEADER, *lines)).encode()))
    os.utime(file, (modified.timestamp(), modified.timestamp()))
    return file


def context_of(spark: Any, path: Path | str, day: str = DAY, **more: Any) -> SourceContext:
    return SourceContext(
        lambda: spark, {"path": str(path)} if path else {}, day, NOW, local_raw_area(Path("raw")), **more
    )


# ---- which days there are ---------------------------------------------------------------------------------------


def test_days_are_found_at_any_depth_and_other_files_are_not(tmp_path: Path) -> None:
    flat_file(tmp_path / "2026-01-13.csv.gz")
    flat_file(tmp_path / "2026" / "01" / "2026-01-14.csv.gz")
    flat_file(tmp_path / "2026" / "01" / "2026-01-14.corrections.csv.gz")
    for other in (
        "notes.csv.gz",
        "2026-02-31.csv.gz",
        "2026-01-155.csv.gz",
        "2026-01-16.csv",
        ".tmp/2026-01-17.csv.gz",
    ):
        flat_file(tmp_path / other)
    assert list(available(context_of(None, tmp_path))) == ["2026-01-13", "2026-01-14"]


def test_the_fingerprint_of_a_day_changes_with_its_files_alone(tmp_path: Path) -> None:
    first = flat_file(tmp_path / "2026-01-14.csv.gz", BAR)
    flat_file(tmp_path / "2026-01-15.csv.gz", BAR)
    before = available(context_of(None, tmp_path))
    assert available(context_of(None, tmp_path)) == before

    flat_file(tmp_path / "2026-01-14.corrections.csv.gz", BAR)
    corrected = available(context_of(None, tmp_path))
    assert corrected[DAY] != before[DAY]
    assert corrected["2026-01-15"] == before["2026-01-15"]

    os.utime(first, (1, 1))
    assert available(context_of(None, tmp_path))[DAY] != corrected[DAY]


@pytest.mark.parametrize("path", ["", "/not/there"])
def test_a_folder_that_is_not_there_is_told_with_the_setting(path: str) -> None:
    for ask in (available, read):
        with pytest.raises(SourceError) as caught:
            ask(context_of(None, path))
        assert "[sources.market]" in caught.value.hint and "LAKE_SOURCES__MARKET__PATH" in caught.value.hint


def test_a_day_without_files_is_told_with_the_setting(tmp_path: Path) -> None:
    flat_file(tmp_path / "2026-01-13.csv.gz", BAR)
    with pytest.raises(SourceError, match="no file of 2026-01-14") as caught:
        read(context_of(None, tmp_path))
    assert "LAKE_SOURCES__MARKET__PATH" in caught.value.hint


# ---- what is read -----------------------------------------------------------------------------------------------


def rows(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    frame = read(context_of(spark, folder)).rows
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: str((row["ticker"], row["source_file"])))


@pytest.mark.spark
def test_a_line_becomes_a_typed_row_that_knows_its_file(spark: SparkSession, tmp_path: Path) -> None:
    file = flat_file(tmp_path / "2026-01-14.csv.gz", BAR, modified=datetime(2026, 1, 15, 12, tzinfo=UTC))
    batch = read(context_of(spark, tmp_path))
    from tests.support.frames import assert_same_frame

    shape = (
        "ticker string, volume bigint, open decimal(18,6), close decimal(18,6), high decimal(18,6), low decimal(18,6), "
        "window_start bigint, transactions bigint, unparsed string, source_file string, file_modified_at timestamp, "
        "date date, ingested_at timestamp"
    )
    prices = [Decimal(text) for text in ("1.5", "2", "2.25", "1.000001")]
    lineage = (f"file:{file}", datetime(2026, 1, 15, 12, tzinfo=UTC), date(2026, 1, 14), NOW)
    row = ("A", 10, *prices, 1768401000000000000, 3, None, *lineage)
    assert_same_frame(batch.rows, spark.createDataFrame([row], shape))
    assert batch.notes == {"source": str(file), "bytes": str(file.stat().st_size)}


@pytest.mark.spark
def test_days_that_are_read_at_once_have_the_rows_of_each_day(spark: SparkSession, tmp_path: Path) -> None:
    flat_file(tmp_path / "2026-01-14.csv.gz", BAR)
    flat_file(tmp_path / "2026-01-15.csv.gz", BAR, BAR.replace("A,", "B,"))
    flat_file(tmp_path / "2026-01-16.csv.gz", BAR)
    days = ["2026-01-14", "2026-01-15"]
    one_by_one = [read(context_of(spark, tmp_path, day)) for day in days]
    at_once = read_days(context_of(spark, tmp_path, ""), days)
    assert sorted(at_once.rows.collect()) == sorted(row for batch in one_by_one for row in batch.rows.collect())
    assert {str(row.date) for row in at_once.rows.collect()} == set(days)
    assert at_once.notes["source"] == ", ".join(batch.notes["source"] for batch in one_by_one)
    with pytest.raises(SourceError, match="no file of 2026-01-17"):
        read_days(context_of(spark, tmp_path, ""), [*days, "2026-01-17"])


@pytest.mark.spark
def test_a_late_correction_is_read_beside_the_days_own_file_and_is_younger(spark: SparkSession, tmp_path: Path) -> None:
    flat_file(tmp_path / "a" / "2026-01-14.csv.gz", BAR, modified=datetime(2026, 1, 15, tzinfo=UTC))
    corrected = BAR.replace(",10,", ",11,")
    flat_file(tmp_path / "2026-01-14.corrections.csv.gz", corrected, modified=datetime(2026, 1, 16, tzinfo=UTC))
    flat_file(tmp_path / "2026-01-15.csv.gz", BAR.replace("A,", "B,"))
    bars = sorted(rows(spark, tmp_path), key=lambda row: row["file_modified_at"])
    assert [row["volume"] for row in bars] == [10, 11]


@pytest.mark.spark
@pytest.mark.parametrize(
    "line",
    [
        "A,many,1.5,2,2.25,1,1768401000000000000,3",
        "A,12.5,1.5,2,2.25,1,1768401000000000000,3",
        "A,10,1.5,2,2.25",
        f"{BAR},more",
        "A,10,1.5,,2.25,1,1768401000000000000,3",
        "A,10,1.5,1e20,2.25,1,1768401000000000000,3",
        "A,10,NaN,2,2.25,1,1768401000000000000,3",
        "A,10,1.5,2,2.25,1,99999999999999999999,3",
        'A,10,"1.5",2,2.25,1,1768401000000000000,3',
    ],
    ids=["word", "fraction", "short", "long", "missing", "overflow", "nan", "long_number", "quoted"],
)
def test_a_line_that_does_not_parse_keeps_its_text_and_spoils_no_other(
    spark: SparkSession, tmp_path: Path, line: str
) -> None:
    flat_file(tmp_path / "2026-01-14.csv.gz", line, BAR.replace("A,", "B,"), "")
    assert [(row["ticker"], row["unparsed"]) for row in rows(spark, tmp_path)] == [("A", line), ("B", None)]


@pytest.mark.spark
def test_a_line_without_a_ticker_parses_and_has_none(spark: SparkSession, tmp_path: Path) -> None:
    flat_file(tmp_path / "2026-01-14.csv.gz", BAR.removeprefix("A"))
    (row,) = rows(spark, tmp_path)
    assert (row["ticker"], row["unparsed"]) == (None, None)


@pytest.mark.spark
def test_a_ticker_that_reads_like_a_missing_value_is_one(spark: SparkSession, tmp_path: Path) -> None:
    flat_file(tmp_path / "2026-01-14.csv.gz", *(BAR.replace("A,", f"{name},") for name in ("NA", "NULL", "TRUE")))
    assert [row["ticker"] for row in rows(spark, tmp_path)] == ["NA", "NULL", "TRUE"]


@pytest.mark.spark
def test_columns_in_another_order_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    file = flat_file(tmp_path / "2026-01-14.csv.gz")
    file.write_bytes(gzip.compress(f"ticker,volume,close,open,high,low,window_start,transactions\n{BAR}\n".encode()))
    with pytest.raises((PySparkException, Py4JJavaError), match="other columns than ticker,volume,open,close"):
        rows(spark, tmp_path)


@pytest.mark.spark
def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b [c] {d,e} 100% *?ö"
    flat_file(folder / "2026-01-14.csv.gz", BAR)
    assert [row["ticker"] for row in rows(spark, folder)] == ["A"]


# ---- in S3 ------------------------------------------------------------------------------------------------------


def in_s3(server: S3Server, prefix: str, store: S3 | None = None) -> SourceContext:
    return context_of(None, prefix, store=store or S3(server.settings))


def test_days_in_s3_are_found_with_fingerprints(s3_server: S3Server) -> None:
    bucket = f"s3://{s3_server.make_bucket()}"
    for key in (
        "bars/2026/01/2026-01-14.csv.gz",
        "bars/2026-01-15.csv.gz",
        "elsewhere/2026-01-16.csv.gz",
        "bars/x.csv",
    ):
        s3_server.put(f"{bucket}/{key}", "one")
    before = available(in_s3(s3_server, f"{bucket}/bars"))
    assert list(before) == ["2026-01-14", "2026-01-15"]
    assert available(in_s3(s3_server, f"{bucket}/bars/")) == before
    s3_server.put(f"{bucket}/bars/2026-01-15.csv.gz", "two")  # as large as before
    after = available(in_s3(s3_server, f"{bucket}/bars"))
    assert {day for day in after if after[day] != before[day]} == {"2026-01-15"}


def test_an_empty_prefix_in_s3_has_no_days_yet(s3_server: S3Server) -> None:
    bucket = f"s3://{s3_server.make_bucket()}"
    assert available(in_s3(s3_server, f"{bucket}/bars")) == {}


def test_s3_settings_are_for_one_bucket_alone() -> None:
    settings = {"path": "s3://bars/x", "endpoint": "http://127.0.0.1:9", "access_key": "key", "secret_key": "secret"}
    assert s3a_options(settings, "bars") == {
        "fs.s3a.bucket.bars.endpoint": "http://127.0.0.1:9",
        "fs.s3a.bucket.bars.path.style.access": "true",
        "fs.s3a.bucket.bars.connection.ssl.enabled": "false",
        "fs.s3a.bucket.bars.access.key": "key",
        "fs.s3a.bucket.bars.secret.key": "secret",
        "fs.s3a.bucket.bars.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    assert s3a_options({"path": "s3://bars/x"}, "bars") == {}


@pytest.mark.spark
def test_secrets_are_in_no_plan_and_no_error_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    nobody = {"endpoint": "http://127.0.0.1:9", "access_key": f"key-{secret}", "secret_key": secret}
    quick = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "1", "fs.s3a.connection.timeout": "1000"}
    options = s3a_options(nobody, "bars") | quick
    file = flat_file(tmp_path / "2026-01-14.csv.gz", BAR)
    plan = spark.read.options(**options).text(str(file))._jdf.queryExecution().toString()
    assert "FileScan text" in plan and secret not in plan

    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.read.options(**options).text("s3a://bars/2026-01-14.csv.gz").collect()
    assert secret not in str(caught.value)
