"""Implements `Catalog` with Nessie's own branches, tags and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import islice
from typing import ClassVar

from lakehouse.catalogs.nessie import contents, history, publishing, refs, state
from lakehouse.catalogs.nessie.annotations import Annotations
from lakehouse.catalogs.nessie.api import Conflict, Content, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import TABLE, VIEW, key_of, name_of, pointer_of
from lakehouse.core.catalog import CatalogCapabilities, NoClients
from lakehouse.core.clients import duckdb_attachment, spark_catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BranchExistsError, CatalogBusyError, NoSuchBranchError, NoSuchCommitError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import (
    Change,
    Commit,
    LogEntry,
    Published,
    ReachableFile,
    Ref,
    acting_author,
    hash_pointers,
    run_branch,
)
from lakehouse.core.state import CatalogState
from lakehouse.core.tables import Drop

#: Attempts at a commit that conflicts with another one.
_ATTEMPTS = 20


@dataclass(eq=False)
class NessieCatalog(NoClients):
    """The tables of a branch in Nessie.

    Args:
        api: the server.
        warehouse: the URI below which new tables are created.
        branch: the branch or, for reading, the tag.
        files: reads metadata files.
        io: PyIceberg's FileIO properties (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
        author: the author of commits that name none.
    """

    api: NessieApi
    warehouse: str
    branch: str = MAIN
    files: Files = LOCAL
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    author: str = ""
    capabilities: ClassVar[CatalogCapabilities] = CatalogCapabilities(multi_table_publish=True)
    name: str = field(init=False)
    """The name of the catalog in Spark SQL."""

    def __post_init__(self) -> None:
        self.name = CATALOG if self.branch == MAIN else self.branch

    @property
    def annotations(self) -> Annotations:
        """What Nessie itself does not store."""
        return Annotations(self.api)

    def on(self, branch: str) -> NessieCatalog:
        name = MAIN if branch in ("", CATALOG) else branch
        return NessieCatalog(self.api, self.warehouse, name, self.files, self.io, self.spark_io, self.author)

    # ---- settings of other programs -----------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        properties = {
            "catalog-impl": "org.apache.iceberg.nessie.NessieCatalog",
            "uri": self.api.uri,
            "ref": self.branch,
            "warehouse": self.warehouse,
            **({"authentication.type": "BEARER", "authentication.token": self.api.token} if self.api.token else {}),
            **self.spark_io,
        }
        return spark_catalog(self.name, properties)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """Return the properties of our own PyIceberg catalog, which commits as safely as Spark does."""
        own = {"py-catalog-impl": "lakehouse.catalogs.nessie.for_pyiceberg.NessieTables", "ref": self.branch}
        return {**own, "uri": self.api.uri, "warehouse": self.warehouse, **self._token(), **self.io}

    def rest_properties(self) -> Mapping[str, str]:
        """Return the properties of Nessie's Iceberg REST endpoint, which is for reading only (docs/catalogs.md)."""
        server = self.api.uri.removesuffix("/v2").removesuffix("/api")
        return {"type": "rest", "uri": f"{server}/iceberg/{self.branch}", **self._token(), **self.io}

    def _token(self) -> dict[str, str]:
        return {"token": self.api.token} if self.api.token else {}

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        """Return those of Nessie's own API: unlike through REST, a table's older snapshots are there."""
        properties = {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "nessie",
            "iceberg.nessie-catalog.uri": self.api.uri,
            "iceberg.nessie-catalog.ref": self.branch,
            "iceberg.nessie-catalog.default-warehouse-dir": self.warehouse,
        }
        token = {
            "iceberg.nessie-catalog.authentication.type": "BEARER",
            "iceberg.nessie-catalog.authentication.token": self.api.token,
        }
        return {name: {**properties, **(token if self.api.token else {})}}

    def duckdb_attach(self) -> str:
        """Return the statement for Nessie's REST endpoint, through which DuckDB should only read (docs/catalogs.md)."""
        # The address ends with a branch, for clients that follow the address which the server returns; DuckDB follows
        # its prefix alone.
        uri = self.rest_properties()["uri"].removesuffix(f"/{self.branch}")
        return duckdb_attachment(uri, self._token())

    def ensure_ready(self) -> None:
        self._reference()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        return sorted(name_of(key) for key, content in self.api.entries(self.branch) if content["type"] == TABLE)

    def pointer(self, table: TableName) -> str | None:
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        keys = {table: key_of(table) for table in tables}
        # Nessie rejects a request without keys.
        existing = self.api.contents(self.branch, keys.values())[0] if keys else {}
        tables_only = {key: content for key, content in existing.items() if content["type"] == TABLE}
        return {table: pointer_of(tables_only.get(key)) for table, key in keys.items()}

    def has_view(self, name: TableName) -> bool:
        content = self._content(name)[0]
        return content is not None and content["type"] == VIEW

    def views(self) -> Sequence[TableName]:
        return sorted(name_of(key) for key, content in self.api.entries(self.branch) if content["type"] == VIEW)

    def ensure_namespace(self, namespace: str) -> None:
        levels = namespace.split(".")
        keys = [tuple(levels[: count + 1]) for count in range(len(levels))]
        for _ in range(_ATTEMPTS):
            existing, seen = self.api.contents(self.branch, keys)
            missing = [put(key, contents.namespace_content(".".join(key))) for key in keys if key not in existing]
            if not missing:
                return
            try:
                meta = history.meta_of(self._signed(Commit(history.WRITE)), f"namespace {namespace}")
                self.api.commit(Reference(self.branch, seen), meta, missing)
                return
            except Conflict:
                continue  # another client created it at the same time
        raise self._busy(f"the namespace {namespace}")

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        content, seen = self._content(table)
        if content is None or pointer_of(content) != expected:
            return False
        key = key_of(table)
        change = remove(key) if new is None else put(key, self._table_at(new, content["id"]))
        try:
            meta = history.meta_of(self._signed(Commit(history.WRITE)), str(table))
            self.api.commit(Reference(self.branch, seen), meta, [change])
        except Conflict:
            return False
        return True

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        return refs.branch_names(self.api)

    def branch_refs(self) -> list[Ref]:
        return refs.list_refs(self.api, "branch")

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        created_for = {name: note.get("tables", "").split() for name, note in self.annotations.notes("branch").items()}
        return [name for name in self.branches() if name.startswith(prefix) and str(table) in created_for.get(name, ())]

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        publishing.ensure_first_commit(self.api)
        refs.create(self.api, "branch", name, refs.source(self.api, from_ref), self._signed(commit or Commit("branch")))

    def fork(
        self, branch: str, tables: Sequence[TableName], commit: Commit | None = None
    ) -> dict[TableName, str | None]:
        """Create a branch for some tables. It holds the others too, as every branch of Nessie does."""
        publishing.ensure_first_commit(self.api)
        start = self._reference()
        note = {"tables": " ".join(map(str, tables))}
        refs.create(self.api, "branch", branch, start, self._signed(commit or Commit("branch")), note)
        return self.on(start.at).pointers(tables)

    def changes(self, branch: str) -> list[Change]:
        return publishing.changes(self.api, refs.existing(self.api, branch))

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        return publishing.conflicts(self.api, self._reference(), refs.existing(self.api, branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Merge the branch in one commit of Nessie's; then drop the branch and create the tag at that commit."""
        source, signed = refs.existing(self.api, branch), self._signed(commit or Commit())
        if tag:
            refs.check_name("tag", tag)
        into = self._reference()
        history.note_run(self.annotations, self.branch, signed.run, into.hash)
        done = publishing.merge(self.api, into, source, signed)
        if done.entry:
            history.note_run(self.annotations, self.branch, signed.run, into.hash, done.entry)
        if done:
            self._conclude(source, tag, done.entry, signed)
        return done

    def _conclude(self, published: Reference, tag: str, entry: str, commit: Commit) -> None:
        """Drop a branch that was published, and tag its commit."""
        refs.drop_if_unchanged(self.api, "branch", published)
        if tag and entry:
            self.drop_tag(tag)
            with suppress(BranchExistsError):  # the publish stands, even if a branch has the tag's name
                refs.create(self.api, "tag", tag, Reference(self.branch, entry), commit)

    def drop_branch(self, branch: str) -> bool:
        return refs.drop(self.api, "branch", branch)

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        return refs.list_refs(self.api, "tag")

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        refs.create(self.api, "tag", name, refs.source(self.api, from_ref), self._signed(commit or Commit("tag")))

    def drop_tag(self, name: str) -> bool:
        return refs.drop(self.api, "tag", name)

    def tag_pointers(self, tag: str) -> dict[TableName, str] | None:
        reference = self.api.find(tag)
        return refs.pointers(self.api, reference.at) if reference and reference.type == "TAG" else None

    # ---- the log ------------------------------------------------------------------------------------------------

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        return list(islice(history.entries(self.api, self.branch, table, history.BY_LAKE), limit))

    def published_by(self, run: str) -> LogEntry | None:
        """Return the log entry of a run's publish; one that was killed right after the commit is concluded now."""
        published = history.of_run(self.api, self.annotations, self.branch, run)
        if published is not None:
            for ref in self.api.references():
                if ref.type == "BRANCH" and ref.name == run_branch(run):
                    self._conclude(ref, ref.name, published.id, published.commit)
        return published

    def record_statement(self, table: TableName, before: str | None, commit: Commit) -> bool:
        return False  # Nessie logs every commit

    def revert(self, entry: str, commit: Commit) -> Published:
        undone = next(history.entries(self.api, self.branch, only=history.has_hash(entry)), None)
        if undone is None:
            raise NoSuchCommitError(f"The log has no commit {entry!r}.", "All of them: lake log")
        run = undone.commit.run
        was_published = bool(run) and self.published_by(run) is not None
        done = publishing.revert(self.api, self._reference(), undone, self._signed(replace(commit, kind="revert")))
        if done:
            history.note_revert(self.annotations, self.branch, run, done.entry, was_published)
        return done

    def state_hash(self) -> str:
        return hash_pointers(refs.pointers(self.api, self.branch))

    def reachable(self, since: str = "") -> list[ReachableFile]:
        return refs.reachable(self.api, since)

    def dump_state(self) -> CatalogState:
        return state.dump(self.api)

    def problems(self) -> Sequence[str]:
        return ()  # Nessie checks each commit

    def load_state(self, content: CatalogState) -> Sequence[str]:
        return state.Replay(self.api, self.files, content).run()

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        for _ in range(_ATTEMPTS):
            content, seen = self._content(table)
            if content is None or content["type"] != TABLE:
                return False
            if publishing.drop(self.api, Reference(self.branch, seen), table, content, self._signed(Commit("drop"))):
                return True
        raise self._busy(str(table))

    def undrop(self, table: TableName, drop: str = "") -> bool:
        if (dropped := self.annotations.newest_drop(self.branch, table, drop)) is None:
            return False
        self.ensure_namespace(table.namespace)
        existing, seen = self._content(table)
        publishing.undrop(
            self.api, Reference(self.branch, seen), table, existing, dropped, self._signed(Commit("undrop"))
        )
        return True

    def dropped(self) -> Sequence[TableName]:
        return self.annotations.dropped(self.branch)

    def drops(self) -> Sequence[Drop]:
        return self.annotations.drops(self.branch)

    def forget_dropped(self, before: Callable[[TableName], str]) -> Sequence[TableName]:
        return self.annotations.forget_before(before)

    # ---- helpers ------------------------------------------------------------------------------------------------

    def _busy(self, changed: str) -> CatalogBusyError:
        return CatalogBusyError(
            f"Other clients changed {changed} on {self.branch} in Nessie {_ATTEMPTS} times in a row.", "Try again."
        )

    def _reference(self) -> Reference:
        reference = self.api.find(self.branch)
        if reference is None:
            raise NoSuchBranchError(f"There is no branch {self.branch}.", "All of them: lake branch list")
        return reference

    def _content(self, table: TableName) -> tuple[Content | None, str]:
        existing, seen = self.api.contents(self.branch, [key_of(table)])
        return existing.get(key_of(table)), seen

    def _table_at(self, location: str, id: str) -> dict[str, object]:
        return contents.table_content(location, load_metadata(location, self.files), id)

    def _signed(self, commit: Commit) -> Commit:
        return commit if commit.author else replace(commit, author=acting_author() or self.author)
