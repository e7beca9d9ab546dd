"""Ingest: files as a job on Spark, or rows at once without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field, ValidationError, field_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lakehouse.core.errors import BadRequestError, ForbiddenError, MediaTypeError
from lakehouse.core.names import TableName
from lakehouse.http.answers import plain
from lakehouse.http.jobs.process import ingest_request
from lakehouse.http.registry import Branch, Routes, Table
from lakehouse.http.rows import prepare, suffix_of
from lakehouse.http.service import Call, CallContext
from lakehouse.http.uploads import Upload, check_size, new_upload, save_body, save_multipart
from lakehouse.ingest.files import discover
from lakehouse.ingest.rows import rows_identity
from lakehouse.lake.assemble import parse_size

routes = Routes("ingest")
M = TypeVar("M", bound=BaseModel)
V = TypeVar("V")


class IngestOptions(BaseModel):
    """How files are ingested; the same options as `lake ingest` has."""

    into: str = Field(description="The table; created if missing.", min_length=1, max_length=300)
    key: list[str] = Field(default_factory=list, max_length=100, description="Columns that identify a row.")
    mode: Literal["", "append", "upsert", "replace"] = ""
    format: Literal["", "iceberg", "hudi"] = ""
    contract: Literal["evolve", "freeze", "quarantine"] = "evolve"
    order_by: str = Field("", max_length=300)
    partition_by: str = Field("", max_length=1000)
    sort_by: str = Field("", max_length=1000)
    null_words: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Texts that mean NULL (default: the empty text, NULL, NA and similar).",
    )
    delimiter: str | None = Field(None, max_length=1)
    encoding: str | None = Field(None, max_length=40)
    header: bool | None = None
    decimal: Literal[".", ","] = Field(".", description="Decimal separator of a CSV.")
    thousands: str = Field("", max_length=1, description="Separator of thousands in a CSV.")
    sheet: str = Field("", max_length=300, description="Sheet of a workbook (default: the first).")
    skip_rows: int = Field(0, ge=0, description="Lines of a CSV, or rows of a sheet, above the header.")
    flatten: bool = Field(False, description="Unpack structs: a.b becomes the column a_b.")
    force: bool = Field(False, description="Ingest content again that was ingested before.")
    dry_run: bool = False
    branch: str = Field("", max_length=128)

    model_config = {"extra": "forbid"}

    @field_validator("null_words", mode="before")
    @classmethod
    def _parse_words(cls, value: Any) -> Any:
        """A field of a form is a text."""
        return json.loads(value) if isinstance(value, str) else value


class IngestBody(IngestOptions):
    """The body of POST /ingest for files that the server can read."""

    sources: list[str] = Field(min_length=1, max_length=1000, description="Paths or s3:// addresses below serve.roots.")

    model_config = {
        "extra": "forbid",
        "json_schema_extra": {"example": {"into": "crm.leads", "sources": ["/data/leads.csv"], "key": ["id"]}},
    }


_REQUEST_BODY: Any = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": IngestBody.model_json_schema(ref_template="#/components/schemas/{model}")},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["into", "file"],
                    "properties": {
                        "into": {"type": "string"},
                        "key": {"type": "string", "description": "Columns, with commas."},
                        "null_words": {"type": "string", "description": "Texts that mean NULL, as a JSON array."},
                        "mode": {"type": "string"},
                        "format": {"type": "string"},
                        "file": {"type": "string", "format": "binary"},
                    },
                }
            },
        },
    }
}
_ROWS_BODY: Any = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}, "example": [{"id": 1}]},
            "text/csv": {"schema": {"type": "string"}, "example": "id,name\n1,Eve\n"},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@routes.operation(status_code=202, openapi_extra=_REQUEST_BODY)
async def ingest(call: CallContext, request: Request) -> dict[str, Any]:
    """Ingest files on Spark, in a job: uploaded ones, or files below serve.roots. 202 with the job's address."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _ingest_upload(call, request)
    if kind != "application/json":
        raise MediaTypeError(
            f"The content type {kind[:100]!r} is not one of this route.", "multipart/form-data or JSON."
        )
    body = _validated(IngestBody.model_validate_json, await request.body())
    for source in body.sources:
        await run_in_threadpool(check_root, source, call.service.settings.serve.roots)
    options = body.model_dump(exclude={"sources"})
    return await run_in_threadpool(_start, call, options, body.sources, "")


async def _ingest_upload(call: Call, request: Request) -> dict[str, Any]:
    upload = new_upload(call.service.jobs.folder)
    try:
        await save_multipart(request, upload)
        fields: dict[str, Any] = dict(upload.fields)
        if "key" in fields:
            fields["key"] = [part.strip() for part in str(fields["key"]).split(",") if part.strip()]
        options = _validated(IngestOptions.model_validate, fields).model_dump()
        if not upload.files:
            raise BadRequestError("The request has no file.", "Send at least one as multipart/form-data.")
        await run_in_threadpool(_check_files, call, upload)
        return await run_in_threadpool(_start, call, options, [str(file) for file in upload.files], str(upload.folder))
    except BaseException:
        upload.remove()
        raise


