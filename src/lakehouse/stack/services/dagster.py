"""Dagster over the lake's pipelines, in a container. Natively it is `lake dagster`."""

from __future__ import annotations

from lakehouse.stack.model import ENVIRONMENT, ContainerSpec, Port, Service, listening


def _container() -> ContainerSpec:
    return ContainerSpec(
        image="",
        build=True,
        command=("dagster", "--host", "0.0.0.0", "--port", "3000"),
        environment=ENVIRONMENT,
        volumes={"lake": "/lake"},
        health=listening(3000),
        needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
        start_period_s=90,
        memory="4g",
    )


SERVICE = Service(
    name="dagster",
    about="Dagster: lineage, partitions and schedules of the pipelines",
    version="1.13.27",
    licence="Apache-2.0",
    memory_mb=0,
    ports=(Port("dagster_port", "http://{host}:{port}", 3000),),
    container=_container,
)
