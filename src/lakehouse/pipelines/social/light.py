"""The social tables without Spark: PostgreSQL to Arrow to one commit of PyIceberg, for tables that fit into memory.

It reads what the pipeline reads (`sources/postgres`), leaves the same rows, and keeps the same cursor in its snapshots,
so that the two may take turns on one table. Rules and checks belong to the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import NotInstalledError, RunConflictError, SourceError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as quoted
from lakehouse.pipelines.postgres import Column, PostgresSettings, Relation, view, wanted
from lakehouse.pipelines.social.source import SourceTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

#: Somebody else's commit in between means to compare again with what they left.
_TRIES = 3
#: With more keys than that it is cheaper to write a small table anew than to look for each of them.
_MOST_KEYS = 500


@dataclass(frozen=True)
class LightReport:
    """What a refresh did."""

    table: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    columns: tuple[str, ...] = ()
    """Columns that are new in the table."""
    snapshot: int | None = None
    """The newest snapshot now; that of before if nothing differed."""
    read: str = ""
    """Which rows were read."""


@dataclass(frozen=True)
class _Fetched:
    columns: Sequence[Column]
    rows: pa.Table
    present: pa.Table
    read: str
    notes: Mapping[str, str]


def refresh(catalog: Catalog, name: str, table: SourceTable, settings: Mapping[str, str]) -> LightReport:
    """Bring a table of the lake up to date with one of the database: one commit, or none if nothing differs."""
    try:
        from pyiceberg.exceptions import CommitFailedException
    except ImportError as exc:
        raise NotInstalledError("pyiceberg", "iceberg") from exc
    title, wants = TableName.parse(name), PostgresSettings.parse(settings)
    for _ in range(_TRIES):
        held = _loaded(catalog, title)
        fetched = _fetch(wants, table, _cursor(held) if held else "")
        held = held or _created(catalog, title, fetched, table.key)
        try:
            return _applied(held, title, fetched, table.key)
        except CommitFailedException:
            continue
    raise RunConflictError(
        f"Others changed {title} {_TRIES} times while it was brought up to date.",
        "Nothing was written. Try again when it is quieter.",
    )


# ---- the database ---------------------------------------------------------------------------------------------------


def _fetch(settings: PostgresSettings, table: SourceTable, cursor: str) -> _Fetched:
    with view(settings.address) as seen:
        relation = seen.relation(settings.schema, table.name, table.key, settings.updated_at)
        what = wanted(seen, relation, cursor, settings.overlap)
        rows = _arrow(relation.columns, seen.ask(relation.query(since=what.since)))
        keys = [relation.column(name) for name in table.key]
        present = (
            rows.select(list(table.key)) if what.since is None else _arrow(keys, seen.ask(relation.query(table.key)))
        )
    notes = {"lake.source": f"{settings.address}/{relation}", "lake.read": what.reason, "lake.pipeline": "social_light"}
    if what.cursor:
        notes["lake.cursor"] = what.cursor
    return _Fetched(relation.columns, _newest(rows, relation, table.key), present, what.reason, notes)


def _arrow(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(each, _arrow_type(column.kind)) for each, column in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in columns])


def _newest(rows: pa.Table, relation: Relation, key: Sequence[str]) -> pa.Table:
    """One row per key, as the pipeline does it: a source without a primary key may hold more."""
    order = f" ORDER BY {quoted(relation.changed)} DESC NULLS LAST" if relation.changed else ""
    by_key = ", ".join(quoted(each) for each in key)
    return _sql(f"FROM rows QUALIFY row_number() OVER (PARTITION BY {by_key}{order}) = 1", rows.schema, rows=rows)


# ---- the table ------------------------------------------------------------------------------------------------------


def _loaded(catalog: Catalog, title: TableName) -> Table | None:
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table((title.namespace, title.table))
    except NoSuchTableError:
        return None


def _created(catalog: Catalog, title: TableName, fetched: _Fetched, key: Sequence[str]) -> Table:
    catalog.create_namespace_if_not_exists(title.namespace)
    # PyIceberg cannot write version 3; and files are shared with branches, which one table alone does not know of.
    properties = {"format-version": "2", "gc.enabled": "false", "lake.key": ",".join(key)}
    identifier = (title.namespace, title.table)
    return catalog.create_table_if_not_exists(identifier, schema=fetched.rows.schema, properties=properties)


def _cursor(held: Table) -> str:
    """What the last snapshot that has one kept; snapshots that were rolled back do not count."""
    at = held.current_snapshot()
    while at is not None:
        noted = at.summary.additional_properties.get("lake.cursor") if at.summary else None
        if noted:
            return str(noted)
        at = held.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id else None
    return ""


def _applied(held: Table, title: TableName, fetched: _Fetched, key: Sequence[str]) -> LightReport:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.table.upsert_util import create_match_filter

    # PyIceberg would repeat a commit on top of what others wrote meanwhile, and rows that they inserted too would be
    # there twice. It reads this from the table it holds; the lake's own properties are not changed by it.
    properties = {**held.metadata.properties, "commit.retry.num-retries": "0"}
    held.metadata = held.metadata.model_copy(update={"properties": properties})
    now = held.scan().to_arrow()
    transaction = held.transaction()
    new_columns = _evolve(transaction, title, fetched.columns)
    schema = transaction.table_metadata.schema().as_arrow()
    now, rows = _as_the_table(now, schema), _as_the_table(fetched.rows, schema)
    changes = _compare(now, rows, _as_keys(fetched.present, schema), key)
    out = changes.replaced.num_rows + changes.gone.num_rows
    if out > _MOST_KEYS:
        transaction.overwrite(changes.whole(now, key), AlwaysTrue(), dict(fetched.notes))
    elif changes.changed.num_rows and out:
        dropped = create_match_filter(changes.keys_out(key), list(key))
        transaction.overwrite(changes.changed, dropped, dict(fetched.notes))
    elif changes.changed.num_rows:
        transaction.append(changes.changed, dict(fetched.notes))
    elif out:
        transaction.delete(create_match_filter(changes.keys_out(key), list(key)), dict(fetched.notes))
    if out or changes.changed.num_rows or new_columns:
        transaction.commit_transaction()
    current = held.current_snapshot()
    return LightReport(
        table=str(title),
        inserted=changes.changed.num_rows - changes.replaced.num_rows,
        updated=changes.replaced.num_rows,
        deleted=changes.gone.num_rows,
        columns=new_columns,
        snapshot=current.snapshot_id if current else None,
        read=fetched.read,
    )


def _evolve(transaction: Any, title: TableName, columns: Sequence[Column]) -> tuple[str, ...]:
    """Add the columns that the table lacks and widen types; the names of the new ones."""
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.schema import promote

    there = {field.name: field.field_type for field in transaction.table_metadata.schema().fields}
    new = tuple(column.name for column in columns if column.name not in there)
    with transaction.update_schema() as update:
        for column in columns:
            kind, held = _iceberg_type(column.kind), there.get(column.name)
            if held is None:
                update.add_column(column.name, kind)
            elif held != kind and not _promotes(kind, held, promote, ResolveError):
                if not _promotes(held, kind, promote, ResolveError):
                    raise SourceError(
                        f"{title}.{column.name} is a {held}, and the database has a {column.declared} there now.",
                        "Iceberg only widens types: rename the column in the database or in the table.",
                    )
                update.update_column(column.name, kind)
    return new


def _promotes(narrow: Any, wide: Any, promote: Any, refused: type[Exception]) -> bool:
    try:
        promote(narrow, wide)
    except refused:
        return False
    return True


# ---- comparing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Changes:
    changed: pa.Table
    """Rows that are new or different."""
    replaced: pa.Table
    """The keys of those that are different."""
    gone: pa.Table
    """The keys that the database has no longer."""

    def keys_out(self, key: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([self.replaced.select(list(key)), self.gone.select(list(key))])

    def whole(self, now: pa.Table, key: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        joined = ", ".join(quoted(each) for each in key)
        kept = _sql(f"FROM now ANTI JOIN out USING ({joined})", now.schema, now=now, out=self.keys_out(key))
        return pa.concat_tables([kept, self.changed])


def _compare(now: pa.Table, rows: pa.Table, present: pa.Table, key: Sequence[str]) -> _Changes:
    names = ", ".join(quoted(each) for each in key)
    keys = present.schema
    # EXCEPT holds two nulls, and two NaNs, to be the same.
    changed = _sql("FROM rows EXCEPT FROM now", rows.schema, rows=rows, now=now)
    replaced = _sql(f"SELECT {names} FROM changed INTERSECT SELECT {names} FROM now", keys, changed=changed, now=now)
    gone = _sql(f"SELECT {names} FROM now EXCEPT SELECT {names} FROM present", keys, now=now, present=present)
    return _Changes(changed, replaced, gone)


def _as_the_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in its order and with its types; what the rows lack is null."""
    import pyarrow as pa

    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _as_keys(present: pa.Table, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return present.cast(pa.schema([schema.field(name) for name in present.column_names]))


def _sql(query: str, schema: pa.Schema, **tables: pa.Table) -> pa.Table:
    import duckdb

    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for each, rows in tables.items():
            engine.register(each, rows)
        return engine.sql(query).to_arrow_table().cast(schema)


# ---- types ----------------------------------------------------------------------------------------------------------


def _arrow_type(kind: str) -> pa.DataType:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(_iceberg_type(kind))


def _iceberg_type(kind: str) -> Any:
    from pyiceberg import types as T

    if kind.startswith("decimal("):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return T.DecimalType(int(precision), int(scale))
    named = {
        "boolean": T.BooleanType,
        "int": T.IntegerType,
        "bigint": T.LongType,
        "float": T.FloatType,
        "double": T.DoubleType,
        "string": T.StringType,
        "binary": T.BinaryType,
        "date": T.DateType,
        "timestamp": T.TimestamptzType,
    }
    return named[kind]()
