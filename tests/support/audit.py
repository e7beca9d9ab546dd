"""Compare a whole lake before and after a write: its files, the rows beside the change, other tables and refs.

Files are found by listing the warehouse, and what names them by PyIceberg and hudi-rs, not by the code that maintenance uses.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import NoSuchTableError, NotSupportedError
from lakehouse.core.names import MAIN
from lakehouse.core.refs import LogEntry
from lakehouse.core.state import CatalogState
from lakehouse.lake import Lake

#: All rows of a table may change, or the table is new.
ALL: Mapping[str, Collection[Any]] = {}
Touched = Mapping[str, Mapping[str, Collection[Any]]]
"""The tables that a write changes. Of each, the rows whose columns have one of these values; `ALL` for every row."""

Row = tuple[Any, ...]
#: What a file is, by size and times (or by size and time, in a bucket): a file that has another stamp was written again.
Stamp = tuple[Any, ...]

#: Metadata files, manifest lists and manifests never change, so each is read once in a process.
_NAMED: dict[str, frozenset[str]] = {}
_PREVIOUS: dict[str, frozenset[str]] = {}
_HUDI = "/.hoodie/"
_PARTITION_NOTE = ".hoodie_partition_metadata"


class AuditError(AssertionError):
    """A write left or changed something that it should not have."""


@dataclass(frozen=True)
class Audited:
    """What an audit looks at.

    Args:
        catalog: its refs say which metadata files there are.
        warehouse: the URI below which all files are listed.
        sweep: removes what nothing needs, without waiting; log entries before a time, if it is given, hold no files.
        read: the rows of a Hudi table, by column names.
        folder: the folder of an embedded lake, whose database is read directly as well.
    """

    catalog: Catalog
    warehouse: str
    sweep: Callable[..., Any] = lambda since="": None
    read: Callable[[str], tuple[list[str], list[Row]]] = lambda table: ([], [])
    folder: Path | None = None

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.catalog.pyiceberg_properties())


def audited(lake: Lake) -> Audited:
    """The parts of a lake that an audit looks at."""
    maintainer = lake._components.maintainer()

    def read(table: str) -> tuple[list[str], list[Row]]:
        rows = lake.sql(f"SELECT * FROM {table}")
        return list(rows.names), [tuple(row) for row in rows.rows()]

    def sweep(since: str = "") -> Any:
        sweeper = maintainer.sweeper()
        now = {"orphan_days": 0, "delete_after_hours": 0, "writers_since": lambda: None}
        return replace(sweeper, **now, since=since or sweeper.since).sweep()

    return Audited(maintainer.catalog, maintainer.warehouse, sweep, read, lake.folder)


@dataclass(frozen=True)
class LakeState:
    """Everything that a lake holds at one moment."""

    refs: Mapping[str, Mapping[str, str]]
    """The pointer of each table, by what refers to it: main, `branch NAME`, `tag NAME`, dropped, hudi."""
    log: tuple[LogEntry, ...]
    files: Mapping[str, Stamp]
    named: frozenset[str]
    """Every file that metadata names, the log's included."""
    required: frozenset[str]
    """Those that have to exist: what only the log names may have expired, and no reader needs earlier metadata files."""
    hudi: Mapping[str, str] = field(default_factory=dict)
    """The folder of each Hudi table."""

    @property
    def unnamed(self) -> frozenset[str]:
        """Files that nothing names."""
        return frozenset(uri for uri in self.files if uri not in self.named and _with_checksum(uri) not in self.named)


@contextmanager
def audit(
    lake: Lake | Audited,
    touched: Touched | None = None,
    *,
    on: str = MAIN,
    refs: Collection[str] = (),
    leaves: bool = False,
    removes: bool = False,
) -> Iterator[None]:
    """Raise an AuditError if the block changes anything besides what is stated.

    Args:
        touched: the tables that change, and which of their rows.
        on: the ref whose tables change.
        refs: patterns of the branches and tags that may come, go or change.
        leaves: files that nothing names may stay behind, if maintenance then removes them and nothing else.
        removes: files may go, if nothing names them any more.
    """
    target = lake if isinstance(lake, Audited) else audited(lake)
    touched = touched or {}
    before = take_state(target)
    rows_before = {table: rows_of(target, before, on, table) for table in touched}
    yield
    after = take_state(target)
    if leaves:
        target.sweep()
        after = take_state(target)
    ignored = () if lists_all_files(target.catalog) else ("*",) if leaves else ("*.metadata.json",)
    _check_files(before, after, removes or leaves, ignored)
    _check_refs(before, after, touched, on, refs)
    _check_log(before, after, refs)
    for table, choice in touched.items():
        _check_rows(table, choice, rows_before[table], rows_of(target, after, on, table))


