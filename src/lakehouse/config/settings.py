"""Every setting of the lakehouse, typed and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.config.serve import ServeSettings
from lakehouse.config.stack import StackSettings
from lakehouse.core.setting import setting
from lakehouse.engines.spark.settings import SparkSettings
from lakehouse.engines.trino.settings import TrinoSettings
from lakehouse.events import EventSettings
from lakehouse.maintenance.policy import MaintenanceSettings
from lakehouse.storage.s3 import S3Settings

PROFILES = ("embedded", "sql", "rest", "stack", "hive")
ENGINES = ("auto", "duckdb", "spark", "trino")
CATALOGS = ("sql", "rest", "nessie", "hive")


@dataclass(frozen=True)
class QuerySettings:
    """`[query]` in lake.toml, `LAKE_QUERY__*` in the environment."""

    engine: str = setting(
        "auto", "Engine of queries: duckdb, spark, trino; auto: DuckDB where it can, else Spark.", choices=ENGINES
    )
    memory_limit: str = setting(
        "auto", "Memory that DuckDB uses before it spills, e.g. 8GB; auto: half of the machine's memory."
    )
    largest_scan: str = setting(
        "auto", "Tables larger than this (compressed) are read by Spark; auto: query.memory_limit."
    )


@dataclass(frozen=True)
class CatalogSettings:
    """`[catalog]` in lake.toml, `LAKE_CATALOG__*` in the environment."""

    kind: str = setting(
        "",
        "Kind of the catalog: sql, rest, nessie, hive or one of an installed package (default: from the profile).",
        choices=("", *CATALOGS),
        registry="lakehouse.catalogs",
    )
    uri: str = setting(
        "",
        "Address of the catalog, e.g. postgresql://user:password@host/db (default: from the profile).",
        hidden=True,
    )
    token: str = setting("", "Bearer token of a REST catalog (default: none).", secret=True)
    properties: Mapping[str, str] = setting(
        {},
        "More properties of a REST catalog (warehouse, credential, scope, …), under [catalog.properties] (default: none).",
        hidden=True,
    )


@dataclass(frozen=True)
class ShellSettings:
    """`[shell]` in lake.toml, `LAKE_SHELL__*` in the environment."""

    history: Path = setting(
        Path("~/.local/state/lakehouse/shell_history"), "File in which `lake shell` stores what was typed."
    )


@dataclass(frozen=True)
class RunSettings:
    """`[runs]` in lake.toml, `LAKE_RUNS__*` in the environment."""

    author: str = setting("", "Commit author (default: OS user).")
    keep_days: int = setting(30, "Days after which the branches and tags that runs left expire; 0: never.")


@dataclass(frozen=True)
class BranchSettings:
    """`[branches]` in lake.toml, `LAKE_BRANCHES__*` in the environment."""

    protected: tuple[str, ...] = setting((), "Branches that only checked runs may change, e.g. main (default: none).")


@dataclass(frozen=True)
class HookSettings:
    """`[hooks]` in lake.toml, `LAKE_HOOKS__*` in the environment."""

    before_publish: tuple[str, ...] = setting(
        (), "Command, or one module:function, that gets each publish as JSON and can refuse it (default: none)."
    )


@dataclass(frozen=True)
class Settings:
    """All settings of one lake, and the origin of each."""

    profile: str = setting(
        "embedded", "Which storage, catalog and engines to use: embedded, sql, rest, stack, hive.", choices=PROFILES
    )
    home: Path = setting(
        Path(".lake"), "Folder of the lake; relative to lake.toml if set there, else to the working folder."
    )
    shared: bool = setting(
        False, "Let the group of a new lake's folder read and write it; otherwise only its owner can."
    )
    cache: Path = setting(
        Path("~/.cache/lakehouse"), "Folder of downloaded jars and servers, and of Spark's class archives."
    )
    warehouse: str = setting(
        "", "Location of new tables, e.g. s3://bucket/warehouse (default: from the profile, else the lake's folder)."
    )
    maven_repo: str = setting("", "Address of a Maven repository to download jars from (default: Maven Central).")
    pipelines: tuple[str, ...] = setting(
        (), "Modules with your own pipelines, beside lake.toml or installed (default: none)."
    )
    dbt: Path = setting(
        Path("dbt"), "Folder of the lake's dbt project; without it, the taxi models of this package are used."
    )
    url: str = setting(
        "",
        "Address of a service, e.g. https://lake.example.com: commands use its lake (default: a lake of this machine).",
    )
    key: str = setting("", "API key or OIDC token for the service at url (default: none).", secret=True)
    allow_http: bool = setting(False, "Send the key to another machine without TLS, on a network that you trust.")
    auth: bool = setting(True, "Whether the service asks for a key; off is possible on loopback only.")
    spark: SparkSettings = field(default_factory=SparkSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    s3: S3Settings = field(default_factory=S3Settings)
    catalog: CatalogSettings = field(default_factory=CatalogSettings)
    trino: TrinoSettings = field(default_factory=TrinoSettings)
    stack: StackSettings = field(default_factory=StackSettings)
    runs: RunSettings = field(default_factory=RunSettings)
    branches: BranchSettings = field(default_factory=BranchSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    shell: ShellSettings = field(default_factory=ShellSettings)
    events: EventSettings = field(default_factory=EventSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    sources: Mapping[str, Mapping[str, str]] = setting(
        {}, "Settings of the pipelines' sources, under [sources.NAME]; `lake pipelines` lists them.", hidden=True
    )
    origins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})
