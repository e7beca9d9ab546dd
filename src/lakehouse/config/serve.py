"""The settings of the REST service: where it listens, its limits, and who may use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse.core.setting import setting


@dataclass(frozen=True)
class ServeSettings:
    """`[serve]` in lake.toml, `LAKE_SERVE__*` in the environment."""

    host: str = setting("127.0.0.1", "Address that the service listens on; beyond loopback it needs TLS or a proxy.")
    port: int = setting(8600, "Port of the service.")
    behind_proxy: bool = setting(False, "A proxy in front of the service does TLS, so it may listen beyond loopback.")
    tls_cert_file: str = setting("", "File of the TLS certificate chain, PEM (default: no TLS).")
    tls_key_file: str = setting("", "File of the TLS key, PEM (default: in the file of the certificate).")
    workers: int = setting(0, "Processes that run queries on DuckDB; 0: one per core, at least 2.")
    worker_memory: str = setting("1GB", "Memory of a query process: above it DuckDB spills, and far above it fails.")
    query_timeout: int = setting(300, "Seconds after which a statement is canceled.")
    max_rows: int = setting(10_000_000, "Maximum number of rows of a result, which is then marked as truncated.")
    cache: str = setting("64MB", "Memory for results of repeated queries on unchanged tables; 0: no cache.")
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
