"""Superset: dashboards over the lake's tables, with DuckDB on our REST catalog and with Trino."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path

from lakehouse.process.files import write_private
from lakehouse.process.http_client import answers
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import (
    ENVIRONMENT,
    ContainerSpec,
    Port,
    ProcessSpec,
    PythonEnvironment,
    Service,
    StackContext,
    listening,
)
from lakehouse.stack.process import run_once
from lakehouse.stack.superset.connections import container_statements, duckdb_statements
from lakehouse.stack.superset.provision import provision_stack
from lakehouse.storage.s3 import S3Settings

_FILES = Path(__file__).parents[1] / "superset"
PACKAGES = PythonEnvironment("superset", "6.1.0", _FILES / "requirements.txt", size=1_000_000_000)
_CONFIG, _PREPARE = "superset_config.py", "prepare_database.py"
#: The file that says with what the database was prepared last.
_PREPARED = "prepared"


def _announce(context: StackContext, progress: Callable[[str], object]) -> None:
    if not artifact_path(context.settings, PACKAGES).is_dir():
        progress("Installing Superset into an environment of its own, once: some minutes and 1 GB")


def _python(context: StackContext) -> str:
    return str(artifact_path(context.settings, PACKAGES) / "bin" / "python")


def _environment(context: StackContext) -> dict[str, str]:
    return {
        "PYTHONPATH": "",  # its environment is its own
        "SUPERSET_CONFIG_PATH": str(context.config("superset") / _CONFIG),
        "SUPERSET_HOME": str(context.folder("superset")),
        "SUPERSET_SECRET_KEY": context.secrets.superset_secret_key,
        "LAKE_DUCKDB_STATEMENTS": duckdb_statements(context),
        "SCARF_ANALYTICS": "false",
    }


def _config_file(context: StackContext) -> dict[Path, str]:
    return {context.config("superset") / _CONFIG: (_FILES / _CONFIG).read_text()}


def _process(context: StackContext) -> ProcessSpec:
    stack = context.settings.stack
    server = ("-w", "1", "-k", "gthread", "--threads", "8", "--timeout", "150", "--no-control-socket")
    return ProcessSpec(
        (
            _python(context),
            "-m",
            "gunicorn",
            *server,
            "-b",
            f"{stack.host}:{stack.superset_port}",
            "superset.app:create_app()",
        ),
        environment=_environment(context),
        files=_config_file(context),
        prepared_with=_state(context),
    )


def _state(context: StackContext) -> str:
    """Changes when the database must be prepared again; does not reveal the password."""
    prepared_with = f"{PACKAGES.version} {context.secrets.superset_admin_password}"
    return hmac.digest(context.secrets.superset_secret_key.encode(), prepared_with.encode(), hashlib.sha256).hex()


def _prepare(context: StackContext) -> None:
    """Create or migrate the database of Superset, and set the password of admin, if either changed."""
    mark = context.folder("superset") / _PREPARED
    if mark.is_file() and mark.read_text() == _state(context):
        return
    script = context.config("superset") / _PREPARE
    spec = ProcessSpec(
        (_python(context), str(script)),
        environment={**_environment(context), "SUPERSET_ADMIN_PASSWORD": context.secrets.superset_admin_password},
        files={**_config_file(context), script: (_FILES / _PREPARE).read_text()},
    )
    run_once("superset", spec, context)
    write_private(mark, _state(context))


def _healthy(context: StackContext) -> bool:
    return answers(f"http://{context.endpoints.host}:{context.settings.stack.superset_port}/health", containing="OK")


_IMAGE = f"lakehouse-superset:{PACKAGES.version}"
_FOLDER = "superset"
_CONTAINER_ENVIRONMENT = {
    "SUPERSET_SECRET_KEY": "${SUPERSET_SECRET_KEY}",
    "LAKE_DUCKDB_STATEMENTS": container_statements(
        rest_uri="http://rest:8181",
        token="${REST_READ_TOKEN}",
        s3=S3Settings("http://storage:9000", "${S3_REGION}", "${S3_ACCESS_KEY}", "${S3_SECRET_KEY}"),
        warehouse="s3://${BUCKET}/warehouse",
    ),
}
_VOLUMES = {"superset": "/superset"}

_CONTAINER = ContainerSpec(
    image=_IMAGE,
    environment=_CONTAINER_ENVIRONMENT,
    volumes=_VOLUMES,
    health=listening(8088),
    needs={"rest": "service_healthy", "superset-init": "service_completed_successfully"},
    build_folder=_FOLDER,
    memory="2g",
)

_INIT_JOB = ContainerSpec(
    image=_IMAGE,
    entrypoint=("python", "/etc/superset/prepare_database.py"),
    environment={**_CONTAINER_ENVIRONMENT, "SUPERSET_ADMIN_PASSWORD": "${SUPERSET_ADMIN_PASSWORD}"},
    volumes=_VOLUMES,
    build_folder=_FOLDER,
    once=True,
    memory="1g",
)

# Not with the others: it needs tables, and `docker compose up --wait` takes a job that has ended for a failure.
_PROVISION_JOB = ContainerSpec(
    image="",
    build=True,
    entrypoint=(
        "python",
        "-m",
        "lakehouse.stack.superset.provision",
        "http://superset:8088",
        "http://trino:8080",
    ),
    environment={**ENVIRONMENT, "LAKE_STACK__SUPERSET_ADMIN_PASSWORD": "${SUPERSET_ADMIN_PASSWORD}"},
    volumes={"lake": "/lake"},
    once=True,
    on_request=True,
    memory="512m",
)

SERVICE = Service(
    name="superset",
    about="Superset: dashboards over the lake's tables",
    version=PACKAGES.version,
    licence="Apache-2.0",
    memory_mb=300,
    needs=("rest",),
    in_all=False,
    ports=(Port("superset_port", "http://{host}:{port}", 8088),),
    artifacts=lambda context: (PACKAGES,),
    build=_announce,
    prepare=_prepare,
    process=_process,
    healthy=_healthy,
    provision=provision_stack,
    start_timeout_s=300,
    container=_CONTAINER,
    jobs={"superset-init": _INIT_JOB, "superset-provision": _PROVISION_JOB},
)