# ---- the checks -----------------------------------------------------------------------------------------------------


def lists_all_files(catalog: Catalog) -> bool:
    """Whether maintenance removes files: not beside a catalog of somebody else, whose readers nobody knows.

    A publish there is a commit of that catalog, which writes its own metadata file: those of the branch stay.
    """
    try:
        catalog.reachable()
    except NotSupportedError:
        return False
    return True


def _check_files(before: LakeState, after: LakeState, removes: bool, ignored: Collection[str]) -> None:
    unnamed = sorted(after.unnamed - before.unnamed)
    left = [uri for uri in unnamed if not any(fnmatch(uri, pattern) for pattern in ignored)]
    if left:
        raise AuditError(f"{len(left)} files that nothing names: {left[:5]}")
    # On servers that tests share, files may have been missing before.
    missing = sorted((after.required - set(after.files)) - (before.required - set(before.files)))
    if missing:
        raise AuditError(f"{len(missing)} named files do not exist: {missing[:5]}")
    changed = sorted(uri for uri, stamp in after.files.items() if before.files.get(uri, stamp) != stamp)
    if changed:
        raise AuditError(f"{len(changed)} files were written again: {changed[:5]}")
    gone = sorted(set(before.files) - set(after.files))
    if gone and not removes:
        raise AuditError(f"{len(gone)} files are gone: {gone[:5]}")


def _check_refs(before: LakeState, after: LakeState, touched: Touched, on: str, refs: Collection[str]) -> None:
    here = MAIN if on == MAIN else f"branch {on}"
    for ref in sorted(set(before.refs) | set(after.refs), key=lambda ref: (ref.startswith("base of"), ref)):
        if any(fnmatch(ref.rpartition(" ")[2], pattern) for pattern in refs) and ref != here:
            continue
        if (ref in before.refs) != (ref in after.refs):
            raise AuditError(f"{ref} {'is gone' if ref in before.refs else 'is new'}")
        old, new = before.refs[ref], after.refs[ref]
        changed = {table for table in set(old) | set(new) if old.get(table) != new.get(table)}
        if others := sorted(changed - (set(touched) if ref in (here, "dropped", "hudi") else set())):
            raise AuditError(f"{ref} has other states of {others}")


def _check_log(before: LakeState, after: LakeState, refs: Collection[str]) -> None:
    """An entry stays as long as its branch does."""
    stays = [entry for entry in before.log if not any(fnmatch(entry.branch, pattern) for pattern in refs)]
    lost = [entry for entry in stays if entry not in after.log]
    if lost:
        raise AuditError(f"the log lost an entry: {lost[0]}")


def _check_rows(
    table: str,
    choice: Mapping[str, Collection[Any]],
    before: tuple[list[str], list[Row]] | None,
    after: tuple[list[str], list[Row]] | None,
) -> None:
    if before is None or after is None or choice is ALL:
        return
    names, old = before
    new_names, new = after
    common = [name for name in names if name in new_names]
    kept = _outside(names, common, old, choice)
    now = _outside(new_names, common, new, choice)
    if kept != now:
        lost, added = list((kept - now).elements()), list((now - kept).elements())
        raise AuditError(f"rows of {table} beside {dict(choice)} changed: {lost[:3]} became {added[:3]}")


def _outside(
    names: list[str], columns: list[str], rows: list[Row], choice: Mapping[str, Collection[Any]]
) -> Counter[str]:
    """The rows that a write must not change, with how often each is there."""
    places = [names.index(name) for name in columns]
    chosen = [(names.index(name), values) for name, values in choice.items()]
    outside = (row for row in rows if not all(row[place] in values for place, values in chosen))
    return Counter(repr([row[place] for place in places]) for row in outside)


