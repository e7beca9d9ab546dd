"""Nessie: a catalog with branches over all tables, on PostgreSQL or on files of its own."""

from __future__ import annotations

from lakehouse.core.clients import MavenArtifact
from lakehouse.core.quoting import java_properties
from lakehouse.process.http_client import answers
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import ContainerSpec, Port, ProcessSpec, Service, StackContext
from lakehouse.stack.services import java25

JAR = MavenArtifact(
    "org.projectnessie.nessie",
    "nessie-quarkus",
    "0.99.0",
    "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417",
    245_069_033,
    "runner",
)
_SECRET = "lake-secrets.s3"


def properties(bucket: str, endpoint: str, region: str) -> dict[str, str]:
    """The properties of Nessie natively and in a container; none of them is secret."""
    s3 = "nessie.catalog.service.s3.default-options"
    return {
        "nessie.server.authentication.enabled": "false",
        "quarkus.oidc.tenant-enabled": "false",
        "quarkus.otel.sdk.disabled": "true",
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": f"s3://{bucket}/warehouse",
        f"{s3}.endpoint": endpoint,
        f"{s3}.region": region,
        f"{s3}.path-style-access": "true",
        f"{s3}.request-signing-enabled": "false",
        f"{s3}.access-key": f"urn:nessie-secret:quarkus:{_SECRET}",
    }


def _process(context: StackContext) -> ProcessSpec:
    stack = context.settings.stack
    own = {
        "quarkus.http.host": stack.host,
        "quarkus.http.port": str(stack.nessie_port),
        "quarkus.management.host": stack.host,
        "quarkus.management.port": str(stack.nessie_management_port),
        **properties(stack.bucket, context.endpoints.s3_endpoint, stack.region),
        **_store(context),
    }
    database = context.endpoints.databases["nessie"]
    file = context.config("nessie") / "application.properties"
    secret = {
        f"{_SECRET}.name": context.endpoints.s3_access_key,
        f"{_SECRET}.secret": context.endpoints.s3_secret_key,
        "quarkus.datasource.postgresql.password": database.password,
    }
    return ProcessSpec(
        (
            java25.java(context),
            f"-Xmx{stack.nessie_memory}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dquarkus.config.locations={file}",
            "-jar",
            str(artifact_path(context.settings, JAR)),
        ),
        files={file: java_properties({**own, **secret})},
    )


def _store(context: StackContext) -> dict[str, str]:
    if context.settings.stack.nessie_store == "rocksdb":
        return {
            "nessie.version.store.type": "ROCKSDB",
            "nessie.version.store.persist.rocks.database-path": str(context.folder("nessie") / "rocksdb"),
        }
    database = context.endpoints.databases["nessie"]
    return {
        "nessie.version.store.type": "JDBC2",
        "nessie.version.store.persist.jdbc.datasource": "postgresql",
        "quarkus.datasource.postgresql.jdbc.url": database.jdbc_url,
        "quarkus.datasource.postgresql.username": database.user,
    }


def _healthy(context: StackContext) -> bool:
    stack = context.settings.stack
    ready = answers(f"http://{context.endpoints.host}:{stack.nessie_management_port}/q/health/ready", containing='"UP"')
    return ready and answers(f"{context.endpoints.nessie_uri}/config")


_CONTAINER = ContainerSpec(
    image="ghcr.io/projectnessie/nessie:0.99.0",
    environment={
        **properties("${BUCKET}", "http://storage:9000", "${S3_REGION}"),
        "nessie.version.store.type": "JDBC2",
        "nessie.version.store.persist.jdbc.datasource": "postgresql",
        "quarkus.datasource.postgresql.jdbc.url": "jdbc:postgresql://postgres:5432/nessie",
        "quarkus.datasource.postgresql.username": "nessie",
        "quarkus.datasource.postgresql.password": "${NESSIE_PASSWORD}",
        f"{_SECRET}.name": "${S3_ACCESS_KEY}",
        f"{_SECRET}.secret": "${S3_SECRET_KEY}",
        "JAVA_OPTS_APPEND": "-Xmx384m",
    },
    health=("CMD", "curl", "-fsS", "http://127.0.0.1:9000/q/health/ready"),
    needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
    memory="1g",
)

SERVICE = Service(
    name="nessie",
    about="Nessie: a catalog with branches over all tables",
    version=JAR.version,
    licence="Apache-2.0",
    memory_mb=290,
    needs=("storage", "postgres"),
    ports=(Port("nessie_port", "http://{host}:{port}/api/v2", 19120), Port("nessie_management_port", inside=9000)),
    artifacts=lambda context: (JAR, *java25.artifacts(context)),
    process=_process,
    healthy=_healthy,
    container=_CONTAINER,
)
