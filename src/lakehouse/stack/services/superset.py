"""Superset for dashboards over Trino, in a container."""

from __future__ import annotations

from lakehouse.stack.model import ContainerSpec, Port, Service, listening

_IMAGE = "lakehouse-superset:6.1.0"
_ENVIRONMENT = {
    "SUPERSET_SECRET_KEY": "${SUPERSET_SECRET_KEY}",
    "SUPERSET_ADMIN_PASSWORD": "${SUPERSET_ADMIN_PASSWORD}",
}
_VOLUMES = {"superset": "/superset"}
_FOLDER = "superset"


_CONTAINER = ContainerSpec(
    image=_IMAGE,
    environment=_ENVIRONMENT,
    volumes=_VOLUMES,
    health=listening(8088),
    needs={"superset-init": "service_completed_successfully"},
    build_folder=_FOLDER,
    memory="1g",
)

_INIT_JOB = ContainerSpec(
    image=_IMAGE,
    entrypoint=("sh", "-c", "superset db upgrade && superset init && python /etc/superset/create_admin.py"),
    environment=_ENVIRONMENT,
    volumes=_VOLUMES,
    needs={"trino": "service_healthy"},
    build_folder=_FOLDER,
    once=True,
    memory="1g",
)

SERVICE = Service(
    name="superset",
    about="Superset: dashboards over Trino",
    version="6.1.0",
    licence="Apache-2.0",
    memory_mb=0,
    needs=("trino",),
    ports=(Port("superset_port", "http://{host}:{port}", 8088),),
    container=_CONTAINER,
    jobs={"superset-init": _INIT_JOB},
)
