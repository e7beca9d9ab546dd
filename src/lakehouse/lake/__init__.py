"""A lake: what `open_lake()` returns and every entry point calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lakehouse.core.names import MAIN
from lakehouse.core.requests import RunRequest
from lakehouse.lake.files import FileMethods

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.maintenance.backup import BackupReport
    from lakehouse.maintenance.clone import CloneReport
    from lakehouse.maintenance.findings import VerifyReport
    from lakehouse.maintenance.restore import CopyReport
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.branches import RunBranches
    from lakehouse.runs.model import RunRecord
    from lakehouse.versioning.refs import Refs

Progress = Callable[[str], None]


def _silent(text: str) -> None:
    """Report no progress."""


class Lake(FileMethods):
    """An open lakehouse, on one branch. Use it as a context manager, or call `close()`.

    >>> with open_lake() as lake:
    ...     lake.sql("select count(*) from crm.leads").to_pandas()
    """

    @property
    def spark(self) -> SparkSession:
        """A PySpark session in this process with the lake's catalogs, started on first use."""
        return self._components.session.spark

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, Pipeline]:
        """Every pipeline by name: the built-in ones, and those of the modules that the settings name."""
        return self._components.pipelines()

    def run(  # noqa: PLR0913 - one keyword per field of RunRequest
        self,
        pipeline: str | Pipeline,
        *partitions: str,
        tables: Sequence[str] = (),
        publish: bool = True,
        light: bool = False,
        id: str = "",
        author: str = "",
        message: str = "",
        progress: Progress = _silent,
    ) -> RunRecord:
        """Run a pipeline as a transaction: on a branch of its own, checked, published to all tables at once.

        Args:
            pipeline: its name, or its declaration.
            partitions: rebuild these (default: those whose source is new or has changed).
            tables: build only these tables (default: all).
            publish: False keeps the branch and leaves main unchanged.
            light: build without Spark, for tables that can be built so.
            id: makes the run idempotent: a run that was published under this id is not done again.
            author: commit author (default: OS user).
            message: commit message.
            progress: called with each step.
        """
        request = RunRequest(partitions, tuple(tables), publish, light, id, author, message)
        return self.run_pipeline(pipeline, request, progress)

    def run_pipeline(self, pipeline: str | Pipeline, request: RunRequest, progress: Progress = _silent) -> RunRecord:
        """Run a typed request; `run` builds one."""
        from lakehouse.pipelines.registry import by_name

        declared = by_name(self.pipelines(), pipeline) if isinstance(pipeline, str) else pipeline
        return self._run_observed(declared, request, progress)

    def _run_observed(self, pipeline: Pipeline, request: RunRequest, progress: Progress) -> RunRecord:
        from lakehouse.runs.model import new_run_id

        identified = replace(request, id=request.id or new_run_id())
        runner = self._components.runner()
        return self._components.observer().run(pipeline, identified, lambda: runner.run(pipeline, identified, progress))

    def transact(
        self,
        name: str,
        work: Callable[[SparkSession, str], None],
        request: RunRequest | None = None,
        progress: Progress = _silent,
    ) -> RunRecord:
        """Run any Spark code as a transaction: `work` gets a session on a new branch, and the branch's name."""
        from lakehouse.pipelines import Pipeline
        from lakehouse.runs.model import new_run_id

        request = request or RunRequest()
        identified = replace(request, id=request.id or new_run_id())
        runner = self._components.runner()
        return self._components.observer().run(
            Pipeline(name, ()), identified, lambda: runner.transact(name, work, identified, progress)
        )

    def runs(self) -> list[RunRecord]:
        """Every run, newest first."""
        return self._components.runner().records()

    def run_record(self, run: str) -> RunRecord:
        """The record of a run, by its id or a unique prefix of it."""
        return self._components.runner().record(run)

    def resume(self, run: str, progress: Progress = _silent) -> RunRecord:
        """Continue a run that failed or was killed, from the tables it had finished."""
        from lakehouse.pipelines.registry import by_name
        from lakehouse.runs.recovery import resume_request

        record = self.run_record(run)
        return self._run_observed(by_name(self.pipelines(), record.pipeline), resume_request(record), progress)

    # ---- branches -----------------------------------------------------------------------------------------------

    def branch(self, name: str) -> Lake:
        """This lake on a branch: everything done with the returned lake stays on that branch.

        >>> with lake.branch("exp") as exp:
        ...     exp.sql("delete from crm.leads where id = 7")
        """
        return _BranchLake(self._components, self._components.tables.on_existing(name).branch)

    def branches(self) -> list[str]:
        """The branches besides main."""
        return list(self._components.tables.branches())

    @property
    def refs(self) -> Refs[RunBranches]:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …"""
        return self._components.refs()

    # ---- copies -------------------------------------------------------------------------------------------------

    def backup(self, dest: str | Path, full: bool = False, progress: Progress = _silent) -> BackupReport:
        """Back the lake up to a folder or s3://bucket/prefix, while writers work. What is there is not copied again.

        Args:
            full: read every file again, also those that an earlier backup holds.
        """
        return self._components.copies().backup(dest, full, progress)

    def verify(
        self, *tables: str, deep: bool = False, against: str | Path = "", progress: Progress = _silent
    ) -> VerifyReport:
        """Check every file and ref of the lake, or of some tables; nothing is changed.

        Args:
            deep: also read all data.
            against: also compare with the newest backup in this folder or bucket.
        """
        return self._components.copies().verify(tables, deep, against, progress)

    def clone(self, home: str | Path, from_ref: str = MAIN) -> CloneReport:
        """Create a lake in another folder that shares this lake's data files and never changes them."""
        return self._components.copies().clone(home, from_ref)

    def migrate(self, profile: str, progress: Progress = _silent) -> CopyReport:
        """Copy an embedded lake to the servers of another profile, with its history, branches and tags."""
        return self._components.copies().migrate(profile, progress)

    # ---- the lake itself ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The lake's folder on this machine."""
        return self._components.folder

    def close(self) -> None:
        """Release what this process opened. The Spark daemon keeps running."""
        self._components.session.stop()
        self._components.attached.stop()

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _BranchLake(Lake):
    """A lake on a branch, which shares its components with the lake it came from."""

    def close(self) -> None:
        """Nothing to release: the lake that it came from owns the session."""
