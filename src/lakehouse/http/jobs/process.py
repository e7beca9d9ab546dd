"""The process of one job: reads settings and request from standard input, writes progress and result as lines of JSON.

It ends with the service: an ingest or a run that ends so leaves its table as it was.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from typing import Any, TextIO

from lakehouse.config.load import parse_settings
from lakehouse.config.settings import Settings
from lakehouse.core.cancel import InterruptGuard
from lakehouse.core.errors import LakeError
from lakehouse.core.names import TableName
from lakehouse.core.refs import acting_for
from lakehouse.core.requests import SERVED_READ_OPTIONS, IngestRequest, ReadOptions, RunRequest
from lakehouse.http.answers import plain
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.runs.failure import user_code_errors


def main() -> None:
    """Do the job."""
    message = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the lines below
    InterruptGuard(lambda commits: _write(out, "committing", commits)).install()
    settings: Settings = replace(parse_settings(message["settings"]), origins=message["origins"])
    try:
        with acting_for(message["request"]["author"]), assemble(settings) as lake:
            _write(
                out,
                "result",
                plain(_do(lake, message["kind"], message["request"], lambda text: _write(out, "progress", text))),
            )
    except LakeError as exc:
        _write(out, "error", exc.as_dict())
    except KeyboardInterrupt:
        _write(out, "error", {"error": "canceled", "message": "The job was canceled.", "hint": ""})


def _do(lake: Lake, kind: str, request: dict[str, Any], progress: Any) -> Any:
    if kind == "ingest":
        progress("Ingesting")
        return lake.ingest_files(ingest_request(request))
    if kind == "maintain":
        return lake.maintain(*request["tables"], dry_run=request["dry_run"], only=request["only"], progress=progress)
    if kind == "verify":
        return lake.verify(*request["tables"], deep=request["deep"], against=request["against"], progress=progress)
    if kind == "resume":
        with user_code_errors(request["run"], request["run"]):
            return lake.resume(request["run"], progress)
    with user_code_errors(request["pipeline"], request["id"]):
        return lake.run_pipeline(request["pipeline"], run_request(request), progress)


def ingest_request(request: dict[str, Any]) -> IngestRequest:
    """The typed request of an ingest."""
    given = request["options"]
    read = {name: given[name] for name in SERVED_READ_OPTIONS if given.get(name) is not None}
    if words := read.pop("null_words", ()):
        read["null_words"] = tuple(words)
    named = {
        name: given[name]
        for name in (
            "mode",
            "order_by",
            "format",
            "contract",
            "partition_by",
            "sort_by",
            "force",
            "dry_run",
            "branch",
            "identity",
        )
        if given.get(name)
    }
    return IngestRequest(
        tuple(request["sources"]),
        TableName.parse(given["into"]),
        key=tuple(given.get("key") or ()),
        read=ReadOptions(**read),
        light=bool(given.get("light")),
        names=request.get("names", {}),
        **named,
    )


def run_request(request: dict[str, Any]) -> RunRequest:
    """The typed request of a run."""
    return RunRequest(
        tuple(request["partitions"]),
        tuple(request["tables"]),
        request["publish"],
        request["light"],
        request["id"],
        message=request["message"],
    )


def _write(out: TextIO, name: str, value: Any) -> None:
    out.write(json.dumps({name: value}) + "\n")
    out.flush()


def _end_with_the_service() -> None:
    while sys.stdin.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
