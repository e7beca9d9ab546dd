"""The Nessie catalog itself: pointers, branches, tags, the log and soft drops, in Nessie's own terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar

from lakehouse.catalogs.nessie import history, publishing, refs
from lakehouse.catalogs.nessie.api import Conflict, Content, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import (
    TABLE,
    VIEW,
    key_of,
    name_of,
    namespace_content,
    new,
    parsed,
    pointer_of,
    table_content,
)
from lakehouse.catalogs.nessie.kept import Kept
from lakehouse.core.errors import BranchExistsError, NoSuchBranchError, NoSuchCommitError, TableExistsError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import RUN_PREFIX, Change, Commit, LogEntry, Published, Reached, Ref, state_of
from lakehouse.core.spark_catalog import spark_catalog

#: How often something is done again that others disturbed.
_TRIES = 20


@dataclass(eq=False)
class NessieCatalog:
    """The tables of one Nessie, as a branch has them.

    Args:
        api: the server.
        warehouse: where new tables go, as a URI.
        branch: the branch (or, for reading, the tag) that is looked at.
        files: how metadata files are read.
        io: properties of PyIceberg's file access (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
        author: who is written down where a commit names nobody.
    """

    api: NessieApi
    warehouse: str
    branch: str = MAIN
    files: Files = LOCAL
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # there are keys among them
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    author: str = ""
    all_at_once: ClassVar[bool] = True
    name: str = field(init=False)
    """What the catalog is called in Spark."""

    def __post_init__(self) -> None:
        self.name = CATALOG if self.branch == MAIN else self.branch

    @property
    def kept(self) -> Kept:
        """What Nessie itself does not keep."""
        return Kept(self.api)

    def on(self, branch: str) -> NessieCatalog:
        """The catalog as a branch has it."""
        here = MAIN if branch in ("", CATALOG) else branch
        return NessieCatalog(self.api, self.warehouse, here, self.files, self.io, self.spark_io, self.author)

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this branch under its name. It may hold a token and keys."""
        facts = {
            "catalog-impl": "org.apache.iceberg.nessie.NessieCatalog",
            "uri": self.api.uri,
            "ref": self.branch,
            "warehouse": self.warehouse,
            **({"authentication.type": "BEARER", "authentication.token": self.api.token} if self.api.token else {}),
            **self.spark_io,
        }
        return spark_catalog(self.name, facts)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs to read and write as safely as Spark. It may hold a token and keys."""
        token = {"token": self.api.token} if self.api.token else {}
        ours = {"py-catalog-impl": "lakehouse.catalogs.nessie.for_pyiceberg.NessieTables", "uri": self.api.uri}
        return {**ours, "ref": self.branch, "warehouse": self.warehouse, **token, **self.io}

    def rest_properties(self) -> Mapping[str, str]:
        """Nessie's Iceberg REST endpoint, for other programs: they should read there and leave writing to the others."""
        token = {"token": self.api.token} if self.api.token else {}
        server = self.api.uri.removesuffix("/v2").removesuffix("/api")
        return {"type": "rest", "uri": f"{server}/iceberg/{self.branch}", **token, **self.io}

    def ready(self) -> None:
        """See that Nessie is there and has the branch."""
        self._reference()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        return sorted(name_of(key) for key, content in self.api.entries(self.branch) if content["type"] == TABLE)

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of a table is, or None if there is no such table."""
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point at one and the same moment."""
        wanted = {table: key_of(table) for table in tables}
        found = (
            self.api.contents(self.branch, wanted.values())[0] if wanted else {}
        )  # Nessie refuses to be asked for none
        tables_only = {key: each for key, each in found.items() if each["type"] == TABLE}
        return {table: pointer_of(tables_only.get(key)) for table, key in wanted.items()}

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        content = self._content(name)[0]
        return content is not None and content["type"] == VIEW

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        levels = namespace.split(".")
        wanted = [tuple(levels[: count + 1]) for count in range(len(levels))]
        for _ in range(_TRIES):
            found, seen = self.api.contents(self.branch, wanted)
            missing = [put(key, namespace_content(".".join(key))) for key in wanted if key not in found]
            if not missing:
                return
            try:
                meta = history.meta_of(self._signed(Commit(history.WRITE)), f"namespace {namespace}")
                self.api.commit(Reference(self.branch, seen), meta, missing)
                return
            except Conflict:
                continue  # others made it in the same moment

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Point a table elsewhere (or, with None, forget it), if it still points where it did."""
        content, seen = self._content(table)
        if content is None or pointer_of(content) != start:
            return False
        key = key_of(table)
        change = remove(key) if end is None else put(key, self._table_at(end, content["id"]))
        try:
            meta = history.meta_of(self._signed(Commit(history.WRITE)), str(table))
            self.api.commit(Reference(self.branch, seen), meta, [change])
        except Conflict:
            return False
        return True

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of every branch beside main."""
        return refs.branch_names(self.api)

    def branch_refs(self) -> list[Ref]:
        """Every branch beside main, with who made it from what and when."""
        return refs.listed(self.api, "branch")

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        """The branches with such a name that were made for a table."""
        made_for = {name: facts.get("tables", "").split() for name, facts in self.kept.notes("branch").items()}
        return [name for name in self.branches() if name.startswith(prefix) and str(table) in made_for.get(name, ())]

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """A branch of all tables as main, another branch or a tag has them."""
        publishing.begin(self.api)
        refs.create(self.api, "branch", name, refs.source(self.api, from_ref), self._signed(commit or Commit("branch")))

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        """A branch for some tables; says where each points, None for one that is not there yet. It has the others too."""
        publishing.begin(self.api)
        start = self._reference()
        facts = {"tables": " ".join(map(str, tables))}
        refs.create(self.api, "branch", branch, start, self._signed(Commit("branch")), facts)
        return self.on(start.at).pointers(tables)

    def changes(self, branch: str) -> list[Change]:
        """What a branch has changed since it was made."""
        return publishing.changes(self.api, refs.existing(self.api, branch))

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        """The tables that a branch has changed and this catalog as well, since the branch was made."""
        return publishing.conflicts(self.api, self._reference(), refs.existing(self.api, branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes those of this one, all of them or, if any of their tables has moved, none.

        One commit of Nessie's. The branch is forgotten after it, and the tag made at exactly that commit.
        """
        source, signed = refs.existing(self.api, branch), self._signed(commit or Commit())
        if tag:
            refs.check_name("tag", tag)
        into = self._reference()
        history.note_run(self.kept, self.branch, signed.run, into.hash)
        done = publishing.merge(self.api, into, source, signed)
        if done.entry:
            history.note_run(self.kept, self.branch, signed.run, into.hash, done.entry)
        if done:
            self._conclude(source, tag, done.entry, signed)
        return done

    def _conclude(self, published: Reference, tag: str, entry: str, commit: Commit) -> None:
        """Forget a branch that was published, and tag the commit that it became."""
        refs.forget(self.api, "branch", published)
        if tag and entry:
            self.drop_tag(tag)
            with suppress(BranchExistsError):  # what is published is published, even if a branch has the tag's name
                refs.create(self.api, "tag", tag, Reference(self.branch, entry), commit)

    def discard(self, branch: str) -> bool:
        """Forget a branch; its files are nobody's then. False if there is none."""
        return refs.discard(self.api, "branch", branch)

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        """Every tag, with who made it from what and when."""
        return refs.listed(self.api, "tag")

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """Remember where all tables of main, a branch or another tag are, under a name."""
        refs.create(self.api, "tag", name, refs.source(self.api, from_ref), self._signed(commit or Commit("tag")))

    def drop_tag(self, name: str) -> bool:
        """Forget a tag; False if there is none."""
        return refs.discard(self.api, "tag", name)

    def tagged(self, tag: str) -> dict[TableName, str] | None:
        """Where everything pointed when a tag was made; None if there is no such tag."""
        found = self.api.find(tag)
        return refs.pointers(self.api, found.at) if found and found.type == "TAG" else None

    # ---- the log ------------------------------------------------------------------------------------------------

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        """What was published here, the newest first: all of it, or what touched a table."""
        return list(islice(history.entries(self.api, self.branch, table, history.OURS), limit))

    def published_by(self, run: str) -> LogEntry | None:
        """What a run published here, if it did; one that was killed right after that is concluded."""
        found = history.of_run(self.api, self.kept, self.branch, run)
        if found is not None:
            for left in self.api.references():
                if left.type == "BRANCH" and left.name == RUN_PREFIX + run:
                    self._conclude(left, left.name, found.id, found.commit)
        return found

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo a commit in all its tables at once, if each is still as that commit left it."""
        undone = next(history.entries(self.api, self.branch, only=history.of_hash(entry)), None)
        if undone is None:
            raise NoSuchCommitError(f"The log has no commit {entry!r}.", "All of them: lake log")
        return publishing.revert(self.api, self._reference(), undone, self._signed(replace(commit, kind="revert")))

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        return state_of(refs.pointers(self.api, self.branch))

    def reachable(self, since: str = "") -> list[Reached]:
        """Every metadata file that something may still lead to: whoever deletes files keeps what these need.

        Args:
            since: commits before that moment no longer count.
        """
        return refs.reachable(self.api, since)

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Take the table out of the branch; its files stay, and its content is kept for `undrop`."""
        for _ in range(_TRIES):
            content, seen = self._content(table)
            if content is None or content["type"] != TABLE:
                return False
            if publishing.drop(self.api, Reference(self.branch, seen), table, content, self._signed(Commit("drop"))):
                return True
        return False

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        found = self.kept.newest(self.branch, table)
        if found is None:
            return False
        kept_under, content = found
        self.ensure_namespace(table.namespace)
        there, seen = self._content(table)
        try:
            if there is not None:
                raise Conflict(str(table))
            meta = history.meta_of(self._signed(Commit("undrop")), str(table))
            self.api.commit(Reference(self.branch, seen), meta, [put(key_of(table), new(content))])
        except Conflict as exc:
            raise TableExistsError(
                f"There is a table {table} again, so the dropped one cannot come back under that name.",
                f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
            ) from exc
        self.kept.remove([kept_under])
        return True

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return self.kept.dropped(self.branch)

    # ---- parts --------------------------------------------------------------------------------------------------

    def _reference(self) -> Reference:
        found = self.api.find(self.branch)
        if found is None:
            raise NoSuchBranchError(f"There is no branch {self.branch}.", "All of them: lake branch list")
        return found

    def _content(self, table: TableName) -> tuple[Content | None, str]:
        found, seen = self.api.contents(self.branch, [key_of(table)])
        return found.get(key_of(table)), seen

    def _table_at(self, location: str, id: str) -> dict[str, object]:
        return table_content(location, parsed(self.files.read(location)), id)

    def _signed(self, commit: Commit) -> Commit:
        return commit if commit.author else replace(commit, author=self.author)
