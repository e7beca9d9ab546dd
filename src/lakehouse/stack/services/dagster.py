"""Dagster over the lake's pipelines, in a container. Natively it is `lake dagster`."""

from __future__ import annotations

from lakehouse.stack.model import Port, Service, own_container

_CONTAINER = own_container(("dagster", "--host", "0.0.0.0", "--port", "3000"), 3000, "4g", start_period_s=90)

SERVICE = Service(
    name="dagster",
    about="Dagster: lineage, partitions and schedules of the pipelines",
    version="1.13.27",
    licence="Apache-2.0",
    memory_mb=0,
    ports=(Port("dagster_port", "http://{host}:{port}", 3000),),
    container=_CONTAINER,
)
