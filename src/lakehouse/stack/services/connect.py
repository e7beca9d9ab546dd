"""Spark Connect: the lake's Spark for other processes and machines, with its pages."""

from __future__ import annotations

import sys

from lakehouse.config.handover import to_text
from lakehouse.engines.spark.jars import EMBEDDED, S3A, Jar
from lakehouse.stack.health import listens
from lakehouse.stack.model import Artefact, Container, Port, Process, Service, Site
from lakehouse.stack.services.ours import ENVIRONMENT, listening

#: 3.5.7 serves clients of 3.5.9, and runs in its Spark.
JAR = Jar(
    "org.apache.spark",
    "spark-connect_2.12",
    "3.5.7",
    "15366e21273a874c760b51fa00743a2acb8fa78642cc35d7a076a3ade0c5eef6",
    14_147_901,
)


def _artefacts(site: Site) -> tuple[Artefact, ...]:
    return (JAR, *EMBEDDED, *S3A)


def _process(site: Site) -> Process:
    return Process(
        (sys.executable, "-m", "lakehouse.stack.connect_server"),
        input=to_text(site.settings),
        environment={"PYTHONUNBUFFERED": "1"},
    )


def _healthy(site: Site) -> bool:
    return listens(site.facts.host, site.settings.stack.connect_port)


def _container() -> Container:
    return Container(
        image="",
        build=True,
        command=("stack", "serve", "connect"),
        environment=ENVIRONMENT,
        volumes={"lake": "/lake"},
        health=listening(15002),
        needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
        start_period_s=120,
        memory="3g",
    )


SERVICE = Service(
    name="connect",
    about="Spark Connect: the lake's Spark for other processes",
    version=f"3.5.9, connect {JAR.version}",
    licence="Apache-2.0",
    memory_mb=350,
    needs=("storage", "postgres"),
    ports=(Port("connect_port", "sc://{host}:{port}", 15002), Port("connect_ui_port", inside=4040)),
    artefacts=_artefacts,
    process=_process,
    healthy=_healthy,
    start_timeout_s=180,
    container=_container,
)
