"""What the tools answer: few facts, under stable names, as a model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from lakehouse.core.jsonable import jsonable
from lakehouse.core.result import Result
from lakehouse.core.tables import Snapshot, TableInfo

if TYPE_CHECKING:
    from lakehouse.agent.answer import Answer
    from lakehouse.agent.semantics import Entity
    from lakehouse.maintenance.health import TableHealth
    from lakehouse.runs.model import RunRecord
    from lakehouse.tables.diff import Diff
    from lakehouse.versioning.diff import TableChange

#: A longer text is cut: one value must not fill a model's context.
_LONGEST_TEXT = 1000


class ColumnFacts(BaseModel):
    name: str
    type: str = Field(description="Spark SQL type")
    comment: str = ""


class TableFacts(BaseModel):
    name: str
    format: str
    columns: list[ColumnFacts]
    key: list[str] = []
    partitioning: list[str] = []
    rows: int | None = None
    snapshot: str = ""
    changed_at: str = ""
    problem: str = ""

    @classmethod
    def of(cls, info: TableInfo) -> TableFacts:
        current = info.current
        return cls(
            name=str(info.name),
            format=info.format,
            columns=[
                ColumnFacts(name=column.name, type=column.type, comment=column.comment) for column in info.columns
            ],
            key=list(info.key),
            partitioning=list(info.partitioning),
            rows=current.rows_total if current else None,
            snapshot=current.id if current else "",
            changed_at=jsonable(current.at) if current else "",
            problem=info.problem,
        )


class TableList(BaseModel):
    tables: list[TableFacts]


class Rows(BaseModel):
    """The rows of a statement."""

    columns: list[ColumnFacts]
    rows: list[list[Any]]
    is_cut: bool = Field(False, description="There are more rows than the limit, or texts that were cut.")
    engine: str = ""

    @classmethod
    def of(cls, result: Result, limit: int) -> Rows:
        fetched = result.rows()
        rows = [[_short(jsonable(value)) for value in row] for row in fetched[:limit]]
        return cls(
            columns=[ColumnFacts(name=column.name, type=column.type) for column in result.columns],
            rows=rows,
            is_cut=len(fetched) > limit or any(_is_short(value) for row in rows for value in row),
            engine=result.engine,
        )


class Answered(BaseModel):
    """The answer to a question, or why there is none."""

    answered: bool
    reading: str = Field("", description="How the question was understood")
    sql: str = ""
    columns: list[str] = []
    rows: list[list[Any]] = []
    snapshots: dict[str, str] = Field({}, description="The snapshot of each table that was read")
    reason: str = Field("", description="Why it was refused")
    choices: list[str] = Field([], description="What to ask instead")

    @classmethod
    def of(cls, answer: Answer) -> Answered:
        return cls(**{name: value for name, value in answer.as_dict().items() if name in cls.model_fields})


class Metrics(BaseModel):
    entity: str = Field(description="What one row of the table is called in questions")
    table: str
    description: str = ""
    synonyms: list[str] = []
    time: str = Field("", description="The dimension that periods are about")
    metrics: dict[str, str] = Field(description="SQL of each metric")
    dimensions: dict[str, str] = Field(description="Kind of each dimension: text, number, key, time or boolean")

    @classmethod
    def of(cls, entity: Entity) -> Metrics:
        return cls(
            entity=entity.name,
            table=entity.table,
            description=entity.description[:_LONGEST_TEXT],
            synonyms=list(entity.synonyms),
            time=entity.time,
            metrics={metric.name: metric.expression for metric in (entity.count, *entity.metrics.values())},
            dimensions={dimension.name: dimension.kind for dimension in entity.dimensions.values()},
        )


class SnapshotFacts(BaseModel):
    id: str
    at: str
    operation: str
    rows: int | None = Field(None, description="Rows of the table after it")
    added: int | None = None
    removed: int | None = None
    message: str = ""
    is_current: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotFacts:
        return cls(
            id=snapshot.id,
            at=jsonable(snapshot.at),
            operation=snapshot.operation,
            rows=snapshot.rows_total,
            added=snapshot.rows_added,
            removed=snapshot.rows_removed,
            message=snapshot.notes.get("lake.message", ""),
            is_current=snapshot.is_current,
        )


class History(BaseModel):
    snapshots: list[SnapshotFacts] = Field(description="Newest first")


class Changes(BaseModel):
    """What changed in a table between two times."""

    added: int
    removed: int
    changed: int
    rows: Rows

    @classmethod
    def of(cls, diff: Diff, limit: int) -> Changes:
        return cls(added=diff.added, removed=diff.removed, changed=diff.changed, rows=Rows.of(diff.rows, limit))


class Lineage(BaseModel):
    """What a table is built from, and what is built from it."""

    table: str
    pipeline: str = Field("", description="The pipeline that builds it; empty if none does")
    inputs: list[str] = Field([], description="Sources and tables that it is built from")
    outputs: list[str] = Field([], description="Tables that are built from it")

    @classmethod
    def of(cls, table: str, pipelines: Mapping[str, Any]) -> Lineage:
        declared = [(name, part) for name, pipeline in pipelines.items() for part in pipeline.tables]
        own = next(((name, part) for name, part in declared if part.name == table), None)
        outputs = [part.name for _, part in declared if table in _inputs(part)]
        return cls(table=table, pipeline=own[0] if own else "", inputs=_inputs(own[1]) if own else [], outputs=outputs)


class TableScore(BaseModel):
    table: str
    score: int = Field(description="0 to 100")
    reasons: list[str]

    @classmethod
    def of(cls, health: TableHealth) -> TableScore:
        reasons = [reason.text for reason in health.reasons]
        return cls(
            table=health.table, score=health.score, reasons=[*reasons, health.problem] if health.problem else reasons
        )


class Health(BaseModel):
    tables: list[TableScore]


class RunFacts(BaseModel):
    id: str
    pipeline: str
    state: str
    branch: str
    started_at: str
    ended_at: str = ""
    partitions: list[str] = []
    rows: int = 0
    rejected: int = 0
    error: str = ""

    @classmethod
    def of(cls, record: RunRecord) -> RunFacts:
        return cls(
            id=record.id,
            pipeline=record.pipeline,
            state=record.state,
            branch=record.branch,
            started_at=record.started_at,
            ended_at=record.ended_at,
            partitions=list(record.partitions),
            rows=record.rows,
            rejected=record.rejected,
            error=str(record.error.get("message", "")),
        )


class OwnRun(RunFacts):
    """A run whose result is on a branch of its own."""

    next_steps: list[str] = Field([], description="Commands for a person: an agent does not merge")


class Runs(BaseModel):
    runs: list[RunFacts] = Field(description="Newest first")


class BranchFacts(BaseModel):
    branch: str
    next_steps: list[str] = Field([], description="Commands for a person: an agent does not merge")


class ChangedTable(BaseModel):
    table: str
    change: str = Field(description="added, removed or changed")
    rows_before: int | None = None
    rows_after: int | None = None
    conflict: bool = Field(False, description="main has changed the table too")

    @classmethod
    def of(cls, change: TableChange) -> ChangedTable:
        return cls(
            table=change.table,
            change=change.change,
            rows_before=change.rows_before,
            rows_after=change.rows_after,
            conflict=change.conflict,
        )


class BranchChanges(BaseModel):
    branch: str
    tables: list[ChangedTable]
    next_steps: list[str] = []


class Ingested(BaseModel):
    table: str
    branch: str
    inserted: int
    updated: int
    rejected: int
    next_steps: list[str] = []


def _inputs(table: Any) -> list[str]:
    return [str(getattr(source, "name", source)) for source in getattr(table, "inputs", ())]


def _short(value: Any) -> Any:
    return value[:_LONGEST_TEXT] + "…" if isinstance(value, str) and len(value) > _LONGEST_TEXT else value


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _LONGEST_TEXT + 1 and value.endswith("…")