# ---- the state of a lake --------------------------------------------------------------------------------------------


def take_state(target: Audited) -> LakeState:
    """Read everything that a lake holds now."""
    state = target.catalog.dump_state()
    _check_database(target, state)
    refs: dict[str, dict[str, str]] = {MAIN: {}, "dropped": {}, "hudi": {}}
    refs |= {f"branch {branch.ref.name}": {} for branch in state.branches}
    refs |= {f"tag {tag.ref.name}": {} for tag in state.tags}
    for by, entry in state.entries():
        refs.setdefault(by, {})[str(entry.table)] = entry.pointer
    pointers = {pointer for tables in refs.values() for pointer in tables.values()}
    required = {uri for pointer in pointers for uri in named(target, pointer)}
    logged = {uri for entry in state.logged() for uri in _named_if_there(target, entry.pointer)}
    pointers |= {entry.pointer for entry in state.logged()}
    logged |= {uri for pointer in pointers for uri in _PREVIOUS.get(pointer, ())}
    files = listed(target)
    hudi = {_hudi_name(uri): uri.partition(_HUDI)[0] for uri in files if uri.endswith("/.hoodie/hoodie.properties")}
    for table, folder in hudi.items():
        inside = {uri for uri in files if uri.startswith(f"{folder}/")}
        instants, timeline = hudi_timeline(target, folder)
        data = {uri for uri in inside if _HUDI not in uri and not uri.endswith(_PARTITION_NOTE)}
        refs["hudi"][table] = json.dumps([instants, sorted((uri, files[uri]) for uri in data)])
        # Its own folder belongs to Hudi; so do the files of instants that are archived.
        logged |= inside - data | timeline | {uri for uri in data if instants and _instant(uri) < instants[0]}
        files = {uri: stamp for uri, stamp in files.items() if uri not in inside or uri in data}
    return LakeState(refs, state.log, files, frozenset(required | logged), frozenset(required), hudi)


def rows_of(target: Audited, state: LakeState, ref: str, table: str) -> tuple[list[str], list[Row]] | None:
    """The columns and rows of a table; None if there is no such table."""
    if table in state.hudi:
        try:
            return target.read(table)
        except NoSuchTableError:  # a table of a metastore, which was dropped: its files stay where they are
            return None
    pointer = state.refs.get(MAIN if ref == MAIN else f"branch {ref}", {}).get(table)
    if pointer is None:
        return None
    from pyiceberg.table import StaticTable

    rows = StaticTable.from_metadata(pointer, target.properties).scan().to_arrow()
    names = list(rows.column_names)
    return names, [tuple(row[name] for name in names) for row in rows.to_pylist()]


def named(target: Audited, pointer: str) -> frozenset[str]:
    """Every file that a metadata file names, itself included and earlier metadata files not (these are in _PREVIOUS)."""
    if pointer not in _NAMED:
        _NAMED[pointer] = frozenset(map(plain, _read_names(target, pointer)))
    return _NAMED[pointer]


def _named_if_there(target: Audited, pointer: str) -> frozenset[str]:
    try:
        return named(target, pointer)
    except FileNotFoundError:
        return frozenset()


def _read_names(target: Audited, pointer: str) -> Iterator[str]:
    from pyiceberg.io import load_file_io
    from pyiceberg.manifest import read_manifest_list

    io = load_file_io(target.properties, pointer)
    with io.new_input(pointer).open() as stream:
        content = stream.read()
    raw = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    _PREVIOUS[pointer] = frozenset(plain(entry["metadata-file"]) for entry in raw.get("metadata-log", ()))
    yield pointer
    for statistics in (*raw.get("statistics", ()), *raw.get("partition-statistics", ())):
        yield statistics["statistics-path"]
    for snapshot in raw.get("snapshots", ()):
        yield snapshot["manifest-list"]
        for manifest in read_manifest_list(io.new_input(snapshot["manifest-list"])):
            yield manifest.manifest_path
            if manifest.manifest_path not in _NAMED:
                entries = manifest.fetch_manifest_entry(io, discard_deleted=True)
                _NAMED[manifest.manifest_path] = frozenset(entry.data_file.file_path for entry in entries)
            yield from _NAMED[manifest.manifest_path]


