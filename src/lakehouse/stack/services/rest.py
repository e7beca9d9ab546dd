"""Our own Iceberg REST catalog over the SQL catalog in PostgreSQL."""

from __future__ import annotations

import json
import sys

from lakehouse.process.probes import answers
from lakehouse.stack.model import ContainerSpec, Port, ProcessSpec, Service, StackContext
from lakehouse.stack.services.ours import ENVIRONMENT, listening


def _process(context: StackContext) -> ProcessSpec:
    endpoints, settings = context.endpoints, context.settings
    options = {
        "catalog": endpoints.databases["lake"].url,
        "warehouse": settings.warehouse or endpoints.warehouse,
        "files": {
            "s3.endpoint": endpoints.s3_endpoint,
            "s3.region": endpoints.s3_region,
            "s3.access-key-id": endpoints.s3_access_key,
            "s3.secret-access-key": endpoints.s3_secret_key,
            "s3.path-style-access": "true",
        },
        "tokens": [settings.catalog.token] if settings.catalog.token else [],
        "host": settings.stack.host,
        "port": settings.stack.rest_port,
    }
    return ProcessSpec((sys.executable, "-m", "lakehouse.rest_catalog"), input=json.dumps(options))


def _healthy(context: StackContext) -> bool:
    # 401: it runs and requires the token.
    return answers(f"http://{context.endpoints.host}:{context.settings.stack.rest_port}/v1/config", 200, 401)


def _container() -> ContainerSpec:
    return ContainerSpec(
        image="",
        build=True,
        command=("stack", "serve", "rest"),
        environment={**ENVIRONMENT, "LAKE_CATALOG__TOKEN": "${REST_TOKEN}"},
        health=listening(8181),
        needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
        volumes={"lake": "/lake"},
        memory="512m",
    )


SERVICE = Service(
    name="rest",
    about="our Iceberg REST catalog over PostgreSQL",
    version="ours",
    licence="Apache-2.0",
    memory_mb=65,
    needs=("storage", "postgres"),
    ports=(Port("rest_port", "http://{host}:{port}", 8181),),
    process=_process,
    healthy=_healthy,
    container=_container,
)
