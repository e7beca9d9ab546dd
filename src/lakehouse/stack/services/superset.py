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
from lakehouse.stack.superset.connections import duckdb_attach
from lakehouse.stack.superset.provision import provision_stack

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
        "LAKE_DUCKDB_ATTACH": duckdb_attach(context),
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


