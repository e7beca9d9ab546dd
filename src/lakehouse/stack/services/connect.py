"""Spark Connect: the lake's Spark for other processes and machines, with its web UI."""

from __future__ import annotations

from lakehouse.config.load import dump_settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.engines.spark.jars import EMBEDDED, S3A
from lakehouse.process.daemons import module_command
from lakehouse.process.sockets import accepts_connections
from lakehouse.stack.model import (
    Port,
    ProcessSpec,
    Service,
    StackContext,
    own_container,
)

#: 3.5.7 serves clients of 3.5.9, and runs in its Spark.
JAR = MavenArtifact(
    "org.apache.spark",
    "spark-connect_2.12",
    "3.5.7",
    "15366e21273a874c760b51fa00743a2acb8fa78642cc35d7a076a3ade0c5eef6",
    14_147_901,
)


def _process(context: StackContext) -> ProcessSpec:
    return ProcessSpec(
        tuple(module_command("lakehouse.stack.connect_server")),
        input=dump_settings(context.settings),
        environment={"PYTHONUNBUFFERED": "1"},
    )


_CONTAINER = own_container(("stack", "serve", "connect"), 15002, "3g", start_period_s=120)

SERVICE = Service(
    name="connect",
    about="Spark Connect: the lake's Spark for other processes",
    version=f"3.5.9, connect {JAR.version}",
    licence="Apache-2.0",
    memory_mb=350,
    needs=("storage", "postgres"),
    ports=(Port("connect_port", "sc://{host}:{port}", 15002), Port("connect_ui_port", inside=4040)),
    artifacts=lambda context: (JAR, *EMBEDDED, *S3A),
    process=_process,
    healthy=lambda context: accepts_connections(context.endpoints.host, context.settings.stack.connect_port),
    start_timeout_s=180,
    container=_CONTAINER,
)
