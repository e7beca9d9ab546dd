"""The tools, documents and prompts: functions on a lake, which know nothing of a transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from lakehouse.agent.change import next_steps
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError, NotSupportedError
from lakehouse.core.names import MAIN
from lakehouse.mcp import answers
from lakehouse.query.sql.parser import parse

if TYPE_CHECKING:
    from lakehouse.agent.semantics import Entity
    from lakehouse.client import RemoteLake
    from lakehouse.lake import Lake

AnyLake: TypeAlias = "Lake | RemoteLake"

DEFAULT_ROWS, MOST_ROWS = 100, 1000

TableArg = Annotated[str, Field(description="namespace.table, as list_tables shows it", max_length=300)]
WhenArg = Annotated[str, Field(description="A snapshot id, a tag, an ISO time, or words such as yesterday")]
BranchArg = Annotated[str, Field(description="Branch (default: main)", max_length=128)]
OwnBranchArg = Annotated[str, Field(description="A branch that create_branch made; never main", max_length=128)]
LimitArg = Annotated[int, Field(description=f"Most rows to answer with, up to {MOST_ROWS}", ge=1, le=MOST_ROWS)]


@dataclass(frozen=True)
class Call:
    """What a tool works with: the lake with the rights of the caller, and where a long one tells how far it is."""

    lake: AnyLake
    progress: Callable[[str], None]

    def on(self, branch: str) -> AnyLake:
        """The lake on a branch; main is where it is already."""
        return self.lake.branch(branch) if branch and branch != MAIN else self.lake


# ---- tables ----------------------------------------------------------------------------------------------------------


def list_tables(call: Call, branch: BranchArg = "") -> answers.TableList:
    """List the tables with their columns, rows and current snapshots."""
    return answers.TableList(tables=[answers.TableFacts.of(table) for table in call.on(branch).tables()])


def describe_table(call: Call, table: TableArg, branch: BranchArg = "") -> answers.TableFacts:
    """Describe one table: columns with types and comments, key, partitioning, rows, current snapshot."""
    return answers.TableFacts.of(call.on(branch).describe(table))


def query(
    call: Call,
    sql: Annotated[str, Field(description="One SELECT in Spark SQL", max_length=100_000)],
    branch: BranchArg = "",
    limit: LimitArg = DEFAULT_ROWS,
) -> answers.Rows:
    """Run one SELECT in Spark SQL. A table may be read as of a time: `FROM t TIMESTAMP AS OF '…'`."""
    if parse(sql).kind != "read":
        raise ForbiddenError(
            "The tool query only reads.", "Change data on a branch with ingest or run_pipeline, or ask a person."
        )
    return answers.Rows.of(call.on(branch).sql(sql, limit=limit + 1), limit)


def ask(
    call: Call,
    question: Annotated[str, Field(description="A question in English", max_length=1000)],
    conversation: Annotated[list[str], Field(description="The questions before it, the oldest first")] = [],  # noqa: B006 - read only
) -> answers.Answered:
    """Answer a question in plain words by the lake's metrics, or refuse with a reason and choices; it never guesses."""
    return answers.Answered.of(call.lake.ask(question, conversation))


# ---- history ---------------------------------------------------------------------------------------------------------


def history(call: Call, table: TableArg, limit: LimitArg = 20) -> answers.History:
    """List the snapshots of a table, the newest first."""
    newest = sorted(call.lake.history(table), key=lambda snapshot: snapshot.at, reverse=True)[:limit]
    return answers.History(snapshots=[answers.SnapshotFacts.of(snapshot) for snapshot in newest])


def travel(call: Call, table: TableArg, when: WhenArg, limit: LimitArg = DEFAULT_ROWS) -> answers.Rows:
    """Read the rows of a table as of an earlier time."""
    return answers.Rows.of(call.lake.travel(table, when, limit + 1), limit)


def diff(
    call: Call,
    table: TableArg,
    start: WhenArg,
    end: Annotated[str, Field(description="As start (default: now)")] = "",
    limit: LimitArg = DEFAULT_ROWS,
) -> answers.Changes:
    """Compare a table at two times: rows added, removed and changed."""
    return answers.Changes.of(call.lake.diff(table, start, end, limit=limit), limit)


# ---- the lake --------------------------------------------------------------------------------------------------------


def lineage(call: Call, table: TableArg) -> answers.Lineage:
    """Say which pipeline builds a table, from what, and what is built from it."""
    return answers.Lineage.of(table, call.lake.pipelines())


def health(
    call: Call, table: Annotated[str, Field(description="namespace.table (default: all tables)")] = ""
) -> answers.Health:
    """Score how well tables are kept, with reasons: small files, old snapshots, deletes."""
    names = [table] if table else []
    return answers.Health(tables=[answers.TableScore.of(score) for score in call.lake.health(*names)])


def runs(call: Call, limit: LimitArg = 20) -> answers.Runs:
    """List the runs of pipelines, the newest first."""
    newest = sorted(call.lake.runs(), key=lambda record: record.started_at, reverse=True)[:limit]
    return answers.Runs(runs=[answers.RunFacts.of(record) for record in newest])


