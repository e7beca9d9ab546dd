"""Branches and tags. A branch is a copy of the pointers under another catalog name; a tag is a copy that never changes."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.catalogs.sql import drops, log, namespaces, rows
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.catalogs.sql.schema import DROPPED
from lakehouse.core.errors import BadNameError, BranchExistsError, NoSuchBranchError
from lakehouse.core.names import CATALOG, MAIN, TableName, check_part, nearest
from lakehouse.core.refs import DISCARDED, Change, Commit, ReachableFile, Ref, hash_pointers

#: Names that have another meaning in Spark or in the catalog's own tables.
_RESERVED = (CATALOG, MAIN, DROPPED, "spark_catalog")


def branches(db: Transaction) -> list[Ref]:
    """Return all branches except main, sorted by name."""
    return _refs(db, "lake_branches")


def tags(db: Transaction) -> list[Ref]:
    """Return all tags, sorted by name."""
    return _refs(db, "lake_tags")


def _refs(db: Transaction, table: str) -> list[Ref]:
    query = f"SELECT name, made_from, state, made_at, author, message FROM {table} ORDER BY 1"
    return [Ref(*row) for row in db.execute(query).fetchall()]


def create_branch(db: Transaction, name: str, source: str, tables: Sequence[TableName] | None, commit: Commit) -> None:
    """Create a branch from another catalog name or a tag: of all tables, or of some."""
    _check_new(db, name)
    kind = _kind_of(db, source)
    if kind == "tag":
        db.execute(
            "INSERT INTO iceberg_tables SELECT ?, namespace, table_name, metadata_location, NULL, iceberg_type"
            " FROM lake_tag_tables WHERE tag = ?",
            (name, source),
        )
    elif tables is None:
        db.execute(f"INSERT INTO iceberg_tables {rows.COPY} WHERE catalog_name = ?", (name, source))
    else:
        for table in tables:
            key = (source, table.namespace, table.table)
            db.execute(f"INSERT INTO iceberg_tables {rows.COPY} WHERE {rows.KEY}", (name, *key))
            namespaces.ensure(db, name, table.namespace)
    _copy_namespaces(db, name, CATALOG if kind == "tag" else source, every=tables is None)
    _store_base(db, name, source, of_branch=kind == "branch" and tables is None)
    state = hash_pointers(rows.pointers(db, name))
    values = (name, log.branch_name(source), state, log.now(), commit.author, commit.message)
    db.execute("INSERT INTO lake_branches VALUES (?, ?, ?, ?, ?, ?)", values)


def _copy_namespaces(db: Transaction, name: str, source: str, every: bool) -> None:
    if every:
        db.execute(
            "INSERT INTO iceberg_namespace_properties SELECT ?, namespace, property_key, property_value"
            " FROM iceberg_namespace_properties WHERE catalog_name = ?",
            (name, source),
        )
    for table in rows.pointers(db, name):
        namespaces.ensure(db, name, table.namespace)


def _store_base(db: Transaction, name: str, source: str, of_branch: bool) -> None:
    """Store the pointers that the branch starts from. A branch of a branch keeps its base, and so its changes."""
    if of_branch:
        db.execute(
            "INSERT INTO lake_branch_tables SELECT ?, namespace, table_name, metadata_location"
            " FROM lake_branch_tables WHERE branch = ?",
            (name, source),
        )
        return
    # From the copies: between two statements others may have moved the originals.
    db.execute(
        "INSERT INTO lake_branch_tables SELECT catalog_name, table_namespace, table_name, metadata_location"
        " FROM iceberg_tables WHERE catalog_name = ?",
        (name,),
    )


def create_tag(db: Transaction, name: str, source: str, commit: Commit) -> None:
    """Create a tag from a catalog name or another tag."""
    _check_new(db, name)
    if _kind_of(db, source) == "tag":
        db.execute(
            "INSERT INTO lake_tag_tables SELECT ?, namespace, table_name, metadata_location, iceberg_type"
            " FROM lake_tag_tables WHERE tag = ?",
            (name, source),
        )
    else:
        db.execute(
            "INSERT INTO lake_tag_tables SELECT ?, table_namespace, table_name, metadata_location, iceberg_type"
            " FROM iceberg_tables WHERE catalog_name = ?",
            (name, source),
        )
    state = hash_pointers(tag_pointers(db, name))
    values = (name, log.branch_name(source), state, log.now(), commit.author, commit.message)
    db.execute("INSERT INTO lake_tags VALUES (?, ?, ?, ?, ?, ?)", values)


def tag_pointers(db: Transaction, tag: str) -> dict[TableName, str]:
    """Return the pointers that a tag holds."""
    query = "SELECT namespace, table_name, metadata_location FROM lake_tag_tables WHERE tag = ?"
    return {TableName(space, table): location for space, table, location in db.execute(query, (tag,)).fetchall()}


def drop_branch(db: Transaction, name: str) -> bool:
    """Delete a branch; False if there is none."""
    # First, because the rows below are keyed by a name that may be main's own.
    if db.execute("DELETE FROM lake_branches WHERE name = ?", (name,)).rowcount != 1:
        return False
    _log_discarded(db, name)
    db.execute("DELETE FROM iceberg_tables WHERE catalog_name = ?", (name,))
    db.execute("DELETE FROM iceberg_namespace_properties WHERE catalog_name = ?", (name,))
    db.execute("DELETE FROM lake_branch_tables WHERE branch = ?", (name,))
    drops.forget(db, name)
    db.execute("DELETE FROM lake_log_tables WHERE log_id IN (SELECT id FROM lake_log WHERE branch = ?)", (name,))
    db.execute("DELETE FROM lake_log WHERE branch = ?", (name,))
    return True


def _log_discarded(db: Transaction, name: str) -> None:
    """Log the tables that only a branch has: maintenance would take what is in their folders for another lake's."""
    new = " AND NOT EXISTS (SELECT 1 FROM lake_branch_tables b WHERE b.branch = ? AND b.namespace = {} AND b.table_name = {})"
    alone = db.execute(
        "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables t WHERE catalog_name = ?"
        " AND NOT EXISTS (SELECT 1 FROM iceberg_tables o WHERE o.metadata_location = t.metadata_location"
        f" AND o.catalog_name <> t.catalog_name){new.format('t.table_namespace', 't.table_name')}"
        " UNION ALL SELECT d.namespace, d.table_name, t.metadata_location FROM lake_dropped d JOIN iceberg_tables t"
        " ON t.catalog_name = ? AND t.table_namespace = d.namespace AND t.table_name = d.table_name || '#' || d.id"
        f" WHERE d.branch = ?{new.format('d.namespace', 'd.table_name')}",
        (name, name, DROPPED, name, name),
    ).fetchall()
    commit = Commit("discard", message=f"branch {name}")
    for space, table, pointer in alone:
        log.write(db, DISCARDED, commit, [Change(TableName(space, table), pointer, None)])


