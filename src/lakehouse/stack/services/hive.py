"""The Hive Metastore, for engines that know no other catalog: Iceberg and Hudi tables side by side."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from lakehouse.engines.spark.jars import EMBEDDED, S3A, Jar
from lakehouse.engines.spark.java import find_java
from lakehouse.stack.fetch import place
from lakehouse.stack.health import listens
from lakehouse.stack.jvm import hadoop_jars
from lakehouse.stack.model import Artefact, Container, Dist, Port, Process, Service, Site
from lakehouse.stack.process import run_once
from lakehouse.stack.services.ours import ENVIRONMENT, listening
from lakehouse.stack.services.postgres import query

#: 4.0 breaks the clients of Spark and Hudi.
DIST = Dist(
    Jar(
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
SLF4J = Jar(
    "org.slf4j", "slf4j-api", "1.7.36", "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0", 41_125
)
_POSTGRES = next(jar for jar in EMBEDDED if jar.name == "postgresql")
_OPENED = ("java.lang", "java.util", "java.net", "java.util.concurrent")
#: The table in which the metastore notes the version of its schema.
_HAS_SCHEMA = """SELECT to_regclass('public."VERSION"') IS NOT NULL"""


def _artefacts(site: Site) -> tuple[Artefact, ...]:
    return (DIST, SLF4J, _POSTGRES, *S3A)


def site_file(values: dict[str, str]) -> str:
    """metastore-site.xml."""
    lines = "".join(
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>\n" for name, value in values.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{lines}</configuration>\n'


def properties(site: Site) -> dict[str, str]:
    """What the metastore is told."""
    database, facts = site.facts.databases["hive"], site.facts
    hive = "org.apache.hadoop.hive.metastore"
    return {
        "metastore.thrift.uris": facts.hive_uri,
        "metastore.warehouse.dir": f"s3a://{facts.bucket}/hive",
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
        "fs.s3a.endpoint": facts.s3_endpoint,
        "fs.s3a.endpoint.region": facts.s3_region,
        "fs.s3a.access.key": facts.s3_access_key,
        "fs.s3a.secret.key": facts.s3_secret_key,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        # A table of its own that is renamed is moved by the metastore; s3proxy tells no ETag of the empty objects in it.
        "fs.s3a.change.detection.version.required": "false",
    }


def _class_path(site: Site) -> list[str]:
    ours = [place(site.settings, jar) for jar in (SLF4J, _POSTGRES, *S3A)]
    return [str(site.config("hive")), f"{place(site.settings, DIST)}/lib/*", *map(str, [*hadoop_jars(), *ours])]


def _options(site: Site) -> list[str]:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return [f"-Xmx{site.settings.stack.hive_memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened]


def _java(site: Site) -> str:
    return str(find_java(site.settings.spark.java_home).program)


def _prepare(site: Site) -> None:
    """Make the schema, once."""
    if query(site, site.facts.databases["hive"], _HAS_SCHEMA) == "t":
        return
    tool = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
    command = [_java(site), *_options(site), "-cp", os.pathsep.join(_class_path(site)), tool]
    command += ["-dbType", "postgres", "-initSchema"]
    environment = {"METASTORE_HOME": str(place(site.settings, DIST))}
    run_once("hive", Process(tuple(command), environment, _files(site)), site)


def _files(site: Site) -> dict[Path, str]:
    return {site.config("hive") / "metastore-site.xml": site_file(properties(site))}


def _process(site: Site) -> Process:
    told = {
        "java": _java(site),
        "class_path": _class_path(site),
        "options": _options(site),
        "host": site.settings.stack.host,
        "port": site.settings.stack.hive_port,
    }
    return Process(
        (sys.executable, "-m", "lakehouse.stack.hive_server"),
        environment={"PYTHONUNBUFFERED": "1"},
        files=_files(site),
        input=json.dumps(told),
    )


def _healthy(site: Site) -> bool:
    return listens(site.facts.host, site.settings.stack.hive_port)


def _container() -> Container:
    return Container(
        image="",
        build=True,
        command=("stack", "serve", "hive"),
        environment={**ENVIRONMENT, "LAKE_STACK__HIVE_PASSWORD": "${HIVE_PASSWORD}"},
        volumes={"lake": "/lake"},
        health=listening(9083),
        needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
        start_period_s=120,
        memory="1g",
    )


SERVICE = Service(
    name="hive",
    about="the Hive Metastore: Iceberg and Hudi side by side",
    version=DIST.archive.version,
    licence="Apache-2.0",
    memory_mb=240,
    needs=("storage", "postgres"),
    ports=(Port("hive_port", "thrift://{host}:{port}", 9083),),
    artefacts=_artefacts,
    prepare=_prepare,
    process=_process,
    healthy=_healthy,
    container=_container,
)
