"""Read stock minute bars from gzip CSV flat files in a folder or in S3: one per day, and late corrections beside it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import SourceError
from lakehouse.pipelines import functions as F
from lakehouse.pipelines.model import Batch, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.core.files import RemoteFiles

#: The columns of a file in their order, with their types in the lake.
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
    "endpoint": "for S3: the endpoint, e.g. http://127.0.0.1:9000 (default: AWS)",
    "region": "for S3: the region of the bucket",
    "access_key": "for S3: with secret_key (default: AWS's environment variables and files)",
    "secret_key": "for S3: preferably in .env or LAKE_SOURCES__MARKET__SECRET_KEY",
}

_S3 = "s3://"
_PATH_HINT = (
    "Set path under [sources.market] in lake.toml, or LAKE_SOURCES__MARKET__PATH, to the folder or s3:// address "
    "that holds YYYY-MM-DD.csv.gz files."
)
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d).*\.csv\.gz")
#: Characters that Spark interprets in a path.
_SPECIAL = re.compile(r"([\[\]{}*?\\])")
#: Concurrent requests to S3.
_MAX_REQUESTS = 8


@dataclass(frozen=True)
class FlatFile:
    """A file of one day."""

    name: str
    """Its path, or s3://bucket/key."""
    size: int
    version: str
    """Changes with the content: the modification time, or S3's ETag."""


def available(context: SourceContext) -> Mapping[str, str]:
    """The days that have files, each with a fingerprint of its files."""
    return {day: _fingerprint(files) for day, files in sorted(_files(context).items())}


def read(context: SourceContext) -> Batch:
    """One day's lines as typed rows, with notes on their files."""
    return read_days(context, [context.partition])


def read_days(context: SourceContext, days: Sequence[str]) -> Batch:
    """The lines of several days as typed rows, with notes on their files."""
    path, by_day = _path(context), _files(context, days)
    for day in days:
        if day not in by_day:
            raise SourceError(f"{path} has no file of {day}, such as {day}.csv.gz.", _PATH_HINT)
    files = [file for day in days for file in by_day[day]]
    lines = context.spark.read.options(**_options(context.settings)).text([_spark_path(file.name) for file in files])
    rows = parse_lines(lines.select("value", *_lineage())).select("*", F.lit(context.now).alias("ingested_at"))
    size = sum(file.size for file in files)
    return Batch(rows, notes={"source": ", ".join(file.name for file in files), "bytes": str(size)})


def parse_lines(lines: DataFrame) -> DataFrame:
    """Parse lines (`value`) into bars and keep the other columns; `unparsed` holds the text of a line that is no bar."""
    others = [name for name in lines.columns if name != "value"]
    # Spark's CSV reader takes several times as long as split and cast. The cells of these files are never quoted.
    split = lines.where(~F.col("value").isin(HEADER, "")).withColumn("_cells", _cells(F.col("value")))
    cast = split.select(
        "value",
        (F.size("_cells") == len(COLUMNS)).alias("_complete"),
        *(_cell(position, kind).alias(name) for position, (name, kind) in enumerate(COLUMNS.items())),
        *others,
    )
    is_bar = F.col("_complete")
    for name in COLUMNS:
        if name != "ticker":
            is_bar = is_bar & F.col(name).isNotNull()
    return cast.select(*COLUMNS, F.when(~is_bar, F.col("value")).alias("unparsed"), *others)


def s3a_options(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    """The settings of one bucket for Spark's S3 client; other buckets keep those of the lake."""
    endpoint, access_key = settings.get("endpoint", ""), settings.get("access_key", "")
    options = {
        "endpoint": endpoint,
        "endpoint.region": settings.get("region", ""),
        "path.style.access": "true" if endpoint else "",
        "connection.ssl.enabled": "false" if endpoint.lower().startswith("http://") else "",
        "access.key": access_key,
        "secret.key": settings.get("secret_key", ""),
        # The default provider chain reads AWS's environment variables first, which may belong to the lake's store.
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider" if access_key else "",
    }
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in options.items() if value}


