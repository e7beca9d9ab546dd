"""`lake run`: the same assets, materialised in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.core.errors import LakeError, NotInstalledError, PipelineError
from lakehouse.lake import Lake
from lakehouse.orchestrate.resource import RESOURCE, LakeResource
from lakehouse.pipelines import Pipeline, Table
from lakehouse.runs.model import new_run_id, reason

if TYPE_CHECKING:
    from lakehouse.runs.model import RunRecord


@dataclass(frozen=True)
class Wanted:
    """A run as the command line asks for it."""

    pipeline: Pipeline
    partitions: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    publish: bool = True
    light: bool = False
    run_id: str = ""
    message: str = ""

    @property
    def needs_spark(self) -> bool:
        """Whether a table is made by a transformation; a watched folder may have nothing new, or do without."""
        return not self.light and any(isinstance(table, Table) for table in self.pipeline.chosen(self.tables))


def run_in_process(lake: Lake, wanted: Wanted, say: Callable[[str], None]) -> RunRecord:
    """Materialise a pipeline's assets here and now; the record of the run, or the error that stopped it."""
    if wanted.needs_spark:
        lake.begin_spark()  # which takes as long as Dagster takes to be imported
    try:
        import dagster as dg
    except ImportError as exc:
        raise NotInstalledError("Dagster", "orchestrate") from exc
    from lakehouse.orchestrate.assets import asset_key, pipeline_assets

    door = LakeResource(lake, lake.refs.author, say)
    assets = pipeline_assets(wanted.pipeline)
    config = {
        "partitions": list(wanted.partitions),
        "publish": wanted.publish,
        "light": wanted.light,
        "run_id": wanted.run_id or new_run_id(),
        "message": wanted.message,
    }
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [assets],
            selection=[asset_key(name) for name in wanted.tables] or None,
            resources={RESOURCE: door},
            run_config={
                "ops": {wanted.pipeline.name: {"config": config}},
                # The person is told by `say`, and of errors by the command.
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            instance=instance,
            raise_on_error=False,
        )
    if isinstance(door.error, LakeError):
        raise door.error
    if not door.records:
        told = next((event.message for event in done.all_events if event.is_failure), "")
        why = reason(door.error) if door.error else told or "it said no more"
        hint = f"lake runs show {config['run_id']}; LAKE_DEBUG=1 shows the whole trace."
        raise PipelineError(f"The run of {wanted.pipeline.name} failed: {why}", hint) from door.error
    return door.records[-1]
