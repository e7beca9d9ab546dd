"""Plan which partitions of a table to rebuild, and why: the same plan for `lake plan` and for a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadPartitionError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Source, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.runs.code import code_fingerprint
from lakehouse.runs.context import RunContext
from lakehouse.runs.lineage import changed_since, fingerprints_of, has_new_rows, inputs_of, latest_note, merged_note
from lakehouse.runs.reads import Part
from lakehouse.tables.spark import in_partitions

REQUESTED, NEW_SOURCE, CHANGED_SOURCE = "requested", "new source", "changed source"
DELETED_SOURCE, CHANGED_CODE, NEVER_BUILT = "deleted at the source", "changed code", "not built yet"

#: Of a table of files: they are listed when the run ingests them.
NEW_FILES = "new files, if there are any"


@dataclass(frozen=True)
class TablePlan:
    """What a run would do to one table."""

    table: str
    partitions: Mapping[str, str] = field(default_factory=dict)
    """Why each partition is to be rebuilt."""
    reason: str = ""
    """Why a table without partitions is to be rebuilt."""
    accepts_code: bool = False
    """The code has changed, and is accepted without a rebuild."""

    @property
    def is_empty(self) -> bool:
        return not self.partitions and not self.reason


def layout_of(table: Table) -> tuple[str, ...]:
    """The partition fields that a table declares, as Iceberg's metadata writes them: `day(at)` is days(at)."""
    fields = re.findall(r"[^,(]+(?:\([^)]*\))?", table.partition_by.lower())
    compact = [re.sub(r"\s*([(,])\s*", r"\1", field).strip().replace(",", ", ") for field in fields]
    return tuple(re.sub(r"^(year|month|day|hour)\(", r"\1s(", field).replace(" )", ")") for field in compact if field)