def _cells(line: Column) -> Column:
    # The whole condition, although the right header is filtered out before: Spark may evaluate this first.
    other_header = line.startswith("ticker,") & (line != HEADER)
    message = F.concat(F.lit("A flat file has other columns than "), F.lit(HEADER), F.lit(": "), line)
    return F.when(other_header, F.raise_error(message).cast("array<string>")).otherwise(F.split(line, ","))


def _cell(position: int, kind: str) -> Column:
    cell = F.get("_cells", F.lit(position))
    if kind == "bigint":
        # A cast would truncate 12.5 to 12.
        return F.when(~cell.contains("."), cell.cast(kind))
    return F.when(cell != "", cell) if kind == "string" else cell.cast(kind)


def _lineage() -> list[Column]:
    return [
        F.col("_metadata.file_path").alias("source_file"),
        F.col("_metadata.file_modification_time").alias("file_modified_at"),
        # Not a literal: Spark would compile the code of every other day anew.
        F.substring("_metadata.file_name", 1, len("YYYY-MM-DD")).cast("date").alias("date"),
    ]


def _options(settings: Mapping[str, str]) -> dict[str, str]:
    path = settings["path"]
    return s3a_options(settings, path.removeprefix(_S3).partition("/")[0]) if path.startswith(_S3) else {}


def _spark_path(name: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", name)
    return "s3a://" + escaped.removeprefix(_S3) if name.startswith(_S3) else "file://" + escaped


def _path(context: SourceContext) -> str:
    path = context.settings.get("path", "")
    if not path:
        raise SourceError("sources.market.path is not set.", _PATH_HINT)
    return path


def _files(context: SourceContext, only: Sequence[str] = ()) -> dict[str, list[FlatFile]]:
    """The files of every day, or of some."""
    path = _path(context)
    names = _names_in_s3(context.store, path) if path.startswith(_S3) else _names_below(Path(path).expanduser())
    days = [(day, name) for name in names if (day := _day(name)) and (not only or day in only)]
    by_day: dict[str, list[FlatFile]] = {}
    for (day, _), file in zip(days, _stat_all([name for _, name in days], context.store), strict=True):
        if file:  # None if it was removed meanwhile
            by_day.setdefault(day, []).append(file)
    return by_day


def _names_below(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}.", _PATH_HINT)
    names: list[str] = []
    for parent, folders, files in os.walk(folder.absolute(), onerror=_cannot_be_read):
        folders[:] = [folder for folder in folders if not folder.startswith((".", "_"))]
        names += [os.path.join(parent, file) for file in files]
    return sorted(names)


def _cannot_be_read(exc: OSError) -> None:
    raise SourceError(f"{exc.filename} cannot be read: {exc.strerror}.", _PATH_HINT) from exc


def _names_in_s3(store: RemoteFiles | None, path: str) -> Sequence[str]:
    if store is None:
        raise SourceError(f"{path} cannot be read without an object store.", _PATH_HINT)
    return store.list(path, deep=True)


def _day(name: str) -> str:
    """The date at the start of a file's name, or an empty string."""
    match = _NAME.fullmatch(name.rpartition("/")[2])
    if not match:
        return ""
    try:
        return date.fromisoformat(match[1]).isoformat()
    except ValueError:
        return ""


def _stat_all(names: Sequence[str], store: RemoteFiles | None) -> list[FlatFile | None]:
    if store is None or not names or not names[0].startswith(_S3):
        return [_stat(name) for name in names]
    with ThreadPoolExecutor(_MAX_REQUESTS) as pool:
        remote = list(pool.map(store.stat, names))
    return [FlatFile(file.name, file.size, file.etag) if file else None for file in remote]


def _stat(name: str) -> FlatFile | None:
    try:
        stat = os.stat(name)
    except FileNotFoundError:
        return None
    return FlatFile(name, stat.st_size, str(stat.st_mtime_ns))


def _fingerprint(files: Sequence[FlatFile]) -> str:
    facts = "\n".join(f"{os.path.basename(file.name)} {file.size} {file.version}" for file in files)
    return hashlib.sha256(facts.encode()).hexdigest()[:16]
