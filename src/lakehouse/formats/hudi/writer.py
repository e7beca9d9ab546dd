"""Options of Hudi's own writer, which can commit rows and a new schema at once; SQL cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.core.requests import WriteTarget
from lakehouse.core.tables import Column, TableInfo
from lakehouse.formats.hudi.spark import METASTORE_SETTINGS, SETTINGS
from lakehouse.formats.hudi.timeline import NOTES

#: The writer copies options with this prefix into the commit's metadata.
NOTES_SETTING = "hoodie.datasource.write.commitmeta.key.prefix"
_KEYS = "org.apache.hudi.keygen."
_KEY_GENERATORS = {
    "SIMPLE": f"{_KEYS}SimpleKeyGenerator",
    "COMPLEX": f"{_KEYS}ComplexKeyGenerator",
}
#: The properties of a table that determine the names of its partition folders.
_FOLDERS = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)


def noted(notes: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that add notes to a commit."""
    return {NOTES_SETTING: NOTES, **{f"{NOTES}{name}": value for name, value in notes.items()}}


def write_to(
    info: TableInfo, columns: Sequence[Column], operation: str, notes: Mapping[str, str], sync: bool = False
) -> WriteTarget:
    """Return a write after which the table has these columns, which the rows must have.

    Args:
        operation: `insert`, `upsert` or `insert_overwrite_table`.
        sync: update the schema in the session's metastore with the commit.
    """
    # The writer ignores a session's settings: without them it would delete the files that time travel needs.
    options = {
        **SETTINGS,
        **noted(notes),
        **_key_options(info),
        **(_sync_options(info) if sync else {}),
        "hoodie.table.name": info.properties["hoodie.table.name"],
        "hoodie.datasource.write.operation": operation,
    }
    comments = {column.name: column.comment for column in columns if column.comment}
    return WriteTarget("hudi", info.location, options, comments)


def _sync_options(info: TableInfo) -> dict[str, str]:
    """Return the options that SQL sets by itself in a session whose catalog is a metastore."""
    sync = "hoodie.datasource.hive_sync"
    return {
        **METASTORE_SETTINGS,
        f"{sync}.enable": "true",
        f"{sync}.mode": "hms",
        f"{sync}.database": info.name.namespace,
        f"{sync}.table": info.name.table,
        f"{sync}.partition_fields": ",".join(info.partitioning),
        f"{sync}.support_timestamp": "true",
    }


def _key_options(info: TableInfo) -> dict[str, str]:
    """Return the same keys and partition folders that SQL uses, so that both find each other's rows."""
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
