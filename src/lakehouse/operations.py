"""The operations of the service, each declared once: its route, what it needs of its caller, and the method of `Lake` that it serves.

`http` takes method, path and rights of every route from here, and `client` builds the methods of `RemoteLake` from here.
The parameters of an operation are those of its method of the Python API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from lakehouse.core.dataclass import dataclass

#: What a route needs of its caller. PUBLIC needs no key at all.
PUBLIC, READ, WRITE, ADMIN = "public", "read", "write", "admin"


@dataclass(frozen=True)
class Operation:
    """One operation of the service."""

    name: str
    """Also the name of the route's function."""
    method: str
    path: str
    needs: str
    """public, read, write or admin."""
    lake: str = ""
    """The method of the Python API that it serves, by its qualified name; empty for what only a service has."""
    answer: str = ""
    """What the method returns, as `module:class`; `[]` at the end for a list. Empty for JSON as it is."""
    key: str = ""
    """The field of the response that holds the answer (default: all of it)."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the method that the route calls otherwise."""
    on_branch: bool = False
    """The branch of the lake is a parameter of the route."""
    is_paged: bool = False
    """The response is one page of a list."""
    is_job: bool = False
    """The response is a job; its result is the answer."""
    once: bool = False
    """It changes something, so it takes an Idempotency-Key."""
    repeatable: bool = False
    """Doing it twice leaves what doing it once left: after a crash it may be done again."""
    uploads: bool = False
    """Its body is a file, not JSON."""

    is_unlimited: bool = False
    """It takes no slot of its caller's limits: its calls are requests of their own, with the same key."""

    @property
    def route(self) -> tuple[str, str]:
        """Method and path."""
        return self.method, self.path


def _get(name: str, path: str, needs: str = READ, **facts: object) -> Operation:
    return replace(Operation(name, "GET", path, needs), **facts)  # type: ignore[arg-type] # fields of Operation


def _post(name: str, path: str, needs: str = WRITE, **facts: object) -> Operation:
    return replace(Operation(name, "POST", path, needs, once=True), **facts)  # type: ignore[arg-type]


def _delete(name: str, path: str, needs: str = WRITE, **facts: object) -> Operation:
    return replace(Operation(name, "DELETE", path, needs, once=True, repeatable=True), **facts)  # type: ignore[arg-type]


def _on_table(*operations: Operation) -> Iterator[Operation]:
    """Operations on the table `name` of the lake's branch."""
    for operation in operations:
        yield replace(operation, on_branch=True, renames={"name": "table", **operation.renames})


_INFO, _SNAPSHOT = "lakehouse.core.tables:TableInfo", "lakehouse.core.tables:Snapshot"
_REF, _RESULT = "lakehouse.core.refs:Ref", "lakehouse.core.result:Result"
_RUN, _INGESTED = "lakehouse.runs.model:RunRecord", "lakehouse.ingest.report:IngestReport"
_LINE = "lakehouse.versioning.log:LogLine"
_DIFF, _REPORT = "lakehouse.tables.diff:Diff", "lakehouse.tables.report:TableReport"

