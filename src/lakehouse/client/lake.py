"""A lake behind a service: the methods of `Lake`, each a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.client.calls import remote, request_for, send
from lakehouse.client.decode import decode
from lakehouse.client.keys import RemoteKeys
from lakehouse.client.messages import Request, as_json
from lakehouse.client.pipelines import RemotePipeline
from lakehouse.client.rows import ARROW, StreamedResult
from lakehouse.client.transport import Transport
from lakehouse.client.uploads import file_content, ingest_content
from lakehouse.core.errors import NotSupportedError, QueryRejectedError
from lakehouse.core.names import MAIN
from lakehouse.core.requests import DiffRequest, IngestRequest, QueryRequest, RunRequest
from lakehouse.core.result import Result
from lakehouse.core.tables import Drop, TableInfo
from lakehouse.lake import Lake
from lakehouse.lake.interface import LakeInterface, Progress, check_runs_from_main, silent
from lakehouse.lake.table import History, Table
from lakehouse.operations import BY_NAME

if TYPE_CHECKING:
    from lakehouse.client.refs import RemoteRefs
    from lakehouse.ingest.report import IngestReport
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.model import RunRecord
    from lakehouse.tables.diff import Diff

#: Statements that begin so change nothing, so they may be sent again without a key.
_READS = ("select", "show", "describe", "desc", "explain", "values")


class RemoteLake(LakeInterface):
    """A lake behind a service, on one branch. Use it as a context manager, or call `close()`. Threads may share it."""

    def __init__(self, service: Transport, branch: str = MAIN) -> None:
        self._service = service
        self._branch = branch

    @property
    def url(self) -> str:
        """The address of the service."""
        return str(self._service.address)

    def __repr__(self) -> str:
        return f"RemoteLake({self.url!r}, branch={self._branch!r})"

    def __getattr__(self, name: str) -> Any:
        from lakehouse.lake import Lake

        if not name.startswith("_") and hasattr(Lake, name):
            raise NotSupportedError(
                f"{name} works on a lake of this machine, and this one is behind {self.url}.",
                "Use open_lake() where the lake is.",
            )
        raise AttributeError(f"'RemoteLake' object has no attribute {name!r}")

    # ---- SQL and tables -----------------------------------------------------------------------------------------

    def query(self, request: QueryRequest, engine: str | None = None) -> Result:
        """Run a typed request; `sql` builds one. A large result arrives as it is read."""
        if request.files or request.settings or request.write:
            raise NotSupportedError("A service runs statements on its own tables only.", "Use open_lake() there.")
        if request.dialect:
            raise NotSupportedError(f"A service does not run SQL of {request.dialect}.", "Omit --dialect.")
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
        sent = Request(*BY_NAME["query"].route, content=as_json(body), accept=ARROW, repeatable=is_read)
        try:
            return StreamedResult.read(self._service.send(sent), request.limit)
        except QueryRejectedError as exc:
            exc.sql = exc.sql or request.sql
            raise

    def tables(self, names: Sequence[str] | None = None) -> list[TableInfo]:
        """Every table that the key may see, or those with these names; one that cannot be read has the reason in `problem`."""
        operation = BY_NAME["tables"]
        tables: list[TableInfo] = send(self, operation, request_for(operation, {"details": "true"}, self._branch))
        return [table for table in tables if names is None or str(table.name) in names]

    def table_names(self) -> list[str]:
        """The names of all tables that the key may see."""
        operation = BY_NAME["tables"]
        tables = self._service.pages(request_for(operation, {}, self._branch), operation.key)
        return [table["name"] for table in tables]

    def views(self) -> list[str]:
        """The names of all views that the key may see."""
        first_page = request_for(BY_NAME["tables"], {"page_size": "1"}, self._branch)
        views: list[str] = self._service.json(first_page)["views"]
        return views

    def table(self, name: str) -> Table:
        """A handle on one table; NoSuchTableError suggests similar names."""
        return Table(self, self.describe(name).name)

    def compare(self, request: DiffRequest) -> Diff:
        """Run a typed request; `diff` builds one."""
        return self._diff(str(request.table), request.start, request.end, request.key, request.limit)

    _diff = remote(LakeInterface.diff)
    ask = remote(Lake.ask)
    describe = remote(Lake.describe)
    inspect = remote(Lake.inspect)
    inspect_file = remote(Lake.inspect_file)
    history = remote(Lake.history, History)
    report = remote(Lake.report)
    rollback = remote(Lake.rollback)
    drop = remote(Lake.drop, lambda answer: None)
    undrop = remote(Lake.undrop)
    dropped = remote(Lake.dropped)

    def drops(self) -> list[Drop]:
        """All that `undrop` can restore: table, id and time of each drop."""
        shown = self._service.json(request_for(BY_NAME["dropped"], {}, self._branch))["drops"]
        return [decode(Drop, drop) for drop in shown]

    @property
    def keys(self) -> RemoteKeys:
        """The API keys of the service, for its admins."""
        return RemoteKeys(self._service)

    # ---- files --------------------------------------------------------------------------------------------------

    def ingest_files(self, request: IngestRequest, progress: Progress = silent) -> IngestReport:
        """Run a typed request; `ingest` builds one. Files of this machine are uploaded; s3:// addresses must be below serve.roots."""
        operation = BY_NAME["ingest"]
        content = ingest_content(request, self._on(request.branch))
        report: IngestReport = send(
            self, operation, Request(*operation.route, content=content, repeatable=False), progress
        )
        return report

    def _ingest_rows_file(self, file: Path, request: IngestRequest) -> IngestReport:
        from lakehouse.ingest.rows import MEDIA_TYPES

        operation = BY_NAME["ingest_rows"]
        query = {
            "key": ",".join(request.key),
            "mode": request.mode,
            "order_by": request.order_by,
            "contract": request.contract,
            "branch": self._on(request.branch),
        }
        path = request_for(operation, {"into": request.table}).path
        content = file_content(file, MEDIA_TYPES[file.suffix])
        report: IngestReport = send(self, operation, Request("POST", path, query, content, key=request.identity))
        return report

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, RemotePipeline]:
        """Every pipeline of the service by name."""
        operation = BY_NAME["pipelines"]
        shown = send(self, operation, request_for(operation, {}))
        return {pipeline["name"]: RemotePipeline.parse(pipeline) for pipeline in shown}

    def run_pipeline(
        self, pipeline: str | Pipeline | RemotePipeline, request: RunRequest, progress: Progress = silent
    ) -> RunRecord:
        """Run a typed request on the service; `run` builds one. Returns when it has ended; Ctrl-C cancels it."""
        check_runs_from_main(self._branch)
        if request.author or request.isolated:
            raise NotSupportedError(
                "A service records the owner of the key as author and chooses its Spark itself.",
                "Leave out author and isolated.",
            )
        name = pipeline.name if isinstance(pipeline, RemotePipeline) else pipeline
        if not isinstance(name, str):
            raise NotSupportedError(
                f"A service runs its own pipelines, and {name.name} is declared here.",
                "Add its module to `pipelines` of the service, and give its name.",
            )
        fields = ("partitions", "tables", "publish", "light", "id", "message")
        body = {field: getattr(request, field) for field in fields}
        operation = BY_NAME["start_run"]
        record: RunRecord = send(self, operation, request_for(operation, {"pipeline": name, **body}), progress)
        return record

    runs = remote(Lake.runs)
    run_record = remote(Lake.run_record)
    run_log = remote(Lake.run_log)
    resume = remote(Lake.resume)

    # ---- maintenance --------------------------------------------------------------------------------------------

    health = remote(Lake.health)
    maintain = remote(Lake.maintain)
    verify = remote(Lake.verify)

    # ---- branches -----------------------------------------------------------------------------------------------

    def branch(self, name: str) -> RemoteLake:
        """This lake on a branch: everything done with the returned lake stays on that branch."""
        lake = _BranchLake(self._service, name.lower())
        if name.lower() != MAIN:
            lake.dropped()  # raises NoSuchBranchError
        return lake

    def branches(self) -> list[str]:
        """The branches besides main."""
        operation = BY_NAME["branches"]
        return [branch["name"] for branch in send(self, operation, request_for(operation, {}))]

    @property
    def refs(self) -> RemoteRefs:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …"""
        from lakehouse.client.refs import RemoteBranches, RemoteLog, RemoteRefs

        return RemoteRefs(RemoteBranches(self._service), RemoteLog(self._service))

    def _on(self, branch: str = "") -> str:
        """The branch as a parameter; empty for main."""
        chosen = (branch or self._branch).lower()
        return "" if chosen == MAIN else chosen

    def close(self) -> None:
        """Close the connections to the service."""
        self._service.close()


class _BranchLake(RemoteLake):
    """A lake on a branch, which shares its connections with the lake it came from."""

    def close(self) -> None:
        """Nothing to release: the lake that it came from owns the connections."""
