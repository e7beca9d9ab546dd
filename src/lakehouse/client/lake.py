"""A lake behind a service: the methods of `Lake`, each a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakehouse.client.decode import decode, decode_all
from lakehouse.client.jobs import follow
from lakehouse.client.messages import Request
from lakehouse.client.pipelines import RemotePipeline
from lakehouse.client.refs import RemoteBranches, RemoteLog, RemoteRefs
from lakehouse.client.tables import RemoteTables
from lakehouse.client.uploads import file_content
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import IngestRequest, ReadOptions, RunRequest
from lakehouse.runs.model import RunRecord

if TYPE_CHECKING:
    import pyarrow

    from lakehouse.ingest.report import IngestReport
    from lakehouse.pipelines import Pipeline

Progress = Callable[[str], None]

#: Names of `Lake` that have no meaning for a lake on another machine.
_LOCAL_ONLY = ("spark", "folder", "transact", "export")


def _silent(text: str) -> None:
    """Report no progress."""


class RemoteLake(RemoteTables):
    """A lake behind a service, on one branch. Use it as a context manager, or call `close()`. Threads may share it."""

    @property
    def url(self) -> str:
        """The address of the service."""
        return str(self._service.address)

    def __repr__(self) -> str:
        return f"RemoteLake({self.url!r}, branch={self._branch!r})"

    def __getattr__(self, name: str) -> Any:
        if name in _LOCAL_ONLY:
            raise NotSupportedError(
                f"{name} works on a lake of this machine, and this one is behind {self.url}.",
                "Use open_lake() where the lake is.",
            )
        raise AttributeError(f"'RemoteLake' object has no attribute {name!r}")

    # ---- files --------------------------------------------------------------------------------------------------

    def ingest(  # noqa: PLR0913 - one keyword per field of IngestRequest
        self,
        *sources: str | Path,
        into: str,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        format: str = "",
        contract: str = "evolve",
        partition_by: str = "",
        sort_by: str = "",
        force: bool = False,
        read: ReadOptions | None = None,
        dry_run: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Upload files and ingest them into a table: one atomic commit, each file once. Returns when it is done.

        Args:
            sources: files, globs and folders of this machine, which are uploaded; or s3:// addresses below serve.roots,
                which the service reads.
            into: the table; it is created if missing.
            mode: append, upsert or replace (default: upsert with a key, else append).
            key: columns that identify a row.
            order_by: of several rows with one key, the highest value of this column wins (default: the last row).
            format: format of a new table (default: iceberg).
            contract: evolve, freeze or quarantine rows that do not fit the table's schema.
            partition_by: partition transforms of a new table, e.g. `days(ts)`.
            sort_by: sort order of a new table.
            force: ingest files again that were ingested before.
            read: how to read the files (default: detect).
            dry_run: report what would be done; write nothing.
            branch: the branch of the table (default: this lake's).
        """
        return self.ingest_files(
            IngestRequest(
                sources=tuple(str(source) for source in sources),
                table=TableName.parse(into),
                mode=mode,
                key=tuple(key),
                order_by=order_by,
                format=format,
                contract=contract,
                partition_by=partition_by,
                sort_by=sort_by,
                force=force,
                read=read or ReadOptions(),
                dry_run=dry_run,
                branch=branch,
            )
        )

    def ingest_files(self, request: IngestRequest, progress: Progress = _silent) -> IngestReport:
        """Run a typed request; `ingest` builds one."""
        from lakehouse.client.ingest import ingest_content
        from lakehouse.ingest.report import IngestReport

        content = ingest_content(request, self._on(request.branch))
        started = self._service.json(Request("POST", "/ingest", content=content, repeatable=False))
        return decode(IngestReport, follow(self._service, started["job"], progress))

    def ingest_rows(  # noqa: PLR0913 - one keyword per option
        self,
        rows: Iterable[Mapping[str, Any]] | pyarrow.Table,
        into: str,
        *,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        contract: str = "evolve",
        force: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Ingest rows at once, without Spark; the table is created if missing. The same rows are ingested once.

        Args:
            rows: dicts, or an Arrow table.
            force: ingest rows again that were ingested before.
        """
        from lakehouse.ingest.report import IngestReport
        from lakehouse.ingest.rows import MEDIA_TYPES, rows_file

        query = {
            "key": ",".join(key),
            "mode": mode,
            "order_by": order_by,
            "contract": contract,
            "force": "true" if force else "",
            "branch": self._on(branch),
        }
        path = f"/ingest/{quote(str(TableName.parse(into)), safe='')}"
        with rows_file(rows) as file:
            content = file_content(file, MEDIA_TYPES[file.suffix])
            return decode(IngestReport, self._service.json(Request("POST", path, query, content, repeatable=False)))

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, RemotePipeline]:
        """Every pipeline of the service by name."""
        found = [RemotePipeline.parse(each) for each in self._service.get("/pipelines")["pipelines"]]
        return {pipeline.name: pipeline for pipeline in found}

    def run(  # noqa: PLR0913 - one keyword per field of RunRequest
        self,
        pipeline: str | Pipeline | RemotePipeline,
        *partitions: str,
        tables: Sequence[str] = (),
        publish: bool = True,
        light: bool = False,
        id: str = "",
        author: str = "",
        message: str = "",
        progress: Progress = _silent,
    ) -> RunRecord:
        """Run a pipeline on the service as a transaction. Returns when it has ended; Ctrl-C cancels it.

        Args:
            pipeline: its name; a declaration of this program is refused.
            partitions: rebuild these (default: those whose source is new or has changed).
            tables: build only these tables (default: all).
            publish: False keeps the branch and leaves main unchanged.
            light: build without Spark, for tables that can be built so.
            id: makes the run idempotent: a run that was published under this id is not done again.
            author: refused: the service records the owner of the key.
            message: commit message.
            progress: called with each step.
        """
        request = RunRequest(partitions, tuple(tables), publish, light, id, author, message)
        return self.run_pipeline(pipeline, request, progress)

    def run_pipeline(
        self, pipeline: str | Pipeline | RemotePipeline, request: RunRequest, progress: Progress = _silent
    ) -> RunRecord:
        """Run a typed request; `run` builds one."""
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
        body = {
            "partitions": list(request.partitions),
            "tables": list(request.tables),
            "publish": request.publish,
            "light": request.light,
            "id": request.id,
            "message": request.message,
        }
        started = self._service.post(f"/pipelines/{quote(name, safe='')}/runs", body)
        return decode(RunRecord, follow(self._service, started["job"], progress))

    def runs(self) -> list[RunRecord]:
        """Every run, newest first."""
        return decode_all(RunRecord, self._service.pages("/runs", "runs"))

    def run_record(self, run: str) -> RunRecord:
        """The record of a run, by its id or a unique prefix of it."""
        return decode(RunRecord, self._service.get(f"/runs/{quote(run, safe='')}"))

    def resume(self, run: str, progress: Progress = _silent) -> RunRecord:
        """Continue a run that failed or was killed, from the tables it had finished."""
        started = self._service.post(f"/runs/{quote(run, safe='')}/resume")
        return decode(RunRecord, follow(self._service, started["job"], progress))

    # ---- branches -----------------------------------------------------------------------------------------------

    def branch(self, name: str) -> RemoteLake:
        """This lake on a branch: everything done with the returned lake stays on that branch."""
        if name.lower() != MAIN:
            self._service.get("/dropped", branch=name.lower())  # raises NoSuchBranchError
        return _BranchLake(self._service, name.lower())

    def branches(self) -> list[str]:
        """The branches besides main."""
        return [each["name"] for each in self._service.pages("/branches", "branches")]

    @property
    def refs(self) -> RemoteRefs:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …"""
        return RemoteRefs(RemoteBranches(self._service), RemoteLog(self._service))

    # ---- the connection -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections to the service."""
        self._service.close()

    def __enter__(self) -> RemoteLake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _BranchLake(RemoteLake):
    """A lake on a branch, which shares its connections with the lake it came from."""

    def close(self) -> None:
        """Nothing to release: the lake that it came from owns the connections."""