def _start(call: Call, options: dict[str, Any], sources: list[str], folder: str) -> dict[str, Any]:
    table = TableName.parse(call.table(options["into"]))
    branch = options["branch"].lower()
    if not options["dry_run"]:
        call.principal.check_change(branch)
    call.lake(branch)
    request = {
        "options": {**options, "branch": branch},
        "sources": sources,
        "folder": folder,
        "names": {source: f"upload:{FilePath(source).name}" for source in sources} if folder else {},
        "namespaces": [table.namespace],
    }
    ingest_request(request)  # raises what is wrong with the options
    job = call.service.jobs.start("ingest", request, call.principal, branch)
    return {"job": job.shown(), "links": {"job": f"/jobs/{job.id}", "events": f"/jobs/{job.id}/events"}}


@routes.operation(openapi_extra=_ROWS_BODY)
async def ingest_rows(  # noqa: PLR0913 - one parameter per option
    call: CallContext,
    request: Request,
    table: Table,
    key: Annotated[str, Query(description="Columns that identify a row, with commas.", max_length=1000)] = "",
    mode: Literal["", "append", "upsert"] = "",
    contract: Literal["evolve", "freeze", "quarantine"] = "evolve",
    order_by: Annotated[str, Query(max_length=300)] = "",
    dry_run: Annotated[bool, Query(description="Report what would be done; write nothing.")] = False,
    branch: Branch = "",
) -> Any:
    """Ingest the rows of the body at once, without a JVM; creates the table.

    Two requests with equal bodies are two ingests, unless they have the same Idempotency-Key.
    """
    if not dry_run:
        call.principal.check_change(branch)
    name, suffix = call.table(table), suffix_of(request.headers.get("content-type", ""))
    lake = call.lake(branch)
    upload = new_upload(call.service.jobs.folder)
    options = {
        "into": name,
        "key": [part.strip() for part in key.split(",") if part.strip()],
        "mode": mode,
        "contract": contract,
        "order_by": order_by,
        "light": True,
        "dry_run": dry_run,
        "branch": branch.lower(),
        "identity": rows_identity(call.stable_id),
    }
    limit = parse_size("serve.max_upload", call.service.settings.serve.max_upload)
    try:
        path = await save_body(request, upload, f"rows.{suffix}")
        await run_in_threadpool(check_size, path, limit)
        path = await run_in_threadpool(prepare, path, limit)
        typed = ingest_request(
            {"options": options, "sources": [str(path)], "names": {str(path): f"upload:{path.name}"}}
        )
        report = await run_in_threadpool(lake.ingest_files, typed)
    finally:
        upload.remove()  # not in a thread: nobody waits for one if the request is canceled
    call.note(rows=report.rows_read)
    return plain(report)


def _check_files(call: Call, upload: Upload) -> None:
    limit = parse_size("serve.max_upload", call.service.settings.serve.max_upload)
    for file in upload.files:
        check_size(file, limit)


def check_root(source: str, roots: tuple[str, ...]) -> None:
    """Refuse a source on the server that is not below one of the roots, whatever its path is written like."""
    hint = f"The roots are: {', '.join(roots)}." if roots else "None is set: serve.roots in lake.toml."
    if "://" in source:
        inside = ".." not in source.split("/") and any(source.startswith(root.rstrip("/") + "/") for root in roots)
        if not inside or not source.startswith("s3://"):
            raise ForbiddenError(f"{source[:200]!r} is not below one of serve.roots.", hint)
        return
    # What comes before a pattern decides; a pattern cannot lead upwards, because `..` is refused.
    fixed = FilePath(source.partition("*")[0].partition("?")[0].partition("[")[0] or "/")
    local = [FilePath(root).expanduser().resolve() for root in roots if "://" not in root]
    if ".." in FilePath(source).parts or not FilePath(source).is_absolute() or "\0" in source:
        raise ForbiddenError(f"{source[:200]!r} is not an absolute path without `..`.", hint)
    # A file found through a folder or a pattern may be a link that leads out.
    paths = [fixed] if not any(fixed.resolve().is_relative_to(root) for root in local) else _files(source)
    if not all(any(path.resolve().is_relative_to(root) for root in local) for path in paths):
        raise ForbiddenError(f"{source[:200]!r} is not below one of serve.roots.", hint)


def _files(source: str) -> list[FilePath]:
    return [FilePath(file.path) for file in discover([source])]


def _validated(validate: Callable[[V], M], value: V) -> M:
    """The model of a body or of fields; BadRequestError names the first field that is wrong."""
    try:
        return validate(value)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise BadRequestError(f"The request is wrong: {place[:100]}: {first['msg']}.", "See /docs.") from exc
