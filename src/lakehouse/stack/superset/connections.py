"""How Superset reaches the lake: DuckDB on the catalog's REST endpoint, and Trino."""

from __future__ import annotations

from pathlib import Path

from lakehouse.catalogs.rest import RestCatalog
from lakehouse.config.endpoints import StackEndpoints
from lakehouse.config.profiles import EMBEDDED
from lakehouse.config.settings import Settings
from lakehouse.core.names import CATALOG
from lakehouse.core.quoting import text
from lakehouse.lake.backend import Backend, open_backend
from lakehouse.process.http_client import answers
from lakehouse.stack.model import StackContext
from lakehouse.storage import access
from lakehouse.storage.s3 import S3Settings

#: Between two statements in one variable of the environment.
_SEPARATOR = ";\n"
_CONFIG = Path(__file__).with_name("superset_config.py")
_LAKE_PART, _FROM_ENVIRONMENT = "# ---- the lake", 'os.environ["LAKE_DUCKDB_STATEMENTS"].split(";\\n")'


def duckdb_statements(context: StackContext) -> str:
    """The statements with which a new DuckDB attaches the lake; empty if DuckDB has no client for its catalog."""
    limits = [
        f"SET memory_limit = {text(context.settings.stack.superset_memory)}",
        f"SET temp_directory = {text(str(context.folder('superset') / 'spill'))}",
    ]
    statements = attach_statements(open_backend(context.settings), context.endpoints)
    return _SEPARATOR.join([*limits, *statements]) if statements else ""


def container_statements(rest_uri: str, token: str, s3: S3Settings, warehouse: str) -> str:
    """The same in the network of the containers, whose catalog is ours."""
    attach = RestCatalog(rest_uri, token=token).duckdb_attach()
    limits = ["SET memory_limit = '1GB'", "SET temp_directory = '/superset/spill'"]
    return _SEPARATOR.join([*limits, *_locked_down(attach, access.for_duckdb(s3), warehouse)])


def config_for_others(backend: Backend, endpoints: StackEndpoints) -> str:
    """The part of superset_config.py that attaches the lake, for a Superset of one's own; empty if DuckDB has no client."""
    statements = attach_statements(backend, endpoints)
    if not statements:
        return ""
    shared = _CONFIG.read_text()
    shared = shared[shared.index(_LAKE_PART) :].partition("\n\n")[2]
    imports = (
        "import importlib.util\nimport threading\nfrom typing import Any\n\nfrom sqlalchemy import create_engine\n"
    )
    literal = "[\n" + "".join(f"    {statement!r},\n" for statement in statements) + "]"
    return f"{imports}\n{shared.replace(_FROM_ENVIRONMENT, literal)}"


def duckdb_packages() -> list[str]:
    """The packages with which Superset's Python reads the lake through DuckDB."""
    lines = _CONFIG.with_name("requirements.in").read_text().splitlines()
    return [line for line in lines if line.startswith("duckdb")]


def trino_address(settings: Settings) -> str:
    """The address of the lake's Trino for SQLAlchemy."""
    url, catalog = settings.trino.url, settings.trino.catalog or CATALOG
    host, port = settings.trino.address()[1:] if url else (settings.stack.host_of("trino"), settings.stack.trino_port)
    return (
        f"trino://{settings.trino.user}@{host}:{port}/{'rest' if settings.profile == EMBEDDED and not url else catalog}"
    )


def trino_answers(url: str) -> bool:
    """Whether Trino runs and has finished its start."""
    return answers(f"{url}/v1/info", containing='"starting":false')


def attach_statements(backend: Backend, endpoints: StackEndpoints) -> list[str]:
    """The statements with which a DuckDB of one's own attaches the lake for reading; none if it has no client for the catalog.

    Through our REST catalog, with the token that only reads, if that serves the lake."""
    catalog = backend.settings.catalog
    ours = catalog.kind in ("", "sql") or catalog.uri == endpoints.rest_uri
    client = RestCatalog(endpoints.rest_uri, token=endpoints.rest_read_token) if ours else backend.catalog
    attach = client.duckdb_attach()
    return _locked_down(attach, backend.duckdb_access, backend.warehouse) if attach else []


def _locked_down(attach: str, storage: str, warehouse: str) -> list[str]:
    """Attach the lake, then close DuckDB to all other files, to the network and to changes of these settings."""
    folder = warehouse.removeprefix("file://").rstrip("/") + "/"
    return [
        *([storage] if storage else []),
        attach,
        f"SET allowed_directories = [{text(folder)}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ]