def drop_tag(db: Transaction, name: str) -> bool:
    """Delete a tag; False if there is none."""
    db.execute("DELETE FROM lake_tag_tables WHERE tag = ?", (name,))
    return db.execute("DELETE FROM lake_tags WHERE name = ?", (name,)).rowcount == 1


def exists(db: Transaction, table: str, name: str) -> bool:
    """Return whether a row of `lake_branches` or `lake_tags` has this name."""
    return db.execute(f"SELECT 1 FROM {table} WHERE name = ?", (name,)).fetchone() is not None


def _kind_of(db: Transaction, source: str) -> str:
    """Return main, branch or tag."""
    if source == CATALOG:
        return MAIN
    if exists(db, "lake_branches", source):
        return "branch"
    if exists(db, "lake_tags", source):
        return "tag"
    known = [MAIN, *(ref.name for ref in (*branches(db), *tags(db)))]
    near = ", ".join(nearest(source, known) or known[:10])
    raise NoSuchBranchError(
        f"There is no branch or tag {source}.", f"Did you mean {near}? All of them: lake branch list"
    )


def _check_new(db: Transaction, name: str) -> None:
    check_part(name, "branch")
    if name in _RESERVED:
        raise BadNameError(f"The catalog itself uses the name {name!r}.", "Choose another name for the branch or tag.")
    for table, what in (("lake_branches", "branch"), ("lake_tags", "tag")):
        if exists(db, table, name):
            raise BranchExistsError(f"There is a {what} {name} already.", f"lake {what} list")


def reachable(db: Transaction, since: str) -> list[ReachableFile]:
    """Return every metadata file that main, a branch, a tag, a dropped table or the log refers to."""
    names = db.execute("SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY 1").fetchall()
    files = [
        ReachableFile(table, location, _referrer(name))
        for (name,) in names
        for table, location in rows.pointers(db, name).items()
    ]
    for query, prefix in (
        ("SELECT namespace, table_name, metadata_location, branch FROM lake_branch_tables", "base of"),
        ("SELECT namespace, table_name, metadata_location, tag FROM lake_tag_tables", "tag"),
    ):
        files += [
            ReachableFile(TableName(s, t), location, f"{prefix} {name}")
            for s, t, location, name in db.execute(query).fetchall()
        ]
    logged = (
        "SELECT t.namespace, t.table_name, t.before_location, t.after_location, l.id FROM lake_log_tables t"
        " JOIN lake_log l ON l.id = t.log_id WHERE l.made_at >= ?"
    )
    for space, table, before, after, number in db.execute(logged, (since,)).fetchall():
        files += [
            ReachableFile(TableName(space, table), location, f"log {number}")
            for location in (before, after)
            if location
        ]
    return files


def _referrer(name: str) -> str:
    if name == DROPPED:
        return "dropped"
    return MAIN if name == CATALOG else f"branch {name}"
