"""Mark the snapshots that a statement commits, so that its own commit can be told from those of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.engines.spark.errors import ended_jvm_ignored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS, _FIELD = "org.apache.iceberg.spark.CommitMetadata", "COMMIT_PROPERTIES"


@contextmanager
def commits_marked(session: SparkSession, mark: tuple[str, str] | None) -> Iterator[None]:
    """While the block runs, Iceberg notes a name and value in every snapshot that this thread commits.

    Iceberg has a public way to do so for callers in Java alone, and no setting that reaches a DELETE of whole files.
    """
    if mark is None:
        yield
        return
    jvm = session._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    held = jvm.java.lang.Class.forName(_CLASS, True, loader).getDeclaredField(_FIELD)
    held.setAccessible(True)
    properties = held.get(None)  # of the thread
    properties.set(jvm.java.util.Collections.singletonMap(*mark))
    try:
        yield
    finally:
        with ended_jvm_ignored():
            properties.remove()
