"""The files that containers mount or are built from, besides compose.yaml itself."""

from __future__ import annotations

from lakehouse.catalogs.sql.postgres import create_tables_sql
from lakehouse.config.endpoints import DATABASES, Database, StackEndpoints
from lakehouse.stack.trino import catalog_files, stack_catalogs, store_of

_DATABASES = """\
#!/bin/sh
# Written by `lake stack render`. Runs once, when the server's volume is empty: a database and a user for each.
set -eu
for name in {names}; do
  password=$(printenv "$(echo "$name" | tr a-z A-Z)_PASSWORD")
  psql -v ON_ERROR_STOP=1 -v name="$name" -v password="$password" -U "$POSTGRES_USER" -d postgres <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
done
# The catalog's tables, so that Trino can be asked before the lake was.
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d lake <<'SQL'
SET ROLE lake;
{tables};
SQL
"""

_JVM = """\
-server
-Xmx1g
-XX:+UseG1GC
-XX:+ExitOnOutOfMemoryError
-XX:ReservedCodeCacheSize=256M
-Djdk.attach.allowAttachSelf=true
"""

_SUPERSET = '''\
"""Superset's settings. The key comes from .env; its own database is a file in the volume."""

import os

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = "sqlite:////superset/superset.db?check_same_thread=false"
TALISMAN_ENABLED = False  # it would send browsers to https, which nothing here speaks
WTF_CSRF_ENABLED = True
FEATURE_FLAGS = {"DASHBOARD_RBAC": True}
'''

_ADMIN = '''\
"""Make Superset's first user, with the password from .env; one that is there is left alone."""

import os

from superset.app import create_app

application = create_app()
with application.app_context():
    users = application.appbuilder.sm
    if not users.find_user("admin"):
        role = users.find_role("Admin")
        password = os.environ["SUPERSET_ADMIN_PASSWORD"]
        users.add_user("admin", "Lake", "House", "admin@localhost", role, password=password)
'''

_SUPERSET_IMAGE = """\
# Written by `lake stack render`. Superset with Trino's driver, as somebody who is not root.
FROM docker.io/library/python:3.11-slim-bookworm
RUN pip install --no-cache-dir apache-superset==6.1.0 "flask-caching<2.4" cachetools rich trino gunicorn gevent \\
 && useradd --create-home --uid 10001 superset \\
 && mkdir /superset \\
 && chown superset:superset /superset
COPY superset_config.py make_admin.py /etc/superset/
ENV PYTHONPATH=/etc/superset SUPERSET_HOME=/superset FLASK_APP=superset.app:create_app()
USER superset
EXPOSE 8088
CMD ["gunicorn", "--bind", "0.0.0.0:8088", "--workers", "2", "--worker-class", "gthread", "--threads", "8", "superset.app:create_app()"]
"""


def mounted_files() -> dict[str, str]:
    """All of them, by their names in the folder."""
    endpoints = _container_endpoints()
    catalogs = catalog_files(stack_catalogs(endpoints, "${ENV:REST_TOKEN}"), store_of(endpoints))
    return {
        "postgres/databases.sh": _DATABASES.format(names=" ".join(DATABASES), tables=create_tables_sql()),
        "trino/jvm.config": _JVM,
        **{f"trino/catalog/{name}": text for name, text in catalogs.items()},
        "superset/superset_config.py": _SUPERSET,
        "superset/make_admin.py": _ADMIN,
        "superset/Dockerfile": _SUPERSET_IMAGE,
    }


def _container_endpoints() -> StackEndpoints:
    """The stack as a container sees it; what is secret is Trino's to look up in its environment."""
    return StackEndpoints(
        host="trino",
        s3_endpoint="http://storage:9000",
        s3_region="${ENV:S3_REGION}",
        bucket="${ENV:BUCKET}",
        s3_access_key="${ENV:S3_ACCESS_KEY}",
        s3_secret_key="${ENV:S3_SECRET_KEY}",
        databases={
            name: Database("postgres", 5432, name, name, f"${{ENV:{name.upper()}_PASSWORD}}") for name in DATABASES
        },
        nessie_uri="http://nessie:19120/api/v2",
        nessie_iceberg_uri="http://nessie:19120/iceberg",
        rest_uri="http://rest:8181",
        hive_uri="thrift://hive:9083",
        trino_url="http://trino:8080",
        connect_url="sc://connect:15002",
    )
