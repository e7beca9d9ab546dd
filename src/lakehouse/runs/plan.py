"""Plan which partitions of a table to rebuild."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.errors import BadPartitionError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Source, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.runs.context import RunContext
from lakehouse.runs.lineage import changed_since, fingerprints_of, inputs_of, latest_note, lineage
from lakehouse.runs.reads import Part
from lakehouse.tables.spark import in_partitions


class PartitionPlan:
    """The partitions of a table to rebuild, and the state of its inputs.

    Args:
        before: the table's snapshots before the run, newest first.
    """

    def __init__(self, context: RunContext, table: Table, before: Sequence[Snapshot]) -> None:
        self._context, self._table, self._before = context, table, before
        self._column = context.pipeline.partition_column(table)
        self._fingerprints: dict[str, str] = {}

    def partitions(self) -> list[str]:
        """The partitions to rebuild: requested ones, and those whose source or inputs changed."""
        partitions: set[str] = set()
        for source in self._table.sources:
            partitions |= self._from_source(source)
        for upstream in self._table.upstream:
            partitions |= self._from_input(upstream)
        if partitions and self._table.upstream:
            partitions |= set(self._context.requested)
        return sorted(partitions)

    def inputs(self) -> dict[str, str]:
        """The current snapshot of each input table."""
        inputs = {}
        for name in self._table.upstream:
            snapshots = lineage(self._context.iceberg, TableName.parse(name))
            inputs[name] = snapshots[0].id if snapshots else ""
        return inputs

    def has_changed(self) -> bool:
        """Whether a table without partitions must be rebuilt: an input has another snapshot, or a source other content."""
        if self.inputs() != inputs_of(self._before):
            return True
        for source in self._table.sources:
            if source.fingerprint is None:
                return True
            known = latest_note(self._before, "fingerprint")
            context = self._context.source_context("", latest_note(self._before, "cursor"))
            if not known or source.fingerprint(context) != known:
                return True
        return False

    def fingerprints(self, keys: Sequence[str]) -> dict[str, str]:
        """The source's fingerprint of each partition; the source is listed again if reading added partitions."""
        if not set(keys) <= set(self._fingerprints):
            for source in self._table.sources:
                fingerprints = source.available(self._context.source_context("", "")) if source.available else {}
                self._fingerprints = {**fingerprints, **self._fingerprints}
        return {key: self._fingerprints[key] for key in keys if key in self._fingerprints}

    def _from_source(self, source: Source) -> set[str]:
        available: dict[str, str] = {}
        requested = set(self._context.requested)
        if source.available is not None:
            available = dict(source.available(self._context.source_context("", "")))
        elif not requested:
            raise BadPartitionError(
                f"{source.name} cannot list its partitions.", "Name some: --partition, or --from and --to."
            )
        if not available and not requested:
            folder = self._context.source_context("", "").settings.get("path", "")
            self._context.progress(f"{source.name} has nothing to read{' in ' + folder if folder else ''}")
        known = fingerprints_of(self._before)
        selected = requested or {key for key, fingerprint in available.items() if known.get(key) != fingerprint}
        self._fingerprints |= {key: available[key] for key in selected if key in available}
        return selected

    def _from_input(self, upstream: str) -> set[str]:
        """The partitions of an input that changed since this table was built, and later ones that look back at them."""
        input_table = self._context.table(upstream)
        if input_table is None:
            return set()  # a table of another pipeline is read as a whole whenever this table is rebuilt
        snapshots = lineage(self._context.iceberg, input_table.table_name)
        if not snapshots:
            self._context.progress(f"{self._table.name}: {upstream} has no rows yet")
            return set()
        column = self._context.pipeline.partition_column(input_table)
        seen = inputs_of(self._before).get(upstream, "")
        changed = changed_since(snapshots, seen, column)
        if changed is None:
            return self._values(Part(upstream, column))
        return changed | self._looking_back_at(changed)

    def _looking_back_at(self, changed: set[str]) -> set[str]:
        context, table = self._context, self._table
        assert context.pipeline.partitions is not None
        if not table.lookback or not changed or not context.iceberg.has(table.table_name):
            return set()
        later = with_neighbours(context.pipeline.partitions, sorted(changed), after=table.lookback)
        return self._values(context.part(table.name, later))

    def _values(self, part: Part) -> set[str]:
        """The partitions that a table has, among those of the part."""
        context = self._context
        values = context.reads.keys(part)
        if values is not None:
            return values
        rows = context.rows_of(part.table)
        if part.keys is not None:
            rows = rows.where(in_partitions(context.partition_keys(part.column, part.keys)))
        return {str(row[0]) for row in rows.select(part.column).distinct().collect()}
