"""Every setting of the lakehouse, typed and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.config.stack import StackSettings
from lakehouse.engines.spark.settings import SparkSettings
from lakehouse.engines.trino.settings import TrinoSettings
from lakehouse.storage.s3 import S3Settings

PROFILES = ("embedded", "sql", "rest", "stack", "hive")
ENGINES = ("auto", "duckdb", "spark", "trino")
CATALOGS = ("sql", "rest", "nessie", "hive")


@dataclass(frozen=True)
class QuerySettings:
    """`[query]` in lake.toml, `LAKE_QUERY__*` in the environment."""

    engine: str = field(default="auto", metadata={"help": "auto, duckdb, spark or trino", "choices": ENGINES})
    memory_limit: str = field(
        default="auto", metadata={"help": "what DuckDB may use, e.g. 8GB; auto: half of what the machine has"}
    )
    largest_scan: str = field(
        default="auto",
        metadata={"help": "tables larger than this (compressed) go to Spark; auto: as much as memory_limit"},
    )


@dataclass(frozen=True)
class CatalogSettings:
    """`[catalog]` in lake.toml, `LAKE_CATALOG__*` in the environment."""

    kind: str = field(
        default="",
        metadata={
            "help": "sql, rest, nessie, hive or a kind that an installed package registers; nothing: as the profile says",
            "choices": ("", *CATALOGS),
            "registry": "lakehouse.catalogs",
        },
    )
    uri: str = field(
        default="",
        repr=False,  # it may hold a password
        metadata={
            "help": "where the catalog is, e.g. postgresql://user:password@host/db; nothing: as the profile says"
        },
    )
    token: str = field(default="", repr=False, metadata={"help": "the bearer token of a REST catalog", "secret": True})


@dataclass(frozen=True)
class RunSettings:
    """`[runs]` in lake.toml, `LAKE_RUNS__*` in the environment."""

    author: str = field(default="", metadata={"help": "who is written down with commits; nothing: the system's user"})
    keep_days: int = field(
        default=30, metadata={"help": "days after which the branches and tags that runs left expire; 0: never"}
    )


@dataclass(frozen=True)
class BranchSettings:
    """`[branches]` in lake.toml, `LAKE_BRANCHES__*` in the environment."""

    protected: tuple[str, ...] = field(
        default=(), metadata={"help": "branches that only checked runs may change, e.g. main"}
    )


@dataclass(frozen=True)
class HookSettings:
    """`[hooks]` in lake.toml, `LAKE_HOOKS__*` in the environment."""

    before_publish: tuple[str, ...] = field(
        default=(),
        metadata={"help": "a command that gets what will be published as JSON, or one module:function; it may say no"},
    )


@dataclass(frozen=True)
class Settings:
    """All settings of one lake, and where each came from."""

    profile: str = field(default="embedded", metadata={"help": "which set of parts to use", "choices": PROFILES})
    home: Path = field(default=Path(".lake"), metadata={"help": "the folder where an embedded lake lives"})
    cache: Path = field(
        default=Path("~/.cache/lakehouse"), metadata={"help": "where jars and Spark's class archive are kept"}
    )
    warehouse: str = field(
        default="",
        metadata={"help": "where new tables go, e.g. s3://bucket/warehouse; nothing: as the profile says"},
    )
    maven_repo: str = field(
        default="", metadata={"help": "a Maven mirror to fetch jars from instead of the resolver's own default"}
    )
    pipelines: tuple[str, ...] = field(
        default=(), metadata={"help": "modules with pipelines of your own, found beside lake.toml or installed"}
    )
    dbt: Path = field(
        default=Path("dbt"),
        metadata={"help": "the folder of a dbt project; if there is none, the taxi models of this package"},
    )
    spark: SparkSettings = field(default_factory=SparkSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    s3: S3Settings = field(default_factory=S3Settings)
    catalog: CatalogSettings = field(default_factory=CatalogSettings)
    trino: TrinoSettings = field(default_factory=TrinoSettings)
    stack: StackSettings = field(default_factory=StackSettings)
    runs: RunSettings = field(default_factory=RunSettings)
    branches: BranchSettings = field(default_factory=BranchSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    sources: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict,
        repr=False,  # there may be passwords among them
        metadata={"help": "what pipelines read, under [sources.NAME]; which settings those are, each pipeline says"},
    )
    origins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})