class PartitionPlan:
    """The partitions of a table to rebuild, and the state of its inputs.

    Args:
        before: the table's snapshots before the run, newest first.
    """

    def __init__(self, context: RunContext, table: Table, before: Sequence[Snapshot]) -> None:
        self._context, self._table, self._before = context, table, before
        self._column = context.pipeline.partition_column(table)
        self._fingerprints: dict[str, str] = {}
        self.gone: set[str] = set()
        """Partitions that the source no longer has: their rows are removed."""
        self.code = code_fingerprint(table)

    def plan(self) -> TablePlan:
        """What to rebuild, and why."""
        if self._column:
            partitions = self._partitions()
            accepts = self._context.accepts_code and bool(self._outdated() - set(partitions))
            return TablePlan(self._table.name, partitions, accepts_code=accepts)
        changed = self._has_other_code()
        accepts = self._context.accepts_code and changed
        return TablePlan(self._table.name, reason=self._reason(changed and not accepts), accepts_code=accepts)

    def _partitions(self) -> dict[str, str]:
        """The partitions to rebuild; of several reasons, the first counts."""
        reasons: dict[str, str] = {}

        def add(keys: Iterable[str], reason: str) -> None:
            for key in keys:
                reasons.setdefault(key, reason)

        add(self._context.requested, REQUESTED)
        for source in self._table.sources:
            for reason, keys in self._from_source(source).items():
                add(keys, reason)
        for upstream in self._table.upstream:
            add(self._from_input(upstream), f"changed input {upstream}")
        # Who requests partitions tries new code on them; the next run without a request rebuilds the others.
        if not self._context.requested and not self._context.accepts_code:
            add(self._outdated(), CHANGED_CODE)
        return dict(sorted(reasons.items()))

    def inputs(self) -> dict[str, str]:
        """The current snapshot of each input table."""
        inputs = {}
        for name in self._table.upstream:
            snapshots = self._context.lineage(name)
            inputs[name] = snapshots[0].id if snapshots else ""
        return inputs

    def _reason(self, other_code: bool) -> str:
        """Why a table without partitions must be rebuilt; empty if it need not be."""
        if self._table.name in self._context.named:
            return REQUESTED
        if other_code:
            return CHANGED_CODE
        if not self._before and not self._table.sources and self._has_inputs():
            return NEVER_BUILT
        seen = inputs_of(self._before)
        for name in self._table.upstream:
            if name in self._context.built or has_new_rows(self._context.lineage(name), seen.get(name, "")):
                return f"changed input {name}"
        for source in self._table.sources:
            known = latest_note(self._before, "fingerprint")
            context = self._context.source_context("", latest_note(self._before, "cursor"))
            if source.fingerprint is None or not known or source.fingerprint(context) != known:
                return CHANGED_SOURCE if self._before else NEW_SOURCE
        return ""

    def _has_inputs(self) -> bool:
        """Whether all input tables exist, or are built before this table."""
        names = self._table.upstream
        return all(name in self._context.built or self._context.tables.find(TableName.parse(name)) for name in names)

    def fingerprints(self, keys: Sequence[str]) -> dict[str, str]:
        """The source's fingerprint of each partition; the source is listed again if reading added partitions."""
        if not set(keys) <= set(self._fingerprints):
            for source in self._table.sources:
                fingerprints = source.available(self._context.source_context("", "")) if source.available else {}
                self._fingerprints = {**fingerprints, **self._fingerprints}
        return {key: self._fingerprints[key] for key in keys if key in self._fingerprints}

    def code_notes(self, keys: Iterable[str] | None) -> dict[str, str]:
        """The note that partitions, or the whole table, were built with the code of now."""
        return {"code": self.code} if keys is None else {"codes": json.dumps(dict.fromkeys(keys, self.code))}

    def accepted_notes(self) -> dict[str, str]:
        """The note that everything in the table counts as built with the code of now."""
        return self.code_notes(self._built() if self._column else None)

    # ---- code ---------------------------------------------------------------------------------------------------

    def _has_other_code(self) -> bool:
        known = latest_note(self._before, "code")
        return (bool(known) and known != self.code) or (not known and self._has_other_layout())

    def _has_other_layout(self) -> bool:
        """Whether a table of an older release, which did not note its code, is partitioned in another way."""
        if not self._before or any("codes" in snapshot.notes for snapshot in self._before):
            return False
        return self._context.iceberg.describe(self._table.table_name).partitioning != layout_of(self._table)

    def _outdated(self) -> set[str]:
        """The partitions that were built with other code. Those without a note count as built with the oldest known code."""
        codes = merged_note(self._before, "codes")
        if all(codes[key] == self.code for key in self._noted()) and not self._has_other_layout():
            return set()
        return {key for key in self._built() if codes.get(key, "") != self.code}

    def _built(self, keys: Sequence[str] | None = None) -> set[str]:
        """The partitions of this table, or those of them that are given; one may have no rows, as rules or a join left none."""
        part = Part(self._table.name, self._column) if keys is None else self._context.part(self._table.name, keys)
        return self._values(part) | (self._noted() if keys is None else self._noted() & set(keys))

    def _noted(self) -> set[str]:
        """The partitions that a run has built, without those that the source no longer has."""
        removed = {key for key, fingerprint in fingerprints_of(self._before).items() if not fingerprint}
        return merged_note(self._before, "codes").keys() - removed

    # ---- sources ------------------------------------------------------------------------------------------------

    def _from_source(self, source: Source) -> dict[str, set[str]]:
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
        known = {key: value for key, value in fingerprints_of(self._before).items() if value}
        if requested:
            selected = {REQUESTED: requested}
        else:
            changed = {key for key, value in available.items() if key in known and known[key] != value}
            # A source that lists nothing at all is more likely unreachable than empty.
            self.gone = set(known) - set(available) if source.deletes and available else set()
            selected = {NEW_SOURCE: set(available) - set(known), CHANGED_SOURCE: changed, DELETED_SOURCE: self.gone}
        keys = set().union(*selected.values())
        self._fingerprints |= {key: available.get(key, "") for key in keys if key in available or key in self.gone}
        return selected

    # ---- inputs -------------------------------------------------------------------------------------------------

    def _from_input(self, upstream: str) -> set[str]:
        """The partitions of an input that changed since this table was built, and later ones that look back at them."""
        input_table, seen = self._context.table(upstream), inputs_of(self._before).get(upstream, "")
        if input_table is None:
            # It has no partitions of this pipeline: every partition is built from all of its rows.
            has_changed = bool(self._before) and has_new_rows(self._context.lineage(upstream), seen)
            return self._built() if has_changed else set()
        built = set(self._context.built.get(upstream, ()))
        snapshots = self._context.lineage(upstream)
        if not snapshots:
            if not built:
                self._context.progress(f"{self._table.name}: {upstream} has no rows yet")
            return built | self._looking_back_at(built)
        column = self._context.pipeline.partition_column(input_table)
        changed = changed_since(snapshots, seen, column)
        if changed is None:
            return built | self._values(Part(upstream, column))
        return built | changed | self._looking_back_at(built | changed)

    def _looking_back_at(self, changed: set[str]) -> set[str]:
        context, table = self._context, self._table
        assert context.pipeline.partitions is not None
        if not table.lookback or not changed or not context.iceberg.has(table.table_name):
            return set()
        later = with_neighbours(context.pipeline.partitions, sorted(changed), after=table.lookback)
        return self._built(later)

    def _values(self, part: Part) -> set[str]:
        """The partitions that a table has, among those of the part."""
        context = self._context
        if context.tables.find(TableName.parse(part.table)) is None:
            return set()
        values = context.reads.keys(part)
        if values is not None:
            return values
        rows = context.rows_of(part.table)
        if part.keys is not None:
            rows = rows.where(in_partitions(context.partition_keys(part.column, part.keys)))
        return {str(row[0]) for row in rows.select(part.column).distinct().collect()}
