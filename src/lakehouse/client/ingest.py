"""The body of POST /ingest: files of this machine to upload, or addresses that the service reads itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakehouse.client.messages import Content, as_json
from lakehouse.client.uploads import UploadFile, multipart
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.requests import IngestRequest, ReadOptions
from lakehouse.ingest.files.discover import discover

#: The options of `ReadOptions` that the service takes.
_READ = ("delimiter", "encoding", "header")


def ingest_content(request: IngestRequest, branch: str) -> Content:
    """The files and options of an ingest."""
    remote = [source for source in request.sources if "://" in source and not source.startswith("file://")]
    local = [source for source in request.sources if source not in remote]
    if remote and local:
        raise NotSupportedError(
            "An ingest over a service has files of this machine or addresses that the service reads, not both.",
            "Ingest them one after the other.",
        )
    options = _options(request, branch)
    if remote:
        return as_json({**options, "key": list(request.key), "sources": remote})
    files = [UploadFile(Path(file.path), Path(file.name).name, file.size) for file in discover(local)]
    return multipart({name: _text(value) for name, value in options.items()} | _key(request), files)


def _options(request: IngestRequest, branch: str) -> dict[str, Any]:
    """What differs from the default."""
    given: dict[str, Any] = {
        "into": str(request.table),
        "mode": request.mode,
        "format": request.format,
        "contract": request.contract,
        "order_by": request.order_by,
        "partition_by": request.partition_by,
        "sort_by": request.sort_by,
        "force": request.force,
        "dry_run": request.dry_run,
        "branch": branch,
    }
    read = {name: getattr(request.read, name) for name in _READ if getattr(request.read, name) is not None}
    known = ReadOptions(**read)
    if request.read != known:
        raise NotSupportedError(
            "A service reads files with the options delimiter, encoding and header only.",
            "Leave out the others, or ingest with open_lake() where the lake is.",
        )
    return {name: value for name, value in given.items() if value not in ("", False)} | read


def _key(request: IngestRequest) -> dict[str, str]:
    return {"key": ",".join(request.key)} if request.key else {}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
