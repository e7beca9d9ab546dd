"""Questions in plain words, within the rights of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from lakehouse.core.errors import StatementRefusedError
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.statement import TableUse
from lakehouse.core.tables import TableInfo
from lakehouse.http.execution import Execution, check_depth, check_rights
from lakehouse.http.registry import Branch, Routes
from lakehouse.http.service import Call, CallContext
from lakehouse.http.streaming import in_thread
from lakehouse.lake.questions import BranchWriter, check_may_change
from lakehouse.query.route import CheckedStatement

routes = Routes("ask")
_MOST_QUESTIONS = 50


class AskBody(BaseModel):
    """The body of POST /ask."""

    question: str = Field(description="A question in plain words.", max_length=1_000)
    conversation: list[str] = Field(
        default_factory=list, description="The questions before it, which it may refer to.", max_length=_MOST_QUESTIONS
    )
    run: bool = Field(True, description="False reads the question and writes the statement, without running it.")
    write: bool = Field(
        False, description="The question asks for a change, which is made on a new branch and never merged here."
    )

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"question": "how many leads by city"}}}


@routes.operation()
async def ask(call: CallContext, body: AskBody, branch: Branch = "") -> dict[str, Any]:
    """Answer a question, or say why it cannot be answered: `answered` is false, with a reason and choices. With `write` it is a
    change, on a branch of its own: a person merges or drops it."""

    def answer() -> dict[str, Any]:
        asker = call.lake(branch).asker(CallReader(call, branch))
        if body.write:
            check_may_change(branch.lower())
            return asker.change(body.question, _writer(call), body.run).as_dict()
        return asker.ask(body.question, body.conversation, body.run).as_dict()

    return await in_thread(call.service.queries, answer)


def _writer(call: Call) -> BranchWriter:
    """Makes changes within the rights of the caller, as POST /query does on the new branch."""

    def check(sql: str, branch: str) -> CheckedStatement:
        check_depth(sql)
        call.principal.check_change(branch)
        checked = call.lake().check(QueryRequest(sql))
        call.principal.check_tables(checked.tables)
        return checked

    def run(sql: str, branch: str) -> None:
        execution = Execution(call.service.queries, call, QueryRequest(sql, branch=branch), "", "arrow")
        execution.start()
        for _ in execution.pieces():
            pass

    def snapshot(table: str, branch: str) -> str:
        return call.lake(branch).history(table)[-1].id

    return BranchWriter(call.refs.branches, check, run, snapshot)


class CallReader:
    """Reads the tables that the caller may see, in a query process, within the limits of the service."""

    def __init__(self, call: Call, branch: str) -> None:
        self._call, self._branch, self._lake = call, branch, call.lake(branch)

    def tables(self) -> Sequence[TableInfo]:
        """The tables that the caller may see."""
        return self._lake.tables([name for name in self._lake.table_names() if self._call.sees(name)])

    def query(self, sql: str, limit: int, timeout_s: float | None = None) -> Result:
        """Run a statement as POST /query does."""
        import pyarrow

        request = self._request(sql, limit)
        execution = Execution(self._call.service.queries, self._call, request, "", "arrow").within(timeout_s)
        execution.start()
        table = pyarrow.ipc.open_stream(b"".join(execution.pieces())).read_all()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return Result(execution.columns, ListedRows(table.column_names, rows), Explain("duckdb", ""))

    def uses(self, sql: str) -> Sequence[TableUse]:
        """The tables that a read within the rights of the caller names."""
        check_depth(sql)
        checked = self._lake.check(self._request(sql, 1))
        check_rights(self._call, checked)
        if checked.kind != "read":
            raise StatementRefusedError("A question only reads.", "Send the change to POST /query.")
        return checked.statement.uses

    def _request(self, sql: str, limit: int) -> QueryRequest:
        return QueryRequest(sql, limit=limit, branch=self._branch.lower())

    def snapshot(self, table: str, when: str) -> str:
        """The id of a table's snapshot at a WHEN that the caller may use."""
        self._call.check_when(when)
        return self._lake.snapshot_at(self._call.table(table), when)

    def on(self, branch: str) -> CallReader:
        """A reader of another branch that the caller may use."""
        return CallReader(self._call, branch)
