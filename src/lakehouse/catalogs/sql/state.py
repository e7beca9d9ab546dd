"""Read and write everything that a SQL catalog holds, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakehouse.catalogs.sql import namespaces, refs
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.catalogs.sql.log import branch_name
from lakehouse.catalogs.sql.rows import TABLE, VIEW
from lakehouse.catalogs.sql.schema import DROPPED
from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Ref
from lakehouse.core.state import BranchState, CatalogState, DroppedTable, Namespaces, TableEntry, TagState

#: Rows that one statement inserts: each is a round trip to a server.
_BATCH = 50


def dump(db: Transaction) -> CatalogState:
    """Return everything that the catalog holds."""
    return CatalogState(
        main=_rows(db, CATALOG),
        namespaces=_namespaces(db, CATALOG),
        branches=tuple(_branch(db, ref) for ref in _branch_refs(db)),
        tags=tuple(TagState(ref, _tagged(db, ref.name)) for ref in refs.tags(db)),
        dropped=_dropped(db),
        log=_log(db),
    )


def _rows(db: Transaction, name: str) -> tuple[TableEntry, ...]:
    query = (
        "SELECT table_namespace, table_name, metadata_location, iceberg_type FROM iceberg_tables"
        " WHERE catalog_name = ? AND metadata_location IS NOT NULL ORDER BY 1, 2"
    )
    return _entries(db.execute(query, (name,)).fetchall())


def _entries(rows: Iterable[Sequence[str]]) -> tuple[TableEntry, ...]:
    return tuple(TableEntry(TableName(space, table), pointer, kind == VIEW) for space, table, pointer, kind in rows)


def _namespaces(db: Transaction, name: str) -> Namespaces:
    return {namespace: namespaces.properties(db, name, namespace) for namespace in sorted(namespaces.names(db, name))}


def _branch_refs(db: Transaction) -> list[Ref]:
    """Return all branches, also those that another program created as rows under a name of its own."""
    known = {ref.name: ref for ref in refs.branches(db)}
    for (name,) in db.execute("SELECT DISTINCT catalog_name FROM iceberg_tables").fetchall():
        if name not in (CATALOG, DROPPED):
            known.setdefault(name, Ref(name, MAIN, "", ""))
    return [known[name] for name in sorted(known)]


def _branch(db: Transaction, ref: Ref) -> BranchState:
    query = "SELECT namespace, table_name, metadata_location, '' FROM lake_branch_tables WHERE branch = ? ORDER BY 1, 2"
    base = _entries(db.execute(query, (ref.name,)).fetchall())
    return BranchState(ref, _rows(db, ref.name), base, _namespaces(db, ref.name))


def _tagged(db: Transaction, tag: str) -> tuple[TableEntry, ...]:
    query = (
        "SELECT namespace, table_name, metadata_location, iceberg_type FROM lake_tag_tables WHERE tag = ? ORDER BY 1, 2"
    )
    return _entries(db.execute(query, (tag,)).fetchall())


def _dropped(db: Transaction) -> tuple[DroppedTable, ...]:
    query = (
        "SELECT d.branch, d.namespace, d.table_name, t.metadata_location, d.dropped_at FROM lake_dropped d"
        " JOIN iceberg_tables t ON t.catalog_name = ? AND t.table_namespace = d.namespace"
        " AND t.table_name = d.table_name || '#' || CAST(d.id AS VARCHAR(20)) ORDER BY d.id"
    )
    return tuple(
        DroppedTable(branch_name(branch), TableEntry(TableName(space, table), pointer), at)
        for branch, space, table, pointer, at in db.execute(query, (DROPPED,)).fetchall()
    )


def _log(db: Transaction) -> tuple[LogEntry, ...]:
    changes: dict[int, list[Change]] = {}
    query = (
        "SELECT log_id, namespace, table_name, before_location, after_location FROM lake_log_tables ORDER BY 1, 2, 3"
    )
    for number, space, table, before, after in db.execute(query).fetchall():
        changes.setdefault(number, []).append(Change(TableName(space, table), before, after))
    query = "SELECT id, made_at, branch, kind, author, message, run, pipeline, source FROM lake_log ORDER BY id"
    return tuple(
        LogEntry(str(number), at, branch, Commit(*commit), tuple(changes.get(number, ())))
        for number, at, branch, *commit in db.execute(query).fetchall()
    )


#: Rows that refer to rows which do not exist: the query, and what its two columns are.
_STRAY = (
    (
        "SELECT DISTINCT catalog_name, '' FROM iceberg_tables WHERE catalog_name NOT IN (?, ?)"
        " AND catalog_name NOT IN (SELECT name FROM lake_branches)",
        "There are tables of {0}, which is no branch.",
        (CATALOG, DROPPED),
    ),
    (
        "SELECT DISTINCT branch, '' FROM lake_branch_tables WHERE branch NOT IN (SELECT name FROM lake_branches)",
        "There is a base of {0}, which is no branch.",
        (),
    ),
    (
        "SELECT DISTINCT tag, '' FROM lake_tag_tables WHERE tag NOT IN (SELECT name FROM lake_tags)",
        "There are tables of {0}, which is no tag.",
        (),
    ),
    (
        "SELECT DISTINCT log_id, '' FROM lake_log_tables WHERE log_id NOT IN (SELECT id FROM lake_log)",
        "There are tables of log entry {0}, which does not exist.",
        (),
    ),
    (
        "SELECT d.namespace, d.table_name FROM lake_dropped d LEFT JOIN iceberg_tables t ON t.catalog_name = ?"
        " AND t.table_namespace = d.namespace AND t.table_name = d.table_name || '#' || CAST(d.id AS VARCHAR(20))"
        " WHERE t.table_name IS NULL",
        "The dropped table {0}.{1} cannot be restored: its pointer is gone.",
        (DROPPED,),
    ),
    (
        "SELECT table_namespace, table_name FROM iceberg_tables WHERE metadata_location IS NULL",
        "{0}.{1} has no pointer.",
        (),
    ),
)


def problems(db: Transaction) -> list[str]:
    """Return the rows that refer to rows which do not exist."""
    return [text.format(*row) for query, text, values in _STRAY for row in db.execute(query, values).fetchall()]


# ---- write ------------------------------------------------------------------------------------------------------


def load(db: Transaction, state: CatalogState) -> int:
    """Fill an empty catalog and return the highest id of a log entry; an error, and no change, if it is not empty."""
    present = dump(db)
    if not present.is_empty:
        names = ", ".join(str(entry.table) for _, entry in list(present.entries())[:3]) or "a log"
        raise TableExistsError(
            f"The catalog is not empty: it holds {names}.", "Restore into a new lake, or into an empty database."
        )
    _insert_tables(db, CATALOG, state.main)
    _insert_namespaces(db, CATALOG, state.namespaces)
    for branch in state.branches:
        _insert_tables(db, branch.ref.name, branch.tables)
        _insert_namespaces(db, branch.ref.name, branch.namespaces)
        _insert_ref(db, "lake_branches", branch.ref)
        base = [(branch.ref.name, *_key(entry), entry.pointer) for entry in branch.base]
        _insert(db, "lake_branch_tables", base)
    for tag in state.tags:
        _insert_ref(db, "lake_tags", tag.ref)
        _insert(
            db, "lake_tag_tables", [(tag.ref.name, *_key(entry), entry.pointer, _kind(entry)) for entry in tag.tables]
        )
    for dropped in state.dropped:
        _insert_dropped(db, dropped)
    return _insert_log(db, state.log)


def _insert(db: Transaction, table: str, rows: Sequence[Sequence[object]]) -> None:
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        placeholders = ", ".join(["(" + ", ".join("?" * len(batch[0])) + ")"] * len(batch))
        db.execute(f"INSERT INTO {table} VALUES {placeholders}", [value for row in batch for value in row])


def _key(entry: TableEntry) -> tuple[str, str]:
    return entry.table.namespace, entry.table.table


def _kind(entry: TableEntry) -> str:
    return VIEW if entry.is_view else TABLE


def _insert_tables(db: Transaction, name: str, entries: Sequence[TableEntry]) -> None:
    _insert(db, "iceberg_tables", [(name, *_key(entry), entry.pointer, None, _kind(entry)) for entry in entries])


def _insert_namespaces(db: Transaction, name: str, spaces: Namespaces) -> None:
    rows = [
        (name, space, key, value)
        for space, properties in spaces.items()
        for key, value in {namespaces.MARKER: "true", **properties}.items()
    ]
    _insert(db, "iceberg_namespace_properties", rows)


def _insert_ref(db: Transaction, table: str, ref: Ref) -> None:
    _insert(db, table, [(ref.name, ref.created_from, ref.state, ref.created_at, ref.author, ref.message)])


def _insert_dropped(db: Transaction, dropped: DroppedTable) -> None:
    space, table = _key(dropped.entry)
    branch = CATALOG if dropped.branch == MAIN else dropped.branch
    number = db.execute(
        "INSERT INTO lake_dropped (namespace, table_name, dropped_at, branch) VALUES (?, ?, ?, ?) RETURNING id",
        (space, table, dropped.at, branch),
    ).fetchone()[0]
    _insert(db, "iceberg_tables", [(DROPPED, space, f"{table}#{number}", dropped.entry.pointer, None, TABLE)])


def _insert_log(db: Transaction, entries: Sequence[LogEntry]) -> int:
    """Insert entries under their ids, which the records of runs hold; ids of another catalog's log are numbered anew."""
    keep = all(entry.id.isdecimal() and len(entry.id) < 19 for entry in entries)
    numbers = [int(entry.id) if keep else index for index, entry in enumerate(entries, 1)]
    rows: list[Sequence[object]] = []
    changes: list[Sequence[object]] = []
    for number, entry in zip(numbers, entries, strict=True):
        done = entry.commit
        rows.append(
            (number, entry.at, done.kind, entry.branch, done.run, done.author, done.pipeline, done.source, done.message)
        )
        changes += [(number, *_key_of(change), change.before, change.after) for change in entry.tables]
    _insert(db, "lake_log", rows)
    _insert(db, "lake_log_tables", changes)
    return max(numbers, default=0)


def _key_of(change: Change) -> tuple[str, str]:
    return change.table.namespace, change.table.table