def _check_database(target: Audited, state: CatalogState) -> None:
    """Compare what the catalog says with what its SQLite database holds."""
    file = target.folder / "catalog.db" if target.folder else None
    if file is None or not file.exists():
        return
    with closing(sqlite3.connect(file)) as database:
        stored = {pointer for (pointer,) in database.execute("SELECT metadata_location FROM iceberg_tables")}
    told = {entry.pointer for _, entry in state.entries()}
    if not stored <= told:
        raise AuditError(f"the catalog does not tell of {sorted(stored - told)[:5]}")


# ---- files ----------------------------------------------------------------------------------------------------------


def plain(uri: str) -> str:
    """One spelling of a URI: a local path, or s3://BUCKET/KEY."""
    scheme, _, rest = uri.partition(":")
    if scheme in ("s3", "s3a", "s3n"):
        return f"s3:{rest}"
    return "/" + rest.lstrip("/") if scheme == "file" else uri


def listed(target: Audited) -> dict[str, Stamp]:
    """Every file below the warehouse."""
    root = plain(target.warehouse).rstrip("/")
    if not root.startswith("s3:"):
        stamps: dict[str, Stamp] = {}
        for folder, _, names in os.walk(root):
            for name in names:
                stat = os.stat(path := os.path.join(folder, name))
                stamps[path] = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        return stamps
    from pyarrow.fs import FileSelector, S3FileSystem

    given = target.properties
    scheme, _, host = given["s3.endpoint"].partition("://")
    bucket = S3FileSystem(
        access_key=given["s3.access-key-id"],
        secret_key=given["s3.secret-access-key"],
        scheme=scheme,
        endpoint_override=host,
        region=given.get("s3.region", "us-east-1"),
    )
    selector = FileSelector(root.removeprefix("s3://"), allow_not_found=True, recursive=True)
    return {f"s3://{info.path}": (info.size, info.mtime_ns) for info in bucket.get_file_info(selector) if info.is_file}


def _with_checksum(uri: str) -> str:
    """The file that a checksum of Hadoop's local file system is of."""
    folder, _, name = uri.rpartition("/")
    return f"{folder}/{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else ""


# ---- Hudi -----------------------------------------------------------------------------------------------------------


def hudi_timeline(target: Audited, folder: str) -> tuple[list[str], set[str]]:
    """The completed instants of a Hudi table, and the files that they wrote."""
    from hudi import HudiTableBuilder

    options = _hudi_options(target.properties) if folder.startswith("s3:") else {}
    timeline = HudiTableBuilder.from_base_uri(folder).with_storage_options(options).build().get_timeline()
    completed = [
        *timeline.get_completed_commits(),
        *timeline.get_completed_deltacommits(),
        *timeline.get_completed_replacecommits(),
    ]
    written: set[str] = set()
    for instant in completed:
        metadata = json.loads(timeline.get_instant_metadata_in_json(instant))
        for stats in (metadata.get("partitionToWriteStats") or {}).values():
            written |= {f"{folder}/{stat['path']}" for stat in stats}
    return sorted(instant.timestamp for instant in completed), written


def _hudi_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings of a bucket as hudi-rs takes them, from those of PyIceberg."""
    return {
        "aws_endpoint": properties["s3.endpoint"],
        "aws_region": properties.get("s3.region", "us-east-1"),
        "aws_access_key_id": properties["s3.access-key-id"],
        "aws_secret_access_key": properties["s3.secret-access-key"],
        "aws_allow_http": "true",
    }


def _hudi_name(properties: str) -> str:
    namespace, table = properties.partition(_HUDI)[0].split("/")[-2:]
    return f"{namespace.removesuffix('.db')}.{table}"


def _instant(uri: str) -> str:
    """The time of the instant that wrote a file, from the file's name."""
    name = uri.rpartition("/")[2]
    return name.rpartition("_")[2].partition(".")[0] if not name.startswith(".") else name.split("_")[1].split(".")[0]
