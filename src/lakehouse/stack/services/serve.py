"""The REST service of the lake: SQL, tables, branches, pipelines and the Iceberg REST catalog behind keys."""

from __future__ import annotations

import json
from pathlib import Path

from lakehouse.config.load import dump_settings
from lakehouse.process.daemons import module_command
from lakehouse.process.http_client import answers
from lakehouse.process.sockets import accepts_connections
from lakehouse.stack.model import Port, ProcessSpec, Service, StackContext, own_container


def _process(context: StackContext) -> ProcessSpec:
    settings = context.settings
    message = {
        "settings": dump_settings(settings, sources=True),
        "origins": dict(settings.origins),
    }
    # In the working folder of `lake up`, where the modules of the user's pipelines are.
    return ProcessSpec(tuple(module_command("lakehouse.http")), input=json.dumps(message), folder=Path.cwd())


def _healthy(context: StackContext) -> bool:
    serve = context.settings.serve
    host = "127.0.0.1" if serve.host in ("0.0.0.0", "::") else serve.host
    if serve.tls_cert_file:
        return accepts_connections(host, serve.port)
    return answers(f"http://{f'[{host}]' if ':' in host else host}:{serve.port}/healthz")


# Compose publishes the port on loopback. With BIND set for other machines, a proxy with TLS belongs before it.
_CONTAINER = own_container(("serve", "--host", "0.0.0.0"), 8600, "6g", LAKE_SERVE__BEHIND_PROXY="true")

SERVICE = Service(
    name="serve",
    about="the REST service of the lake: SQL, tables, branches, pipelines, catalog",
    version="ours",
    licence="Apache-2.0",
    memory_mb=330,
    needs=("storage", "postgres"),
    embedded_needs=(),
    ports=(Port("serve.port", "http://{host}:{port}", 8600),),
    process=_process,
    healthy=_healthy,
    container=_CONTAINER,
)
