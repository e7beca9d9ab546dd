"""What runs left on their branches: published later, or dropped."""

from __future__ import annotations

from dataclasses import replace

from lakehouse.core.errors import NoSuchRunError, RunBlockedError, RunConflictError
from lakehouse.core.names import TableName
from lakehouse.runs.model import RunRecord
from lakehouse.runs.run import Runner


def publish(runner: Runner, run: str) -> RunRecord:
    """Publish what a run left on its branch, if nobody has changed its tables since."""
    record = runner.log.get(run)
    if record.state != "kept":
        raise RunBlockedError(
            f"The run {record.id} is {record.state}: only one that ended well and was kept is published.",
            f"Look at it with: lake runs show {record.id}",
        )
    if record.branch not in runner.catalog.branches():
        raise NoSuchRunError(f"The branch {record.branch} is gone.", "lake branch list")
    base = {TableName.parse(name): start for name, start in record.base.items()}
    if not runner.catalog.publish(record.branch, base):
        raise RunConflictError(
            f"Others have changed tables of the run {record.id} since.", "Run the pipeline again on what they are now."
        )
    return runner.log.save(replace(record, state="published"))


def forget(runner: Runner, run: str) -> RunRecord:
    """Drop the branch that a run left; the record of it stays."""
    record = runner.log.get(run)
    if record.state == "running":
        raise RunBlockedError(f"The run {record.id} is still running.", "Stop it first.")
    runner.catalog.discard(record.branch)
    return runner.log.save(replace(record, state="dropped" if record.state == "kept" else record.state))
