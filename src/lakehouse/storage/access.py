"""The access settings of an object store, in the format of each engine."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.core.quoting import text
from lakehouse.storage.s3 import S3Settings, address


def for_pyiceberg(s3: S3Settings) -> dict[str, str]:
    """PyIceberg's properties; also those of every client of an Iceberg REST catalog."""
    return _set(
        {
            "s3.endpoint": _url(s3),
            "s3.region": s3.region,
            "s3.access-key-id": s3.access_key,
            "s3.secret-access-key": s3.secret_key,
            "s3.force-virtual-addressing": "" if s3.path_style else "true",
        }
    )


def for_spark(s3: S3Settings) -> dict[str, str]:
    """Properties of an Iceberg catalog in Spark, below `spark.sql.catalog.NAME.`."""
    return _set(
        {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            # One pool for the whole JVM, in which every open file holds a connection: 50 are few for a large machine.
            "http-client.apache.max-connections": "200",
            "s3.endpoint": _url(s3),
            "s3.path-style-access": str(s3.path_style).lower(),
            "s3.access-key-id": s3.access_key,
            "s3.secret-access-key": s3.secret_key,
            "client.region": s3.region,
        }
    )


def for_hadoop(s3: S3Settings) -> dict[str, str]:
    """Spark's Hadoop settings for s3a://, which Hudi and plain files use; s3:// means the same."""
    scheme, host = address(s3.endpoint)
    settings = {
        "endpoint": host,
        "connection.ssl.enabled": str(scheme == "https").lower(),
        "path.style.access": str(s3.path_style).lower(),
        "access.key": s3.access_key,
        "secret.key": s3.secret_key,
        "endpoint.region": s3.region,
    }
    return {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in _set(settings).items()},
    }


def for_trino(s3: S3Settings) -> dict[str, str]:
    """Properties of a Trino catalog whose tables are in an object store."""
    return _set(
        {
            "fs.native-s3.enabled": "true",
            "s3.endpoint": _url(s3),
            "s3.region": s3.region,
            "s3.path-style-access": str(s3.path_style).lower(),
            "s3.aws-access-key": s3.access_key,
            "s3.aws-secret-key": s3.secret_key,
        }
    )


def for_object_store(s3: S3Settings) -> dict[str, str]:
    """Options of the Rust crate `object_store`, through which hudi-rs reads."""
    url = _url(s3)
    return _set(
        {
            "aws_endpoint": url,
            "aws_region": s3.region,
            "aws_access_key_id": s3.access_key,
            "aws_secret_access_key": s3.secret_key,
            "aws_allow_http": "true" if url.startswith("http://") else "",
            "aws_virtual_hosted_style_request": "" if s3.path_style else "true",
        }
    )


def for_duckdb(s3: S3Settings) -> str:
    """The statement that makes DuckDB's httpfs use these keys for every bucket."""
    scheme, host = address(s3.endpoint)
    options = {
        "KEY_ID": s3.access_key,
        "SECRET": s3.secret_key,
        "REGION": s3.region,
        "ENDPOINT": host,
        "URL_STYLE": "path" if s3.path_style and host else "",
        "USE_SSL": "" if scheme == "https" else "false",
    }
    listed = ", ".join(f"{name} {text(value)}" for name, value in _set(options).items())
    return f"CREATE SECRET lake (TYPE s3, {listed})"


def _url(s3: S3Settings) -> str:
    scheme, host = address(s3.endpoint)
    return f"{scheme}://{host}" if host else ""


def _set(values: Mapping[str, str]) -> dict[str, str]:
    """The values that are not empty: an engine would use an empty key as a key."""
    return {name: value for name, value in values.items() if value}
