"""Every setting of the lakehouse, typed and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.engines.spark.settings import SparkSettings
from lakehouse.storage.s3 import S3Settings

PROFILES = ("embedded",)
ENGINES = ("auto", "duckdb", "spark")


@dataclass(frozen=True)
class QuerySettings:
    """`[query]` in lake.toml, `LAKE_QUERY__*` in the environment."""

    engine: str = field(default="auto", metadata={"help": "auto, duckdb or spark", "choices": ENGINES})
    memory_limit: str = field(
        default="auto", metadata={"help": "what DuckDB may use, e.g. 8GB; auto: half of what the machine has"}
    )
    largest_scan: str = field(
        default="auto",
        metadata={"help": "tables larger than this (compressed) go to Spark; auto: as much as memory_limit"},
    )


@dataclass(frozen=True)
class Settings:
    """All settings of one lake, and where each came from."""

    profile: str = field(default="embedded", metadata={"help": "which set of parts to use", "choices": PROFILES})
    home: Path = field(default=Path(".lake"), metadata={"help": "the folder where an embedded lake lives"})
    cache: Path = field(
        default=Path("~/.cache/lakehouse"), metadata={"help": "where jars and Spark's class archive are kept"}
    )
    maven_repo: str = field(
        default="", metadata={"help": "a Maven mirror to fetch jars from instead of the resolver's own default"}
    )
    pipelines: tuple[str, ...] = field(
        default=(), metadata={"help": "modules with pipelines of your own, found beside lake.toml or installed"}
    )
    dbt: Path = field(default=Path("dbt"), metadata={"help": "the folder of a dbt project that belongs to the lake"})
    spark: SparkSettings = field(default_factory=SparkSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    s3: S3Settings = field(default_factory=S3Settings)
    sources: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict,
        repr=False,  # there may be passwords among them
        metadata={"help": "what pipelines read, under [sources.NAME]; which settings those are, each pipeline says"},
    )
    origins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})
