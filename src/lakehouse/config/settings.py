"""Every setting of the lakehouse, typed and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from lakehouse.agent import AgentSettings
from lakehouse.config.stack import StackSettings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.setting import setting
from lakehouse.engines.spark.settings import SparkSettings
from lakehouse.engines.trino.settings import TrinoSettings
from lakehouse.events import EventSettings
from lakehouse.maintenance.policy import MaintenanceSettings
from lakehouse.storage.s3 import S3Settings


@dataclass(frozen=True)
class QuerySettings:
    """`[query]` in lake.toml, `LAKE_QUERY__*` in the environment."""

    engine: str = setting(
        "auto",
        "Engine of queries: duckdb, spark, trino or one of an installed package; auto: DuckDB where it can, else Spark.",
        choices=("auto",),
        registry="lakehouse.engines",
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
        choices=("",),
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
        "More settings of the kind, e.g. warehouse, credential and scope of a REST catalog, under [catalog.properties].",
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
class ServeSettings:
    """`[serve]` in lake.toml, `LAKE_SERVE__*` in the environment."""

    host: str = setting("127.0.0.1", "Address that the service listens on; beyond loopback it needs TLS or a proxy.")
    port: int = setting(8600, "Port of the service.")
    behind_proxy: bool = setting(False, "A proxy in front of the service does TLS, so it may listen beyond loopback.")
    tls_cert_file: str = setting("", "File of the TLS certificate chain, PEM (default: no TLS).")
    tls_key_file: str = setting("", "File of the TLS key, PEM (default: in the file of the certificate).")
    workers: int = setting(
        0, "Processes that run queries on DuckDB, of one key at the same time; 0: one per core, at least 2."
    )
    worker_memory: str = setting("1GB", "Memory of a query process: above it DuckDB spills, and far above it fails.")
    query_timeout: int = setting(300, "Seconds after which a statement is canceled.")
    max_rows: int = setting(10_000_000, "Maximum number of rows of a result, which is then marked as truncated.")
    cache: str = setting("64MB", "Memory for results of repeated queries on unchanged tables; 0: no cache.")
    spool: str = setting(
        "10GB", "Disk for rows that clients have not taken yet, a quarter of it for one; beyond it, queries wait."
    )
    max_upload: str = setting("4GB", "Maximum size of an uploaded file, compressed and decompressed.")
    body_timeout: int = setting(30, "Seconds without a byte after which an upload is refused.")
    rate: int = setting(1200, "Requests per minute and key; 0: no limit.")
    concurrency: int = setting(32, "Concurrent requests per key; 0: no limit.")
    jobs: int = setting(2, "Ingests and runs at the same time; more of them wait.")
    roots: tuple[str, ...] = setting(
        (), "Folders and s3:// addresses that POST /ingest may read on the server (default: none)."
    )
    audit_size: str = setting("100MB", "Size at which the audit log is rotated; the last ten files are kept.")
    oidc_issuer: str = setting("", "Issuer of OIDC bearer tokens, e.g. https://id.example.com (default: none).")
    oidc_audience: str = setting("", "Audience that a token must name (default: lakehouse).")
    oidc_jwks: str = setting("", "Address of the issuer's keys (default: from the issuer's discovery document).")
    oidc_claim: str = setting("groups", "Claim of a token that lists the groups of its user.")
    oidc_groups: Mapping[str, str] = setting(
        {}, "Scope of each group: reader, writer, admin or agent, under [serve.oidc_groups] (default: none)."
    )


@dataclass(frozen=True)
class Settings:
    """All settings of one lake, and the origin of each.

    >>> settings = Settings(home=Path("other"), spark=SparkSettings(driver_memory="2g"))
    >>> with open_lake(settings=settings) as other:
    ...     other.table_names()
    []
    """

    profile: str = setting(
        "embedded",
        "Defaults of storage, catalog and engines: embedded, sql, rest, stack, hive or one of an installed package.",
        registry="lakehouse.profiles",
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
    formats: tuple[str, ...] = setting(
        ("iceberg", "hudi"),
        "Table formats of the lake: iceberg, hudi and those of installed packages.",
        registry="lakehouse.formats",
    )
    pipelines: tuple[str, ...] = setting(
        (), "Modules with your own pipelines, beside lake.toml or installed (default: none)."
    )
    dbt: Path = setting(
        Path("dbt"), "Folder of the lake's dbt project; without it, the taxi models of this package are used."
    )
    time_zone: str = setting("UTC", "Time zone of calendar days in questions, e.g. Europe/Rome.")
    semantics: str = setting(
        "", "File of the semantic layer, for questions (default: semantics.toml in the lake's folder)."
    )
    url: str = setting(
        "",
        "Address of a service, e.g. https://lake.example.com: commands use its lake (default: a lake of this machine).",
    )
    key: str = setting("", "API key or OIDC token for the service at url (default: none).", secret=True)
    allow_http: bool = setting(False, "Send the key to another machine without TLS, on a network that you trust.")
    # Longer than a statement may take by default, so that the service ends it and not the client.
    timeout_s: float = setting(330.0, "Seconds that the service at url may be silent before a command gives up.")
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
    agent: AgentSettings = field(default_factory=AgentSettings)
    sources: Mapping[str, Mapping[str, str]] = setting(
        {},
        "Settings of sources, of pipelines or of URL schemes, under [sources.NAME]; `lake pipelines` lists some.",
        hidden=True,
    )
    engines: Mapping[str, Mapping[str, str]] = setting(
        {}, "Settings of engines of installed packages, under [engines.NAME].", hidden=True
    )
    origins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})
