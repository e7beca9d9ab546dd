"""Refresh the social tables without Spark: PostgreSQL to Arrow to one PyIceberg commit, for tables that fit in memory.

It shares the incremental read with the Spark pipeline (`pipelines/postgres`) and stores the same cursor in its snapshots,
so both can take turns on one table. The run applies the table's rules and checks (`runs/light.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.core.errors import NotInstalledError, RunConflictError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as quoted
from lakehouse.pipelines import arrow
from lakehouse.pipelines.model import LightContext
from lakehouse.pipelines.postgres import PostgresSettings, Relation, arrow_rows, fingerprint, open_snapshot, plan_read
from lakehouse.pipelines.social.source import SourceTable
from lakehouse.pipelines.upsert import Upsert, UpsertReport, create_table, find_table, last_cursor, upsert

if TYPE_CHECKING:
    import pyarrow as pa


def refresh(context: LightContext, name: str, table: SourceTable) -> UpsertReport:
    """Update a table of the lake from one of the database: one commit, or none if nothing differs."""
    try:
        from pyiceberg.exceptions import CommitFailedException
    except ImportError as exc:
        raise NotInstalledError("pyiceberg", "iceberg") from exc
    table_name, settings = TableName.parse(name), PostgresSettings.parse(context.settings)
    existing = find_table(context.catalog, table_name)
    batch = _fetch(context, settings, table, last_cursor(existing) if existing else "")
    target = existing or create_table(context.catalog, table_name, batch)
    try:
        return upsert(target, table_name, batch, context.duckdb)
    except CommitFailedException as exc:  # on the run's own branch: the run repeats itself when main has changed
        raise RunConflictError(
            f"Others changed {table_name} on the branch of this run.", "Nothing was published. Run it again."
        ) from exc


def _fetch(context: LightContext, settings: PostgresSettings, table: SourceTable, cursor: str) -> Upsert:
    with open_snapshot(settings.address) as snapshot:
        relation = snapshot.relation(settings.schema, table.name, table.key, settings.updated_at)
        plan = plan_read(snapshot, relation, cursor, settings.overlap)
        rows = arrow_rows(relation.columns, snapshot.fetch(relation.query(since=plan.since)))
        if plan.since is None:
            present = rows.select(list(table.key))
        else:
            keys = [relation.column(name) for name in table.key]
            present = arrow_rows(keys, snapshot.fetch(relation.query(table.key)))
        digest = fingerprint(snapshot, relation, table.key, plan.cursor, settings.overlap)
    notes = {**context.notes, "lake.source": f"{settings.address}/{relation}", "lake.read": plan.reason}
    notes["lake.fingerprint"] = digest
    if plan.cursor:
        notes["lake.cursor"] = plan.cursor
    types = {column.name: (column.kind, column.declared) for column in relation.columns}
    valid = context.validate(_newest(rows, relation, table.key))
    return Upsert(types, valid, present, table.key, plan.reason, notes)


def _newest(rows: pa.Table, relation: Relation, key: Sequence[str]) -> pa.Table:
    """The newest row of each key: a source without a primary key may have several."""
    order = f" ORDER BY {quoted(relation.updated_at)} DESC NULLS LAST" if relation.updated_at else ""
    by_key = ", ".join(quoted(column) for column in key)
    sql = f"FROM rows QUALIFY row_number() OVER (PARTITION BY {by_key}{order}) = 1"
    return arrow.query(sql, rows=rows).cast(rows.schema)
