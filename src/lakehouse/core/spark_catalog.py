"""An Iceberg catalog as Spark's settings have it: what is the same for every kind stands here once."""

from __future__ import annotations

from collections.abc import Mapping

#: Iceberg tries a commit 4 times by default, which 8 writers at once exhaust.
COMMIT_RETRIES = 30

_EVERY = {
    # Spark's cache would hide commits of PyIceberg and of other sessions.
    "cache-enabled": "false",
    # Version 2, because PyIceberg reads version 3 but cannot write it.
    "table-default.format-version": "2",
    "table-default.commit.retry.num-retries": str(COMMIT_RETRIES),
    "table-default.write.parquet.compression-codec": "zstd",
}


def spark_catalog(name: str, facts: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that sees a catalog under a name; `facts` are the kind's own, and go before the others."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in {**_EVERY, **facts}.items()},
    }
