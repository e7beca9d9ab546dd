"""The Hive Metastore, for engines that support no other catalog: Iceberg and Hudi tables side by side."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.sax.saxutils import escape

from lakehouse.core.clients import MavenArtifact
from lakehouse.engines.spark.jars import EMBEDDED, S3A
from lakehouse.engines.spark.java import find_java
from lakehouse.process.daemons import module_command
from lakehouse.process.sockets import accepts_connections
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.jvm import hadoop_jars
from lakehouse.stack.model import (
    Port,
    ProcessSpec,
    ServerArchive,
    Service,
    StackContext,
    own_container,
)
from lakehouse.stack.process import run_once
from lakehouse.stack.services.postgres import query

#: 4.0 breaks the clients of Spark and Hudi.
DIST = ServerArchive(
    MavenArtifact(
        "org.apache.hive",
        "hive-standalone-metastore",
        "3.1.3",
        "83ddf76717eeb789091d845c069a631c25cad561c3d31ec0843a1ddf21f29409",
        27_496_847,
        "bin",
        ext="tar.gz",
    ),
    size=60_000_000,
)
SLF4J = MavenArtifact(
    "org.slf4j", "slf4j-api", "1.7.36", "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0", 41_125
)
_POSTGRES = next(jar for jar in EMBEDDED if jar.name == "postgresql")
_OPENED = ("java.lang", "java.util", "java.net", "java.util.concurrent")
#: The table in which the metastore notes the version of its schema.
_HAS_SCHEMA = """SELECT to_regclass('public."VERSION"') IS NOT NULL"""


def site_file(values: dict[str, str]) -> str:
    """metastore-site.xml."""
    lines = "".join(
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>\n" for name, value in values.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{lines}</configuration>\n'


def properties(context: StackContext) -> dict[str, str]:
    """The settings of the metastore."""
    database, endpoints = context.endpoints.databases["hive"], context.endpoints
    hive = "org.apache.hadoop.hive.metastore"
    return {
        "metastore.thrift.uris": endpoints.hive_uri,
        "metastore.warehouse.dir": f"s3a://{endpoints.bucket}/hive",
        "javax.jdo.option.ConnectionURL": database.jdbc_url,
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": database.user,
        "javax.jdo.option.ConnectionPassword": database.password,
        "datanucleus.connectionPool.maxPoolSize": "3",
        "metastore.expression.proxy": f"{hive}.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": f"{hive}.events.EventCleanerTask",
        "metastore.event.db.notification.api.auth": "false",
        "metastore.disallow.incompatible.col.type.changes": "false",
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": endpoints.s3_endpoint,
        "fs.s3a.endpoint.region": endpoints.s3_region,
        "fs.s3a.access.key": endpoints.s3_access_key,
        "fs.s3a.secret.key": endpoints.s3_secret_key,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        # The metastore moves the folder of a managed table that is renamed; s3proxy has no ETag of the empty objects in it.
        "fs.s3a.change.detection.version.required": "false",
    }


def _class_path(context: StackContext) -> list[str]:
    ours = [artifact_path(context.settings, jar) for jar in (SLF4J, _POSTGRES, *S3A)]
    return [
        str(context.config("hive")),
        f"{artifact_path(context.settings, DIST)}/lib/*",
        *map(str, [*hadoop_jars(), *ours]),
    ]


def _options(context: StackContext) -> list[str]:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return [f"-Xmx{context.settings.stack.hive_memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened]


def _java(context: StackContext) -> str:
    return str(find_java(context.settings.spark.java_home).program)


def _prepare(context: StackContext) -> None:
    """Create the schema of the metastore, once."""
    if query(context, context.endpoints.databases["hive"], _HAS_SCHEMA) == "t":
        return
    tool = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
    command = [_java(context), *_options(context), "-cp", os.pathsep.join(_class_path(context)), tool]
    command += ["-dbType", "postgres", "-initSchema"]
    environment = {"METASTORE_HOME": str(artifact_path(context.settings, DIST))}
    run_once("hive", ProcessSpec(tuple(command), environment, _files(context)), context)


def _files(context: StackContext) -> dict[Path, str]:
    return {context.config("hive") / "metastore-site.xml": site_file(properties(context))}


def _process(context: StackContext) -> ProcessSpec:
    options = {
        "java": _java(context),
        "class_path": _class_path(context),
        "options": _options(context),
        "host": context.settings.stack.host,
        "port": context.settings.stack.hive_port,
    }
    return ProcessSpec(
        tuple(module_command("lakehouse.stack.hive_server")),
        environment={"PYTHONUNBUFFERED": "1"},
        files=_files(context),
        input=json.dumps(options),
    )


_CONTAINER = own_container(
    ("stack", "serve", "hive"), 9083, "1g", start_period_s=120, LAKE_STACK__HIVE_PASSWORD="${HIVE_PASSWORD}"
)

SERVICE = Service(
    name="hive",
    about="the Hive Metastore: Iceberg and Hudi side by side",
    version=DIST.archive.version,
    licence="Apache-2.0",
    memory_mb=240,
    needs=("storage", "postgres"),
    ports=(Port("hive_port", "thrift://{host}:{port}", 9083),),
    artifacts=lambda context: (DIST, SLF4J, _POSTGRES, *S3A),
    prepare=_prepare,
    process=_process,
    healthy=lambda context: accepts_connections(context.endpoints.host, context.settings.stack.hive_port),
    container=_CONTAINER,
)
