"""What of a table is due: the partitions to make anew, and what its inputs and sources were when it was made."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.errors import BadPartitionError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Source, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.runs.context import RunContext
from lakehouse.runs.lineage import changed_since, fingerprints_of, inputs_of, lineage


class PartitionPlan:
    """A table of the pipeline before it is made.

    Args:
        before: the snapshots that led to what it is now, the newest first.
    """

    def __init__(self, scene: RunContext, table: Table, before: Sequence[Snapshot]) -> None:
        self._scene, self._table, self._before = scene, table, before
        self._column = scene.pipeline.slice_of(table)
        self._fingerprints: dict[str, str] = {}

    def slices(self) -> list[str]:
        """The partitions to make: those asked for, those whose source changed, those whose inputs did."""
        found: set[str] = set()
        for source in self._table.sources:
            found |= self._from_source(source)
        for upstream in self._table.upstream:
            found |= self._from_input(upstream)
        if found and self._table.upstream:
            found |= set(self._scene.asked)
        return sorted(found)

    def inputs(self) -> dict[str, str]:
        """The snapshot that each table it reads has now."""
        found = {}
        for name in self._table.upstream:
            chain = lineage(self._scene.iceberg, TableName.parse(name))
            found[name] = chain[0].id if chain else ""
        return found

    def inputs_moved(self) -> bool:
        """Whether any of them is another one than it was made from."""
        return self.inputs() != inputs_of(self._before)

    def fingerprints(self, slices: Sequence[str]) -> dict[str, str]:
        """What the source looked like for each partition; asked again for those that only reading brought here."""
        if not set(slices) <= set(self._fingerprints):
            for source in self._table.sources:
                found = source.available(self._scene.reading("", "")) if source.available else {}
                self._fingerprints |= {key: mark for key, mark in found.items() if key not in self._fingerprints}
        return {key: self._fingerprints[key] for key in slices if key in self._fingerprints}

    def _from_source(self, source: Source) -> set[str]:
        published: dict[str, str] = {}
        if source.available is not None:
            published = dict(source.available(self._scene.reading("", "")))
        elif not self._scene.asked:
            raise BadPartitionError(
                f"{source.name} cannot say which partitions it has.", "Name some: --partition, or --from and --to."
            )
        known = fingerprints_of(self._before)
        wanted = set(self._scene.asked) or {key for key, mark in published.items() if known.get(key) != mark}
        self._fingerprints |= {key: published[key] for key in wanted if key in published}
        return wanted

    def _from_input(self, upstream: str) -> set[str]:
        """The partitions of an input that changed since this table was made from it, and the later ones that look back."""
        their_table = self._scene.table(upstream)
        if their_table is None:
            return set()  # a table of another pipeline is read as a whole, whenever this one has something to do
        column = self._scene.pipeline.slice_of(their_table)
        seen = inputs_of(self._before).get(upstream, "")
        changed = changed_since(lineage(self._scene.iceberg, their_table.title), seen, column)
        if changed is None:
            every = self._scene.rows_of(upstream).select(column).distinct().collect()
            return {str(row[0]) for row in every}
        return changed | self._looking_back_at(changed)

    def _looking_back_at(self, changed: set[str]) -> set[str]:
        scene, table = self._scene, self._table
        assert scene.pipeline.partitions is not None
        if not table.lookback or not changed or not scene.iceberg.has(table.title):
            return set()
        later = with_neighbours(scene.pipeline.partitions, sorted(changed), after=table.lookback)
        mine = scene.rows_of(table.name).where(scene.within(self._column, later))
        return {str(row[0]) for row in mine.select(self._column).distinct().collect()}