OPERATIONS: tuple[Operation, ...] = (
    # ---- the service --------------------------------------------------------------------------------------------
    _get("openapi", "/openapi.json", PUBLIC),
    _get("healthz", "/healthz", PUBLIC),
    _get("readyz", "/readyz", PUBLIC),
    _get("docs", "/docs", PUBLIC),
    _get("root", "/", PUBLIC),
    _get("metrics", "/metrics"),
    _get("whoami", "/whoami"),
    _get("audit", "/audit", ADMIN),
    _post("query_audit", "/audit/query", ADMIN, once=False),
    _get("keys", "/keys", ADMIN),
    _post("create_key", "/keys", ADMIN, once=False),
    _delete("revoke_key", "/keys/{key_id}", ADMIN),
    _post("rotate_key", "/keys/{key_id}/rotate", ADMIN, once=False),
    _post("mcp", "/mcp", READ, once=False, is_unlimited=True),
    # ---- the console --------------------------------------------------------------------------------------------
    _get("ui_home", "/ui"),
    _get("ui_table", "/ui/t/{table}"),
    _get("ui_sql", "/ui/sql"),
    _get("ui_branches", "/ui/b"),
    _get("ui_branch", "/ui/b/{name}"),
    _get("ui_runs", "/ui/runs"),
    _get("ui_run", "/ui/runs/{run}"),
    _get("ui_lineage", "/ui/lineage"),
    _get("ui_health", "/ui/health"),
    _get("ui_ingest", "/ui/ingest"),
    _get("ui_ask", "/ui/ask"),
    _get("ui_sign_in", "/ui/sign-in", PUBLIC),
    _post("ui_open_session", "/ui/sign-in", PUBLIC, once=False),
    _get("ui_link", "/ui/link", PUBLIC),
    _post("ui_sign_out", "/ui/sign-out", READ, once=False),
    _get("ui_static", "/ui/static/{version}/{name:path}", PUBLIC),
    # ---- SQL ----------------------------------------------------------------------------------------------------
    _post("query", "/query", READ, lake="Lake.query"),
    _get("queries", "/queries"),
    _delete("cancel_query", "/queries/{query_id}", READ),
    _post("create_statement", "/statements", READ),
    _get("statement_state", "/statements/{statement_id}"),
    _get("statement_chunk", "/statements/{statement_id}/result/chunks/{number}"),
    _post("cancel_statement", "/statements/{statement_id}/cancel", READ, repeatable=True),
    _post("format_sql", "/format", READ, once=False),
    _post("ask", "/ask", READ, lake="Lake.ask", answer="lakehouse.agent.answer:Answer", on_branch=True, once=False),
    # ---- tables -------------------------------------------------------------------------------------------------
    _get("tables", "/tables", lake="Lake.tables", answer=f"{_INFO}[]", key="tables", on_branch=True, is_paged=True),
    _get("dropped", "/dropped", lake="Lake.dropped", key="tables", on_branch=True),
    *_on_table(
        _get("describe", "/tables/{table}", lake="Lake.describe", answer=_INFO),
        _get("schema", "/tables/{table}/schema"),
        _get("history", "/tables/{table}/history", lake="Lake.history", answer=f"{_SNAPSHOT}[]", key="snapshots", is_paged=True),
        _get("inspect", "/tables/{table}/inspect", lake="Lake.inspect", answer="lakehouse.core.inspection:MetadataNode"),
        _get("inspect_file", "/tables/{table}/inspect/file", lake="Lake.inspect_file", answer="lakehouse.core.inspection:MetadataFile"),
        _get("travel", "/tables/{table}/travel", lake="LakeInterface.travel"),
        _get("diff", "/tables/{table}/diff", lake="LakeInterface.diff", answer=_DIFF),
        _get("report", "/tables/{table}/report", lake="Lake.report", answer=_REPORT),
        _post("rollback", "/tables/{table}/rollback", lake="Lake.rollback", answer=_SNAPSHOT, key="snapshot", renames={"when": "to"}, repeatable=True),
        _delete("drop", "/tables/{table}", lake="Lake.drop"),
        _post("undrop", "/tables/{table}/undrop", lake="Lake.undrop", answer=_INFO, repeatable=True),
    ),
    # ---- files --------------------------------------------------------------------------------------------------
    _post("ingest", "/ingest", lake="Lake.ingest_files", answer=_INGESTED, is_job=True, repeatable=True, uploads=True),
    _post("ingest_rows", "/ingest/{table}", lake="LakeInterface.ingest_rows", answer=_INGESTED, renames={"into": "table"}, repeatable=True, uploads=True),
    # ---- jobs ---------------------------------------------------------------------------------------------------
    _get("jobs", "/jobs", is_paged=True),
    _get("job", "/jobs/{job_id}"),
    _get("job_events", "/jobs/{job_id}/events"),
    _post("cancel_job", "/jobs/{job_id}/cancel", repeatable=True),
    _post("resume_job", "/jobs/{job_id}/resume"),
    # ---- pipelines ----------------------------------------------------------------------------------------------
    _get("pipelines", "/pipelines", lake="Lake.pipelines", key="pipelines"),
    _post("start_run", "/pipelines/{pipeline}/runs", lake="Lake.run_pipeline", answer=_RUN, is_job=True, repeatable=True),
    _get("runs", "/runs", lake="Lake.runs", answer=f"{_RUN}[]", key="runs", is_paged=True),
    _get("run_record", "/runs/{run}", lake="Lake.run_record", answer=_RUN),
    _get("run_log", "/runs/{run}/log", lake="Lake.run_log", answer="lakehouse.runs.model:RunLogLine[]", key="lines"),
    _post("resume_run", "/runs/{run}/resume", lake="Lake.resume", answer=_RUN, is_job=True, repeatable=True),
    # ---- maintenance --------------------------------------------------------------------------------------------
    _get("health", "/health", lake="Lake.health", answer="lakehouse.maintenance.health:TableHealth[]", key="tables"),
    _post("maintain", "/maintain", lake="Lake.maintain", answer="lakehouse.maintenance.report:MaintenanceReport", is_job=True, repeatable=True),
    _post("verify", "/verify", ADMIN, lake="Lake.verify", answer="lakehouse.copies.findings:VerifyReport", is_job=True, repeatable=True),
    # ---- branches, tags and the log -----------------------------------------------------------------------------
    _get("branches", "/branches", lake="Branches.list", key="branches", is_paged=True),
    _post("create_branch", "/branches", lake="Branches.create", key="name", renames={"from_ref": "from"}),
    _get("diff_branch", "/branches/{name}/diff", lake="Branches.diff_rows", answer=_RESULT),
    _post("merge", "/branches/{name}/merge", lake="Branches.merge", key="commit"),
    _delete("drop_branch", "/branches/{name}", lake="Branches.drop"),
    _get("tags", "/tags", lake="Branches.tags", answer=f"{_REF}[]", key="tags", is_paged=True),
    _post("create_tag", "/tags", lake="Branches.create_tag", key="name", renames={"from_ref": "from"}),
    _delete("drop_tag", "/tags/{name}", lake="Branches.drop_tag"),
    _get("log", "/log", lake="Log.lines", answer=f"{_LINE}[]", key="commits"),
    _get("preview_revert", "/log/{commit}/revert", lake="Log.preview_revert", answer="lakehouse.versioning.diff:TableChange[]", key="changes"),
    _post("cherry_pick", "/log/{commit}/cherry-pick", lake="Log.cherry_pick", key="commit"),
    _post("revert", "/log/{commit}/revert", lake="Log.revert", key="commit"),
)  # fmt: skip

BY_NAME: Mapping[str, Operation] = {operation.name: operation for operation in OPERATIONS}
BY_ROUTE: Mapping[tuple[str, str], Operation] = {operation.route: operation for operation in OPERATIONS}
BY_LAKE_METHOD: Mapping[str, Operation] = {operation.lake: operation for operation in OPERATIONS if operation.lake}
