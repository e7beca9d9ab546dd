"""Stock minute bars in gzip CSV flat files, one per day and maybe late corrections beside it, in a folder or in S3."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.core.source import RemoteFiles
    from lakehouse.pipelines.model import Reading

#: The columns of a file in their order, with the types that they are kept in.
COLUMNS = {
    "ticker": "string",
    "volume": "bigint",
    "open": "decimal(18,6)",
    "close": "decimal(18,6)",
    "high": "decimal(18,6)",
    "low": "decimal(18,6)",
    "window_start": "bigint",
    "transactions": "bigint",
}
HEADER = ",".join(COLUMNS)

SETTINGS = {
    "path": "the folder of the flat files (YYYY-MM-DD*.csv.gz, at any depth), or s3://bucket/prefix",
    "endpoint": "for S3: a server that speaks it, e.g. http://127.0.0.1:9000; nothing: AWS",
    "region": "for S3: the region of the bucket",
    "access_key": "for S3: with secret_key; neither: AWS's own variables and files",
    "secret_key": "for S3: best in .env or LAKE_SOURCES__MARKET__SECRET_KEY",
}

_S3 = "s3://"
_HOW_TO_SET = (
    "Set path under [sources.market] in lake.toml, or LAKE_SOURCES__MARKET__PATH, to the folder or s3:// address "
    "that holds YYYY-MM-DD.csv.gz files."
)
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d).*\.csv\.gz")
#: Characters that mean something else than themselves where Spark is given a path.
_SPECIAL = re.compile(r"([\[\]{}*?\\])")
#: Requests that wait for the network side by side.
_AT_ONCE = 8


@dataclass(frozen=True)
class FlatFile:
    """A file of one day."""

    name: str
    """Its whole name: a path, or s3://bucket/key."""
    size: int
    mark: str
    """Changes with the content: the time of the last change, or S3's ETag."""


def available(reading: Reading) -> Mapping[str, str]:
    """The days that there are files of, each with a fingerprint of those."""
    return {day: _fingerprint(files) for day, files in sorted(_files(reading).items())}


def read(reading: Reading) -> tuple[DataFrame, dict[str, str]]:
    """One day's lines as typed rows, and notes on the files that they came from."""
    from pyspark.sql import functions as F

    path = _path(reading)
    files = _files(reading, reading.partition).get(reading.partition, [])
    if not files:
        raise SourceError(
            f"{path} has no file of {reading.partition}, such as {reading.partition}.csv.gz.", _HOW_TO_SET
        )
    lines = reading.spark.read.options(**_options(reading.settings)).text([_spark_path(file.name) for file in files])
    rows = parsed(lines.select("value", *_lineage()))
    lasting = rows.select(
        "*", F.lit(date.fromisoformat(reading.partition)).alias("date"), F.lit(reading.now).alias("ingested_at")
    )
    return lasting, {
        "source": ", ".join(file.name for file in files),
        "bytes": str(sum(file.size for file in files)),
    }


def parsed(lines: DataFrame) -> DataFrame:
    """Lines (`value`) as bars, other columns kept; a line that is none keeps its text in `unparsed`."""
    from pyspark.sql import functions as F

    others = [name for name in lines.columns if name != "value"]
    # Split and cast here, since Spark's own CSV reader takes several times as long to do the same; cells of these files
    # are never quoted.
    split = lines.where(~F.col("value").isin(HEADER, "")).withColumn("_cells", _cells(F.col("value")))
    cast = split.select(
        "value",
        (F.size("_cells") == len(COLUMNS)).alias("_complete"),
        *(_cell(place, kind).alias(name) for place, (name, kind) in enumerate(COLUMNS.items())),
        *others,
    )
    numbers = [F.col(name).isNotNull() for name in COLUMNS if name != "ticker"]
    is_bar = F.col("_complete")
    for is_there in numbers:
        is_bar = is_bar & is_there
    return cast.select(*COLUMNS, F.when(~is_bar, F.col("value")).alias("unparsed"), *others)


def s3a_options(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    """The settings for one bucket, as Spark's S3 client knows them; other buckets keep those of the lake."""
    endpoint, access_key = settings.get("endpoint", ""), settings.get("access_key", "")
    found = {
        "endpoint": endpoint,
        "endpoint.region": settings.get("region", ""),
        "path.style.access": "true" if endpoint else "",
        "connection.ssl.enabled": "false" if endpoint.lower().startswith("http://") else "",
        "access.key": access_key,
        "secret.key": settings.get("secret_key", ""),
        # Spark's own chain would look at AWS's variables first, which may belong to the lake's store.
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider" if access_key else "",
    }
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in found.items() if value}


