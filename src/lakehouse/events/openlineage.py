"""OpenLineage run events as JSON, written by hand: the format is small, and its library brings its own HTTP client."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from lakehouse.core import __version__
from lakehouse.core.dataclass import dataclass

_SPEC = "https://openlineage.io/spec"
_RUN_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_PRODUCER = f"urn:lakehouse:{__version__}"
_RUNS = uuid.UUID("6e0c1f9a-52b4-4c0e-9a3b-7b1f0d7a2c55")
"""The namespace in which a run's id is turned into the UUID that OpenLineage asks for."""


@dataclass(frozen=True)
class Dataset:
    """A table, or a source outside the lake."""

    namespace: str
    name: str
    columns: Sequence[tuple[str, str]] = ()
    """Names and types."""
    version: str = ""
    """Its snapshot."""
    rows: int | None = None
    """Rows that were written to it."""


@dataclass(frozen=True)
class Work:
    """A run of a pipeline, the build of one of its tables, or an ingest."""

    job: str
    run: str
    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()
    parent: tuple[str, str] | None = None
    """The job and the run that this is a part of."""
    error: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


def run_uuid(job: str, run: str) -> str:
    """The UUID of a run: the same in all of its events, also after it was resumed."""
    return str(uuid.uuid5(_RUNS, f"{job}/{run}"))


def run_event(kind: str, work: Work, namespace: str, at: datetime | None = None) -> dict[str, Any]:
    """An event of a run.

    Args:
        kind: START, COMPLETE, FAIL or ABORT.
        namespace: that of the job.
    """
    facets: dict[str, Any] = {}
    if work.parent is not None:
        job, run = work.parent
        facets["parent"] = _facet(
            "1-1-0/ParentRunFacet", run={"runId": run_uuid(job, run)}, job={"namespace": namespace, "name": job}
        )
    if work.error:
        facets["errorMessage"] = _facet("1-0-1/ErrorMessageRunFacet", message=work.error, programmingLanguage="python")
    if work.tags:
        facets["lakehouse_run"] = {"_producer": _PRODUCER, "_schemaURL": _RUN_EVENT, "id": work.run, **work.tags}
    return {
        "eventType": kind,
        "eventTime": (at or datetime.now(UTC)).isoformat(),
        "run": {"runId": run_uuid(work.job, work.run), "facets": facets},
        "job": {
            "namespace": namespace,
            "name": work.job,
            "facets": {
                "jobType": _facet(
                    "2-0-3/JobTypeJobFacet", processingType="BATCH", integration="LAKEHOUSE", jobType="PIPELINE"
                )
            },
        },
        "inputs": [_dataset(dataset) for dataset in work.inputs],
        "outputs": [_dataset(dataset, is_output=True) for dataset in work.outputs],
        "producer": _PRODUCER,
        "schemaURL": _RUN_EVENT,
    }


def _dataset(dataset: Dataset, is_output: bool = False) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if dataset.columns:
        fields = [{"name": name, "type": kind} for name, kind in dataset.columns]
        facets["schema"] = _facet("1-1-1/SchemaDatasetFacet", fields=fields)
    if dataset.version:
        facets["version"] = _facet("1-0-1/DatasetVersionDatasetFacet", datasetVersion=dataset.version)
    described = {"namespace": dataset.namespace, "name": dataset.name, "facets": facets}
    if is_output and dataset.rows is not None:
        described["outputFacets"] = {
            "outputStatistics": _facet("1-0-2/OutputStatisticsOutputDatasetFacet", rowCount=dataset.rows)
        }
    return described


def _facet(schema: str, **fields: Any) -> dict[str, Any]:
    version, name = schema.split("/")
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **fields}
