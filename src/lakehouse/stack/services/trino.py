"""Trino: one SQL over every catalog of the stack and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.quoting import java_properties
from lakehouse.lake.backend import open_backend
from lakehouse.process.http_client import HttpRequest, NoAnswerError, answers, send
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import ContainerSpec, Port, ProcessSpec, ServerArchive, Service, StackContext
from lakehouse.stack.services import java25
from lakehouse.stack.trino import (
    access_control,
    access_rules,
    catalog_files,
    hard_drops,
    lake_catalogs,
    stack_catalogs,
)

#: Maximum number of result pages to read while the statement is queued and runs.
_MAX_PAGES = 100
_PAGE_TIMEOUT_S = 5.0
#: postgresql does not load without geospatial.
PLUGINS = ("iceberg", "hive", "hudi", "postgresql", "geospatial", "memory", "tpch")
DIST = ServerArchive(
    MavenArtifact(
        "io.trino",
        "trino-server",
        "476",
        "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
        821_045_832,
        ext="tar.gz",
    ),
    size=520_000_000,
    keep=("lib", "bin", "NOTICE", "README.txt", *(f"plugin/{name}" for name in PLUGINS)),
)


def _process(context: StackContext) -> ProcessSpec:
    stack, etc, server = context.settings.stack, context.config("trino"), artifact_path(context.settings, DIST)
    node = {
        "node.environment": "lake",
        "node.id": "lake",
        "node.bind-ip": stack.host,
        "node.internal-address": context.endpoints.host,
        "plugin.dir": str(server / "plugin"),
    }
    config = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(stack.trino_port),
        "discovery.uri": context.endpoints.trino_url,
        "catalog.config-dir": str(etc / "catalog"),
        "access-control.config-files": str(etc / "access-control.properties"),
        "web-ui.preview.enabled": "false",
    }
    catalogs = _catalogs(context)
    return ProcessSpec(
        (
            java25.java(context),
            f"-Xmx{stack.trino_memory}",
            "-XX:+UseG1GC",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:ReservedCodeCacheSize=256M",
            "-Djdk.attach.allowAttachSelf=true",
            "-cp",
            f"{server}/lib/*",
            f"-Dconfig={etc / 'config.properties'}",
            f"-Dnode.config={etc / 'node.properties'}",
            f"-Dlog.levels-file={etc / 'log.properties'}",
            "io.trino.server.TrinoServer",
        ),
        files={
            etc / "node.properties": java_properties(node),
            etc / "config.properties": java_properties({**node, **config}),
            etc / "log.properties": "io.trino=INFO\n",
            etc / "access-control.properties": access_control(str(etc / "rules.json")),
            etc / "rules.json": access_rules([] if stack.trino_ownership else hard_drops(catalogs)),
            **{etc / "catalog" / name: text for name, text in catalog_files(catalogs, context.endpoints.s3).items()},
        },
        folder=context.folder("trino"),
    )


def _catalogs(context: StackContext) -> dict[str, Mapping[str, str]]:
    """The lake's own catalog and branches, if Trino has a client for it, beside those of the stack's servers."""
    backend = open_backend(context.settings)
    try:
        own = lake_catalogs(backend.catalog, backend.settings, context.endpoints)
    except NotSupportedError:
        own = {}
    return {**stack_catalogs(context.endpoints), **own}


def _healthy(context: StackContext) -> bool:
    url = context.endpoints.trino_url
    return answers(f"{url}/v1/info", containing='"starting":false') and _runs_a_statement(url)


def _runs_a_statement(url: str) -> bool:
    """Whether a statement succeeds: for a moment after its start, Trino has no node to run one on."""
    statement = b"select count(*) from tpch.tiny.region"
    request = HttpRequest(
        f"{url}/v1/statement", "POST", statement, {"X-Trino-User": "lake"}, _PAGE_TIMEOUT_S, proxies=False
    )
    for _ in range(_MAX_PAGES):
        try:
            response = send(request)
            page = response.json()
        except (NoAnswerError, ValueError):
            return False
        if "nextUri" not in page:
            return response.status == HTTPStatus.OK and "error" not in page
        request = replace(request, url=page["nextUri"], method="GET", body=None)
    return False


_CONTAINER = ContainerSpec(
    image="docker.io/trinodb/trino:476",
    environment={
        "S3_ACCESS_KEY": "${S3_ACCESS_KEY}",
        "S3_SECRET_KEY": "${S3_SECRET_KEY}",
        "OLTP_PASSWORD": "${OLTP_PASSWORD}",
        "REST_TOKEN": "${REST_TOKEN}",
        "BUCKET": "${BUCKET}",
        "S3_REGION": "${S3_REGION}",
    },
    volumes={
        f"./trino/{name}": f"/etc/trino/{name}"
        for name in ("catalog", "jvm.config", "access-control.properties", "rules.json")
    },
    health=("CMD", "/usr/lib/trino/bin/health-check"),
    needs={"rest": "service_healthy"},
    memory="3g",
)

SERVICE = Service(
    name="trino",
    about="Trino: one SQL over every catalog and PostgreSQL",
    version=DIST.archive.version,
    licence="Apache-2.0",
    memory_mb=600,
    needs=("storage", "postgres", "rest"),
    ports=(Port("trino_port", "http://{host}:{port}", 8080),),
    artifacts=lambda context: (DIST, *java25.artifacts(context)),
    process=_process,
    healthy=_healthy,
    start_timeout_s=480,  # about 40 s; on two busy cores it took more than 240
    container=_CONTAINER,
)
