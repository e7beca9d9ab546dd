"""The configuration that Superset reads at its start, natively and in a container. Secrets and addresses come from its environment."""

from __future__ import annotations

import importlib.util
import os
import threading
from datetime import timedelta
from typing import Any

from sqlalchemy import create_engine

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{os.environ['SUPERSET_HOME']}/superset.db?check_same_thread=false"

# ---- the browser ------------------------------------------------------------------------------------------------

#: Everything comes from Superset itself. Its pages would otherwise load a picture from a host that counts installations, and maps.
TALISMAN_ENABLED = True
TALISMAN_CONFIG = {
    "content_security_policy": {
        "base-uri": ["'self'"],
        "default-src": ["'self'"],
        "connect-src": ["'self'"],
        "font-src": ["'self'", "data:"],
        "frame-ancestors": ["'none'"],
        "img-src": ["'self'", "blob:", "data:"],
        "object-src": "'none'",
        "script-src": ["'self'", "'strict-dynamic'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "worker-src": ["'self'", "blob:"],
    },
    "content_security_policy_nonce_in": ["script-src"],
    "force_https": False,  # it listens on loopback, without TLS
    "session_cookie_secure": False,
}
CONTENT_SECURITY_POLICY_WARNING = False
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "lakehouse_superset"  # other programs on this host have sessions too
PERMANENT_SESSION_LIFETIME = timedelta(hours=12)
WTF_CSRF_ENABLED = True
RATELIMIT_ENABLED = True  # five attempts to sign in per second
RATELIMIT_APPLICATION = "500 per second"
GUEST_TOKEN_JWT_SECRET = GLOBAL_ASYNC_QUERIES_JWT_SECRET = SECRET_KEY  # Superset has public defaults for both
PUBLIC_ROLE_LIKE = None
AUTH_USER_REGISTRATION = False

# ---- queries ----------------------------------------------------------------------------------------------------

#: Queries run in the server itself: there is no queue, so a slow one ends before the browser stops waiting.
SUPERSET_WEBSERVER_TIMEOUT = 120
SQLLAB_TIMEOUT = 110
ROW_LIMIT = 10_000
SQL_MAX_ROW = 100_000
PREVENT_UNSAFE_DB_CONNECTIONS = True
#: A chart shows what the table holds now. Superset would otherwise keep results for a day where a cache is configured.
CACHE_DEFAULT_TIMEOUT = 60
FEATURE_FLAGS = {"DASHBOARD_RBAC": True, "ENABLE_TEMPLATE_PROCESSING": False}


# ---- the lake: also printed by `lake connect superset` -----------------------------------------------------------

_STATEMENTS = os.environ["LAKE_DUCKDB_STATEMENTS"].split(";\n")
#: The DuckDB that all connections to this address share.
_LAKE = ":memory:lakehouse"
_OPENING = threading.Lock()
_opened: list[Any] = []


def DB_CONNECTION_MUTATOR(uri: Any, params: dict[str, Any], *context: Any) -> tuple[Any, dict[str, Any]]:
    """Attach the lake to its DuckDB before the first connection is made.

    Loading the extensions takes far longer than most queries, so that this DuckDB is shared and stays open.
    """
    if uri.database == _LAKE:
        with _OPENING:
            if not _opened:
                connection = create_engine(uri, **params).raw_connection()
                _prepare(connection.cursor())
                _opened.append(connection)
    return uri, params


def _prepare(cursor: Any) -> None:
    import duckdb

    for name in ("avro", "httpfs", "iceberg"):  # from the wheels, so that it works offline; avro first
        (folder,) = importlib.util.find_spec(f"duckdb_extension_{name}").submodule_search_locations  # type: ignore[union-attr, misc]
        cursor.execute(f"LOAD '{folder}/extensions/v{duckdb.__version__}/{name}.duckdb_extension'")
    for statement in _STATEMENTS:
        cursor.execute(statement)
