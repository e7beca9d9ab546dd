"""`lake doctor`: check what the lake depends on, and suggest a fix for each problem."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from lakehouse.config.profiles import DEFAULT_CATALOG, profile_of, resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError
from lakehouse.core.files import local_path
from lakehouse.engines.spark.archive import find_archive
from lakehouse.engines.spark.jars import EMBEDDED, verify_jars
from lakehouse.engines.spark.java import find_java, heap_for
from lakehouse.engines.spark.settings import WARM
from lakehouse.lake.assemble import assemble
from lakehouse.lake.backend import open_backend
from lakehouse.lake.spark import spark_daemon
from lakehouse.process.sockets import accepts_connections
from lakehouse.storage.local import LocalHome

_MIN_MEMORY_MB = 3000
_MIN_DISK_MB = 1000
_MB = 1024 * 1024
#: The object that `lake doctor` writes, always the same one.
_PROBE = ".lake-doctor"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    state: str
    """`ok`, `warn` (works with a restriction) or `fail`."""
    found: str
    do: str = ""


def examine(settings: Settings, deep: bool = False) -> Iterator[Finding]:
    """Run the checks one after the other, and yield each result at once.

    Args:
        deep: also start Spark and run a statement on it.
    """
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("python", _python),
        ("java", lambda: _java(settings)),
        ("jars", lambda: _jars(settings)),
        ("fast start", lambda: _archive(settings)),
        ("memory", lambda: _memory(settings)),
        ("disk", lambda: _disk(settings)),
        ("lake", lambda: _home(settings)),
        ("catalog", lambda: _catalog(settings)),
        ("storage", lambda: _storage(settings)),
        ("servers", lambda: _servers(settings)),
        ("duckdb", lambda: _duckdb(settings)),
        ("hudi", lambda: _library("hudi", "hudi", "reading Hudi tables without Spark")),
        ("pyiceberg", lambda: _library("pyiceberg", "iceberg", "your own PyIceberg code")),
        ("spark", lambda: _spark(settings, deep)),
    ]
    for name, check in checks:
        try:
            yield check()
        except LakeError as exc:
            yield Finding(name, "fail", exc.message, exc.hint)


def _python() -> Finding:
    running = ".".join(str(part) for part in sys.version_info[:3])
    right = sys.version_info[:2] == (3, 11)
    return Finding("python", "ok" if right else "fail", running, "" if right else "Use Python 3.11.")


def _java(settings: Settings) -> Finding:
    java = find_java(settings.spark.java_home)
    return Finding("java", "ok", f"{java.version} in {java.home}")


def _jars(settings: Settings) -> Finding:
    wrong = verify_jars(settings.cache)
    if wrong:
        return Finding("jars", "warn", f"missing or damaged: {', '.join(wrong)}", "lake setup downloads them.")
    return Finding("jars", "ok", f"{len(EMBEDDED)} in {settings.cache / 'jars'}, all as pinned")


def _archive(settings: Settings) -> Finding:
    jars = [settings.cache / "jars" / jar.file for jar in EMBEDDED]
    if find_archive(settings.cache, find_java(settings.spark.java_home), jars):
        return Finding("fast start", "ok", "class archive ready")
    return Finding("fast start", "warn", "no class archive, so Spark takes twice as long to start", "lake setup")


def _memory(settings: Settings) -> Finding:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MB
    heap = heap_for(settings.spark.driver_memory)
    enough = machine >= _MIN_MEMORY_MB
    amounts = f"{machine} MB in the machine, {heap} for Spark's heap"
    return Finding("memory", "ok" if enough else "warn", amounts, "" if enough else "Set spark.driver_memory to 1g.")


def _disk(settings: Settings) -> Finding:
    free_mb = {path: shutil.disk_usage(_existing(path)).free // _MB for path in (settings.home, settings.cache)}
    low = [f"{free} MB free at {path}" for path, free in free_mb.items() if free < _MIN_DISK_MB]
    if low:
        return Finding("disk", "warn", ", ".join(low), "Free some space, or move the lake: LAKE_HOME, LAKE_CACHE.")
    return Finding("disk", "ok", f"{min(free_mb.values())} MB free")


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _home(settings: Settings) -> Finding:
    home = LocalHome(settings.home, settings.shared).ready()
    return Finding("lake", "ok", str(home.folder))


def _catalog(settings: Settings) -> Finding:
    used = resolve_profile(settings).catalog
    if used.uri or used.kind not in ("", DEFAULT_CATALOG):
        open_backend(settings).catalog.ensure_ready()
        return _tables(settings)
    file = LocalHome(settings.home).catalog_file
    if not file.exists():
        return Finding("catalog", "ok", "empty")
    try:
        with sqlite3.connect(file, timeout=5) as db:
            problem = db.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as exc:
        problem = str(exc)
    if problem != "ok":
        return Finding(
            "catalog", "fail", f"{file}: {problem}", "Restore catalog.db from a backup; the data files are intact."
        )
    return _tables(settings)


def _tables(settings: Settings) -> Finding:
    tables = assemble(settings).tables()
    unreadable = [f"{table.name}: {table.problem}" for table in tables if table.problem]
    if unreadable:
        return Finding("catalog", "fail", "; ".join(unreadable[:3]), "Restore the missing files from a backup.")
    warnings = [f"{table.name} has {warning}" for table in tables for warning in table.warnings()]
    if warnings:
        return Finding("catalog", "warn", "; ".join(warnings[:3]), "See lake describe TABLE.")
    return Finding("catalog", "ok", f"{len(tables)} table{'s' * (len(tables) != 1)}, all readable")


def _storage(settings: Settings) -> Finding:
    """Whether new files can be written; in an object store only by writing one."""
    backend = open_backend(settings)
    if not backend.is_remote:
        folder = local_path(settings.warehouse) if settings.warehouse else backend.home.warehouse
        if os.access(_existing(folder), os.W_OK):
            return Finding("storage", "ok", str(folder))
        return Finding("storage", "warn", f"{folder} can only be read by this user", "Use a LAKE_HOME of your own.")
    warehouse = str(backend.settings.warehouse).rstrip("/")
    backend.files.write(f"{warehouse}/{_PROBE}", b"")
    return Finding("storage", "ok", f"{warehouse}, writable")


def _servers(settings: Settings) -> Finding:
    """Whether the stack's servers that the profile uses accept connections; those of the user's own are left out."""
    used, stack = profile_of(settings).services, settings.stack
    own = {"storage": settings.s3.endpoint, "trino": settings.trino.url}
    names = [name for name in used if not own.get(name, settings.catalog.uri)]
    if not names:
        return Finding("servers", "ok", f"the profile {settings.profile} needs none that lake up starts")
    ports = {name: int(getattr(stack, f"{name}_port")) for name in names}
    down = [name for name, port in ports.items() if not accepts_connections(stack.host_of(name), port)]
    if down:
        return Finding("servers", "fail", f"not running: {', '.join(down)}", f"lake --profile {settings.profile} up")
    return Finding("servers", "ok", f"running: {', '.join(names)}")


def _duckdb(settings: Settings) -> Finding:
    if find_spec("duckdb") is None:
        return Finding("duckdb", "fail", "not installed", "pip install 'lakehouse[duckdb]'")
    assemble(settings).sql("select 1", engine="duckdb").rows()
    from importlib.metadata import version

    return Finding("duckdb", "ok", f"{version('duckdb')} with its Iceberg extension, offline")


def _library(name: str, extra: str, purpose: str) -> Finding:
    if find_spec(name) is None:
        return Finding(name, "warn", f"not installed: no {purpose}", f"pip install 'lakehouse[{extra}]'")
    from importlib.metadata import version

    return Finding(name, "ok", version(name))


def _spark(settings: Settings, deep: bool) -> Finding:
    if deep:
        lake = assemble(settings)
        rows = lake.sql("select 1 as one", engine="spark").rows()
        lake.close()
        return Finding("spark", "ok", f"{settings.spark.master}: answered {rows[0][0]}")
    if settings.spark.master != WARM:
        return Finding("spark", "ok", f"{settings.spark.master} (not tested; use lake doctor --deep)")
    health = spark_daemon(settings).health()
    if health and not health["answers"]:
        hint = "Wait until its work is done, or replace it: lake down spark. Its log: lake logs spark"
        return Finding("spark", "warn", f"process {health['pid']} runs, but Spark does not answer", hint)
    state = f"running, process {health['pid']}" if health else "not running; it starts on first use"
    return Finding("spark", "ok", state)
