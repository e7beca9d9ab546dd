"""Branches and tags. A branch is the same pointers under another catalog name; a tag is pointers that nobody can move."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.catalogs.sql import drops, log, rows
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.catalogs.sql.schema import DROPPED
from lakehouse.core.errors import BadNameError, BranchExistsError, NoSuchBranchError
from lakehouse.core.names import CATALOG, MAIN, TableName, check_part, nearest
from lakehouse.core.refs import Commit, Reached, Ref, state_of

#: Names that would be taken for something else in Spark or in the catalog's own tables.
_RESERVED = (CATALOG, MAIN, DROPPED, "spark_catalog")


def branches(db: Transaction) -> list[Ref]:
    """Every branch beside main, by name."""
    return _refs(db, "lake_branches")


def tags(db: Transaction) -> list[Ref]:
    """Every tag, by name."""
    return _refs(db, "lake_tags")


def _refs(db: Transaction, table: str) -> list[Ref]:
    query = f"SELECT name, made_from, state, made_at, author, message FROM {table} ORDER BY 1"
    return [Ref(*row) for row in db.execute(query).fetchall()]


def make_branch(db: Transaction, name: str, source: str, tables: Sequence[TableName] | None, commit: Commit) -> None:
    """Give a branch the tables of another catalog name or of a tag as they are now: all, or some."""
    _check_new(db, name)
    found = _kind_of(db, source)
    if found == "tag":
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
            rows.ensure_namespace(db, name, table.namespace)
    _copy_namespaces(db, name, CATALOG if found == "tag" else source, every=tables is None)
    _remember_base(db, name, source, of_branch=found == "branch" and tables is None)
    state = state_of(rows.pointers(db, name))
    facts = (name, log.called(source), state, log.now(), commit.author, commit.message)
    db.execute("INSERT INTO lake_branches VALUES (?, ?, ?, ?, ?, ?)", facts)


def _copy_namespaces(db: Transaction, name: str, source: str, every: bool) -> None:
    if every:
        db.execute(
            "INSERT INTO iceberg_namespace_properties SELECT ?, namespace, property_key, property_value"
            " FROM iceberg_namespace_properties WHERE catalog_name = ?",
            (name, source),
        )
    for table in rows.pointers(db, name):
        rows.ensure_namespace(db, name, table.namespace)


def _remember_base(db: Transaction, name: str, source: str, of_branch: bool) -> None:
    """Where the tables were when the branch began. What another branch had changed is a change of this one too."""
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


def make_tag(db: Transaction, name: str, source: str, commit: Commit) -> None:
    """Remember where everything points, under a name."""
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
    state = state_of(tagged(db, name))
    facts = (name, log.called(source), state, log.now(), commit.author, commit.message)
    db.execute("INSERT INTO lake_tags VALUES (?, ?, ?, ?, ?, ?)", facts)


def tagged(db: Transaction, tag: str) -> dict[TableName, str]:
    """Where everything pointed when a tag was made."""
    query = "SELECT namespace, table_name, metadata_location FROM lake_tag_tables WHERE tag = ?"
    return {TableName(space, table): place for space, table, place in db.execute(query, (tag,)).fetchall()}


def forget_branch(db: Transaction, name: str) -> bool:
    """Forget a branch; its files are nobody's then. False if there is none."""
    db.execute("DELETE FROM iceberg_tables WHERE catalog_name = ?", (name,))
    db.execute("DELETE FROM iceberg_namespace_properties WHERE catalog_name = ?", (name,))
    db.execute("DELETE FROM lake_branch_tables WHERE branch = ?", (name,))
    drops.forget(db, name)
    db.execute("DELETE FROM lake_log_tables WHERE log_id IN (SELECT id FROM lake_log WHERE branch = ?)", (name,))
    db.execute("DELETE FROM lake_log WHERE branch = ?", (name,))
    return db.execute("DELETE FROM lake_branches WHERE name = ?", (name,)).rowcount == 1


def forget_tag(db: Transaction, name: str) -> bool:
    """Forget a tag; False if there is none."""
    db.execute("DELETE FROM lake_tag_tables WHERE tag = ?", (name,))
    return db.execute("DELETE FROM lake_tags WHERE name = ?", (name,)).rowcount == 1


def existing(db: Transaction, table: str, name: str) -> bool:
    return db.execute(f"SELECT 1 FROM {table} WHERE name = ?", (name,)).fetchone() is not None


def _kind_of(db: Transaction, source: str) -> str:
    """main, branch or tag."""
    if source == CATALOG:
        return MAIN
    if existing(db, "lake_branches", source):
        return "branch"
    if existing(db, "lake_tags", source):
        return "tag"
    known = [MAIN, *(ref.name for ref in (*branches(db), *tags(db)))]
    near = ", ".join(nearest(source, known) or known[:10])
    raise NoSuchBranchError(f"There is no branch or tag {source}.", f"Nearest: {near}. All of them: lake branch list")


def _check_new(db: Transaction, name: str) -> None:
    check_part(name, "branch")
    if name in _RESERVED:
        raise BadNameError(f"{name!r} is taken by the catalog itself.", "Choose another name for the branch or tag.")
    for table, what in (("lake_branches", "branch"), ("lake_tags", "tag")):
        if existing(db, table, name):
            raise BranchExistsError(f"There is a {what} {name} already.", f"lake {what} list")


def reachable(db: Transaction, since: str) -> list[Reached]:
    """Every metadata file that main, a branch, a tag, a dropped table or the log leads to."""
    names = db.execute("SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY 1").fetchall()
    found = [
        Reached(table, place, _reached_by(name))
        for (name,) in names
        for table, place in rows.pointers(db, name).items()
    ]
    for query, words in (
        ("SELECT namespace, table_name, metadata_location, branch FROM lake_branch_tables", "base of"),
        ("SELECT namespace, table_name, metadata_location, tag FROM lake_tag_tables", "tag"),
    ):
        found += [
            Reached(TableName(s, t), place, f"{words} {name}") for s, t, place, name in db.execute(query).fetchall()
        ]
    logged = (
        "SELECT t.namespace, t.table_name, t.before_location, t.after_location, l.id FROM lake_log_tables t"
        " JOIN lake_log l ON l.id = t.log_id WHERE l.made_at >= ?"
    )
    for space, table, before, after, number in db.execute(logged, (since,)).fetchall():
        found += [Reached(TableName(space, table), each, f"log {number}") for each in (before, after) if each]
    return found


def _reached_by(name: str) -> str:
    if name == DROPPED:
        return "dropped"
    return MAIN if name == CATALOG else f"branch {name}"