def diff_branch(call: Call, branch: OwnBranchArg) -> answers.BranchChanges:
    """Show what merging a branch would change, by table."""
    tables = [answers.ChangedTable.of(change) for change in call.lake.refs.branches.diff(branch)]
    return answers.BranchChanges(branch=branch, tables=tables, next_steps=list(next_steps(branch)))


# ---- changes, on a branch only ---------------------------------------------------------------------------------------


def create_branch(
    call: Call, name: Annotated[str, Field(description="Its name, such as agent_fix_prices", max_length=128)]
) -> answers.BranchFacts:
    """Create a branch of the whole lake to work on. Nothing is copied, and main is not changed."""
    call.lake.refs.branches.create(name)
    return answers.BranchFacts(branch=name, next_steps=list(next_steps(name)))


def run_pipeline(
    call: Call,
    pipeline: Annotated[str, Field(description="Its name; lineage tells which one builds a table")],
    partitions: Annotated[list[str], Field(description="(default: what is new)")] = [],  # noqa: B006 - read only
    light: Annotated[bool, Field(description="Build without Spark, for tables that can be built so")] = False,
) -> answers.OwnRun:
    """Run a pipeline on a branch that is made for the run, and leave it: main is as before. It is checked as every run is."""
    record = call.lake.run(pipeline, *partitions, publish=False, light=light, progress=call.progress)
    steps = list(next_steps(record.branch)) if record.state == "kept" else []
    return answers.OwnRun(**dict(answers.RunFacts.of(record)), next_steps=steps)


def ingest(
    call: Call,
    table: TableArg,
    rows: Annotated[list[dict[str, Any]], Field(description="The rows, as objects", min_length=1, max_length=1000)],
    branch: OwnBranchArg,
    key: Annotated[list[str], Field(description="Columns that identify a row: it is updated if it is there")] = [],  # noqa: B006
) -> answers.Ingested:
    """Write rows into a table on a branch; the table is created if there is none."""
    _check_branch(branch)
    report = call.on(branch).ingest_rows(rows, table, key=key)
    return answers.Ingested(
        table=str(report.table),
        branch=branch,
        inserted=report.inserted,
        updated=report.updated,
        rejected=report.rejected,
        next_steps=list(next_steps(branch)),
    )


def _check_branch(branch: str) -> None:
    if not branch or branch == MAIN:
        raise ForbiddenError("An agent changes a branch, never main.", "Make one with create_branch and name it.")


READING = (
    list_tables,
    describe_table,
    query,
    ask,
    history,
    travel,
    diff,
    lineage,
    health,
    runs,
    diff_branch,
)
WRITING = (create_branch, run_pipeline, ingest)

# ---- resources -------------------------------------------------------------------------------------------------------


def schema(call: Call, table: str) -> str:
    """The schema of a table as JSON."""
    return describe_table(call, table).model_dump_json()


def metrics(call: Call, table: str) -> str:
    """What the semantic layer says of a table, as JSON: metrics, dimensions, synonyms. `ask` understands these words."""
    entities = _entities(call.lake)
    if table not in entities:
        raise NotSupportedError(
            f"The semantic layer has nothing about {table}.", f"Choose from: {', '.join(entities)}."
        )
    return answers.Metrics.of(entities[table]).model_dump_json()


def _entities(lake: AnyLake) -> dict[str, Entity]:
    from lakehouse.lake import Lake

    if not isinstance(lake, Lake):
        raise NotSupportedError("The semantic layer of a lake behind a service is not a resource.", "Use ask.")
    return {entity.table: entity for entity in lake.asker().layer.entities.values()}


OF_TABLES = (schema, metrics)
DOCS = {
    "sql": "query takes one SELECT in Spark SQL. Name tables as namespace.table. Read the past with `t VERSION AS OF <snapshot id>`"
    " or `t TIMESTAMP AS OF '<time>'`. Every engine gives the same answer.",
    "questions": "ask takes a question in English: a number (how many, total, average), groups (by city, per month), periods (in"
    " January 2026, last week), conditions, ranks (top 5) and comparisons (compared with the previous month, with branch exp)."
    " lake://tables/{table}/metrics has the words that it knows. What it does not understand it refuses, with choices.",
    "branches": "Changes are made on a branch: create_branch, then ingest with that branch, then diff_branch;"
    " run_pipeline makes a branch of its own. A person merges it with `lake branch merge` or drops it with `lake branch drop`; no tool does.",
}

# ---- prompts ---------------------------------------------------------------------------------------------------------


def explore() -> str:
    """Get to know the lake."""
    return (
        "List the tables with list_tables. For the three that seem most important, describe each, query a few rows and"
        " its history, and tell me what it holds, how fresh it is and what builds it (lineage)."
    )


def explain_change(table: str, since: str = "yesterday") -> str:
    """Explain what changed in a table."""
    return (
        f"Compare the table {table} with {since} by the tool diff, look at its history and at the runs of the pipeline"
        " that builds it, and explain in a few sentences what changed and why."
    )


PROMPTS = (explore, explain_change)