def _cells(line: Column) -> Column:
    from pyspark.sql import functions as F

    # Said in full, though the right header was filtered out before: Spark may put this before that.
    other_header = line.startswith("ticker,") & (line != HEADER)
    told = F.concat(F.lit("A flat file has other columns than "), F.lit(HEADER), F.lit(": "), line)
    return F.when(other_header, F.raise_error(told).cast("array<string>")).otherwise(F.split(line, ","))


def _cell(place: int, kind: str) -> Column:
    from pyspark.sql import functions as F

    cell = F.get("_cells", F.lit(place))
    if kind == "bigint":
        # A cast takes 12.5 for 12.
        return F.when(~cell.contains("."), cell.cast(kind))
    return F.when(cell != "", cell) if kind == "string" else cell.cast(kind)


def _lineage() -> list[Column]:
    from pyspark.sql import functions as F

    return [
        F.col("_metadata.file_path").alias("source_file"),
        F.col("_metadata.file_modification_time").alias("file_modified_at"),
    ]


def _options(settings: Mapping[str, str]) -> dict[str, str]:
    path = settings["path"]
    return s3a_options(settings, path.removeprefix(_S3).partition("/")[0]) if path.startswith(_S3) else {}


def _spark_path(name: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", name)
    return "s3a://" + escaped.removeprefix(_S3) if name.startswith(_S3) else "file://" + escaped


def _path(reading: Reading) -> str:
    path = reading.settings.get("path", "")
    if not path:
        raise SourceError("Where the flat files of the pipeline market are is not set.", _HOW_TO_SET)
    return path


def _files(reading: Reading, only: str = "") -> dict[str, list[FlatFile]]:
    """The files of every day, or of one alone."""
    path = _path(reading)
    names = _names_in_s3(reading.store, path) if path.startswith(_S3) else _names_below(Path(path).expanduser())
    found = [(day, name) for name in names if (day := _day(name)) and only in ("", day)]
    by_day: dict[str, list[FlatFile]] = {}
    for (day, _), file in zip(found, _looked_at([name for _, name in found], reading.store), strict=True):
        if file:  # unless it went away meanwhile
            by_day.setdefault(day, []).append(file)
    return by_day


def _names_below(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}.", _HOW_TO_SET)
    names: list[str] = []
    for parent, folders, files in os.walk(folder.absolute(), onerror=_cannot_be_read):
        folders[:] = [each for each in folders if not each.startswith((".", "_"))]
        names += [os.path.join(parent, each) for each in files]
    return sorted(names)


def _cannot_be_read(exc: OSError) -> None:
    raise SourceError(f"{exc.filename} cannot be read: {exc.strerror}.", _HOW_TO_SET) from exc


def _names_in_s3(store: RemoteFiles | None, path: str) -> Sequence[str]:
    if store is None:
        raise SourceError(f"{path} cannot be read without an object store.", _HOW_TO_SET)
    names = store.list(path, deep=True)
    if not names:
        raise SourceError(f"There is nothing below {path}.", _HOW_TO_SET)
    return names


def _day(name: str) -> str:
    """The day that a file's name begins with, or nothing."""
    fits = _NAME.fullmatch(name.rpartition("/")[2])
    if not fits:
        return ""
    try:
        return date.fromisoformat(fits[1]).isoformat()
    except ValueError:
        return ""


def _looked_at(names: Sequence[str], store: RemoteFiles | None) -> list[FlatFile | None]:
    if store is None or not names or not names[0].startswith(_S3):
        return [_stat(name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        remote = list(pool.map(store.stat, names))
    return [FlatFile(file.name, file.size, file.etag) if file else None for file in remote]


def _stat(name: str) -> FlatFile | None:
    try:
        seen = os.stat(name)
    except FileNotFoundError:
        return None
    return FlatFile(name, seen.st_size, str(seen.st_mtime_ns))


def _fingerprint(files: Sequence[FlatFile]) -> str:
    told = "\n".join(f"{os.path.basename(file.name)} {file.size} {file.mark}" for file in files)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
