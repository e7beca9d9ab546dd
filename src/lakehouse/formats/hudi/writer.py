"""Hudi's own writer, for what SQL cannot do there: rows and a new schema in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.core.requests import WriteTarget
from lakehouse.core.tables import Column, TableInfo
from lakehouse.formats.hudi import REGISTERED_SETTINGS, SPARK_SETTINGS
from lakehouse.formats.hudi.timeline import NOTES

#: How the writer is told to put things in the commit's metadata.
NOTES_SETTING = "hoodie.datasource.write.commitmeta.key.prefix"
_KEYS = "org.apache.hudi.keygen."
_KEY_GENERATORS = {
    "SIMPLE": f"{_KEYS}SimpleKeyGenerator",
    "COMPLEX": f"{_KEYS}ComplexKeyGenerator",
}
#: Settings of a table that say what the folders of its partitions are called.
_FOLDERS = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)


def noted(notes: Mapping[str, str]) -> dict[str, str]:
    """Settings that make a commit carry notes."""
    return {NOTES_SETTING: NOTES, **{f"{NOTES}{name}": value for name, value in notes.items()}}


def write_to(
    info: TableInfo, columns: Sequence[Column], operation: str, notes: Mapping[str, str], sync: bool = False
) -> WriteTarget:
    """A write that leaves the table with these columns, which the rows must have.

    Args:
        operation: `insert`, `upsert` or `insert_overwrite_table`.
        sync: the metastore of the session is told of the new schema with the commit.
    """
    # The writer knows nothing of a session's settings: without them it would clean up what time travel needs.
    options = {
        **SPARK_SETTINGS,
        **noted(notes),
        **_keys(info),
        **(_synced(info) if sync else {}),
        "hoodie.table.name": info.properties["hoodie.table.name"],
        "hoodie.datasource.write.operation": operation,
    }
    comments = {column.name: column.comment for column in columns if column.comment}
    return WriteTarget("hudi", info.location, options, comments)


def _synced(info: TableInfo) -> dict[str, str]:
    """What SQL does by itself in a session whose catalog is a metastore."""
    sync = "hoodie.datasource.hive_sync"
    return {
        **REGISTERED_SETTINGS,
        f"{sync}.enable": "true",
        f"{sync}.mode": "hms",
        f"{sync}.database": info.name.namespace,
        f"{sync}.table": info.name.table,
        f"{sync}.partition_fields": ",".join(info.partitioning),
        f"{sync}.support_timestamp": "true",
    }


def _keys(info: TableInfo) -> dict[str, str]:
    """The same keys and partition folders that SQL makes, so that both find each other's rows."""
    options = {}
    if info.key:
        options["hoodie.datasource.write.recordkey.field"] = ",".join(info.key)
    if info.partitioning:
        types = {column.name: column.type for column in info.columns}
        generator = _KEY_GENERATORS.get(info.properties.get("hoodie.table.keygenerator.type", ""), "")
        options |= {
            "hoodie.datasource.write.partitionpath.field": ",".join(info.partitioning),
            "hoodie.datasource.write.keygenerator.class": "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
            "hoodie.sql.origin.keygen.class": generator or _KEY_GENERATORS["COMPLEX"],
            "hoodie.sql.partition.schema": ", ".join(f"`{name}` {types[name]}" for name in info.partitioning),
            **{name: info.properties[name] for name in _FOLDERS if name in info.properties},
        }
    return options
