"""The table operations of a lake behind a service; `RemoteLake` adds files, pipelines and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakehouse.client.decode import decode, decode_all
from lakehouse.client.messages import Request, as_json
from lakehouse.client.rows import ARROW, StreamedResult
from lakehouse.client.transport import Transport
from lakehouse.client.values import result_of
from lakehouse.core.errors import NotSupportedError, QueryRejectedError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import DiffRequest, QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.tables import Column, Snapshot, TableInfo
from lakehouse.lake.table import History, Table

if TYPE_CHECKING:
    from lakehouse.tables.diff import Diff
    from lakehouse.tables.report import TableReport

#: Statements that begin so change nothing, so they may be sent again without a key.
_READS = ("select", "show", "describe", "desc", "explain", "values")


class RemoteTables:
    """What a lake behind a service can do with tables, on its branch."""

    def __init__(self, service: Transport, branch: str = MAIN) -> None:
        self._service = service
        self._branch = branch

    def _on(self, branch: str = "") -> str:
        """The branch as a parameter; empty for main."""
        chosen = (branch or self._branch).lower()
        return "" if chosen == MAIN else chosen

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def sql(  # noqa: PLR0913 - one keyword per field of QueryRequest
        self,
        query: str,
        *,
        engine: str | None = None,
        as_of: str = "",
        limit: int | None = None,
        explain: bool = False,
        branch: str = "",
        parameters: Mapping[str, str | int | float | bool | None] | None = None,
    ) -> Result:
        """Run one statement of Spark SQL on the service. A large result arrives as it is read.

        Args:
            query: the statement.
            engine: `auto`, `duckdb`, `spark`, `trino` or an engine that is installed there (default: that of the service).
            as_of: read every table as of this WHEN, unless the statement has its own AS OF.
            limit: maximum number of rows (default: all; ResultTruncatedError if the service does not return all).
            explain: also report how the statement ran, in `result.explain`.
            branch: the branch to use (default: this lake's).
            parameters: values of the markers `:name` in the statement; they are bound, never written into its text.
        """
        return self.query(
            QueryRequest(query, as_of, limit, explain, branch=branch, parameters=parameters or {}), engine
        )

    def query(self, request: QueryRequest, engine: str | None = None) -> Result:
        """Run a typed request; `sql` builds one."""
        if request.files or request.settings or request.write:
            raise NotSupportedError("A service runs statements on its own tables only.", "Use open_lake() there.")
        body = {
            "sql": request.sql,
            "engine": engine or "",
            "as_of": request.as_of,
            "limit": request.limit,
            "explain": request.explain,
            "branch": self._on(request.branch),
            "parameters": dict(request.parameters),
        }
        first = request.sql.split(maxsplit=1)
        is_read = bool(first) and first[0].lower() in _READS
        sent = Request("POST", "/query", content=as_json(body), accept=ARROW, repeatable=is_read)
        try:
            return StreamedResult.read(self._service.send(sent), request.limit)
        except QueryRejectedError as exc:
            exc.sql = exc.sql or request.sql
            raise

    # ---- tables -------------------------------------------------------------------------------------------------

    def tables(self) -> list[TableInfo]:
        """Every table that the key may see; one that cannot be read has the reason in `problem`."""
        return decode_all(TableInfo, self._service.pages("/tables", "tables", branch=self._on(), details=True))

    def table_names(self) -> list[str]:
        """The names of all tables that the key may see."""
        return [each["name"] for each in self._service.pages("/tables", "tables", branch=self._on())]

    def table(self, name: str) -> Table:
        """A handle on one table; NoSuchTableError suggests similar names."""
        found = self._get(name, "/schema")
        return Table(self, TableName.parse(found["table"]))

    def describe(self, name: str) -> TableInfo:
        """Schema, partitioning, key and current snapshot of a table."""
        return decode(TableInfo, self._get(name))

    # ---- time ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> History:
        """Every snapshot of a table, oldest first."""
        found = self._service.pages(_path(name, "/history"), "snapshots", branch=self._on())
        return History(decode_all(Snapshot, found))

    def travel(self, name: str, when: str, limit: int | None = None) -> Result:
        """The rows of a table as of a WHEN."""
        return self.sql(f"SELECT * FROM {TableName.parse(name)}", as_of=when, limit=limit)

    def diff(self, name: str, start: str, end: str = "", key: Sequence[str] = (), limit: int = 1000) -> Diff:
        """The rows and columns that changed between two WHENs (`end` defaults to now)."""
        return self.compare(DiffRequest(TableName.parse(name), start, end, key, limit))

    def compare(self, request: DiffRequest) -> Diff:
        """Run a typed request; `diff` builds one."""
        from lakehouse.tables.diff import Diff

        found = self._get(
            str(request.table),
            "/diff",
            start=request.start,
            end=request.end,
            key=",".join(request.key),
            limit=request.limit,
        )
        columns = decode_all(Column, found.pop("columns"))
        rows = result_of(columns, found.pop("rows"), "duckdb")
        return Diff(
            **{
                **found,
                "table": TableName.parse(found["table"]),
                "key": tuple(found["key"]),
                "columns_added": tuple(decode_all(Column, found["columns_added"])),
                "columns_removed": tuple(decode_all(Column, found["columns_removed"])),
                "columns_changed": tuple(
                    (decode(Column, old), decode(Column, new)) for old, new in found["columns_changed"]
                ),
            },
            rows=rows,
        )

    def report(self, name: str, start: str = "", end: str = "") -> TableReport:
        """How a table grew, snapshot by snapshot; `start` and `end` default to its first and last snapshot."""
        from lakehouse.tables.report import TableReport

        return decode(TableReport, self._get(name, "/report", start=start, end=end))

    def rollback(self, name: str, when: str) -> Snapshot:
        """Restore a table to a WHEN. Its history stays, so a rollback can be rolled back."""
        done = self._service.post(_path(name, "/rollback"), {"to": when}, branch=self._on())
        return decode(Snapshot, done["snapshot"])

    def drop(self, name: str) -> None:
        """Drop a table softly: its files stay until maintenance, so `undrop` can restore it."""
        self._service.delete(_path(name), branch=self._on())

    def undrop(self, name: str) -> TableInfo:
        """Restore the table that was dropped last under a name."""
        return decode(TableInfo, self._service.post(_path(name, "/undrop"), branch=self._on()))

    def dropped(self) -> list[str]:
        """The tables that `undrop` can restore."""
        found: list[str] = self._service.get("/dropped", branch=self._on())["tables"]
        return found

    def _get(self, table: str, part: str = "", **query: Any) -> Any:
        return self._service.get(_path(table, part), branch=self._on(), **query)


def _path(table: str, part: str = "") -> str:
    """The address of a table; a name that is no table's is refused before it is sent."""
    return f"/tables/{quote(str(TableName.parse(table)), safe='')}{part}"
