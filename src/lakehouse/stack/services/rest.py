"""Our own Iceberg REST catalog: over PostgreSQL, or over the catalog of an embedded lake."""

from __future__ import annotations

import json
from typing import Any

from lakehouse.config.profiles import EMBEDDED
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.files import file_uri
from lakehouse.process.daemons import module_command
from lakehouse.process.http_client import answers
from lakehouse.stack.model import Port, ProcessSpec, Service, StackContext, own_container
from lakehouse.storage import access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import S3Settings, is_remote


def _process(context: StackContext) -> ProcessSpec:
    settings = context.settings
    options = {
        **(_embedded(context) if settings.profile == EMBEDDED else _stack(context)),
        "tokens": [context.secrets.rest_token],
        "read_tokens": [context.secrets.rest_read_token],
        "protected": list(settings.branches.protected),
        "host": settings.stack.host,
        "port": settings.stack.rest_port,
        "author": settings.runs.author,
    }
    return ProcessSpec(tuple(module_command("lakehouse.rest_catalog")), input=json.dumps(options))


def _embedded(context: StackContext) -> dict[str, Any]:
    """The lake's own SQL catalog and warehouse."""
    settings, home = context.settings, LocalHome(context.home)
    if settings.catalog.kind not in ("", "sql"):
        raise NotSupportedError(
            f"The REST catalog serves a SQL catalog, and catalog.kind is {settings.catalog.kind}.",
            "Connect to that catalog directly.",
        )
    warehouse = settings.warehouse or file_uri(home.warehouse.absolute())
    return {
        "catalog": settings.catalog.uri or str(home.catalog_file.absolute()),
        "warehouse": warehouse,
        "files": dict(access.for_pyiceberg(settings.s3)) if is_remote(warehouse) else {},
    }


def _stack(context: StackContext) -> dict[str, Any]:
    endpoints = context.endpoints
    keys = S3Settings(endpoints.s3_endpoint, access_key=endpoints.s3_access_key, secret_key=endpoints.s3_secret_key)
    return {
        "catalog": endpoints.databases["lake"].url,
        "warehouse": context.settings.warehouse or endpoints.warehouse,
        "files": {**access.for_pyiceberg(keys), "s3.region": endpoints.s3_region, "s3.path-style-access": "true"},
    }


def _healthy(context: StackContext) -> bool:
    # 401: it runs and requires the token.
    return answers(f"http://{context.endpoints.host}:{context.settings.stack.rest_port}/v1/config", 401)


_CONTAINER = own_container(
    ("stack", "serve", "rest"),
    8181,
    "512m",
    LAKE_STACK__REST_TOKEN="${REST_TOKEN}",
    LAKE_STACK__REST_READ_TOKEN="${REST_READ_TOKEN}",
)

SERVICE = Service(
    name="rest",
    about="our Iceberg REST catalog over the lake's SQL catalog",
    version="ours",
    licence="Apache-2.0",
    memory_mb=65,
    needs=("storage", "postgres"),
    embedded_needs=(),
    ports=(Port("rest_port", "http://{host}:{port}", 8181),),
    process=_process,
    healthy=_healthy,
    container=_CONTAINER,
)
