"""The OpenAPI description: who may call, the Idempotency-Key, names of operations for generated clients, and the shape of every answer.

The shapes come from the classes that the table of operations names: an answer is such an object as JSON (answers.py).
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lakehouse.core.idempotency import MAX_KEY
from lakehouse.core.names import TableName
from lakehouse.core.result import Result
from lakehouse.http.errors import ErrorBody
from lakehouse.operations import BY_ROUTE, PUBLIC, Operation

#: What clients call an operation, where that is not its own name: a verb and a noun.
_IDS = {
    "healthz": "getHealth",
    "health": "listTableHealth",
    "maintain": "maintainTables",
    "verify": "verifyLake",
    "readyz": "getReadiness",
    "docs": "getDocs",
    "metrics": "getMetrics",
    "whoami": "getCaller",
    "audit": "listAuditEntries",
    "keys": "listKeys",
    "query": "runQuery",
    "ask": "askQuestion",
    "queries": "listQueries",
    "statement_state": "getStatement",
    "statement_chunk": "getStatementChunk",
    "tables": "listTables",
    "dropped": "listDroppedTables",
    "describe": "describeTable",
    "inspect": "inspectTable",
    "schema": "getTableSchema",
    "history": "listSnapshots",
    "travel": "readTableAsOf",
    "diff": "diffTable",
    "report": "reportTable",
    "rollback": "rollbackTable",
    "drop": "dropTable",
    "undrop": "undropTable",
    "ingest": "ingestFiles",
    "jobs": "listJobs",
    "job": "getJob",
    "job_events": "followJob",
    "pipelines": "listPipelines",
    "runs": "listRuns",
    "run_record": "getRun",
    "run_log": "getRunLog",
    "branches": "listBranches",
    "merge": "mergeBranch",
    "tags": "listTags",
    "log": "listCommits",
    "cherry_pick": "cherryPickCommit",
    "revert": "revertCommit",
}
_TEXT, _FLAG, _WHOLE, _OBJECT = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}, {"type": "object"}
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Requests with the same key do the work once and get the same answer, for 24 hours.",
    "schema": {"type": "string", "maxLength": MAX_KEY - 80},
}


def _shape(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": sorted(required)}


def _items(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(schema)}


_STATE = _shape({"state": {"enum": ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED", "CLOSED"]}}, error=_OBJECT)
_CHUNK = _shape(
    {"chunk_index": _WHOLE, "row_count": _WHOLE, "data_array": _items({"type": "array"})},
    next_chunk_index=_WHOLE,
    next_chunk_internal_link=_TEXT,
)
_QUERY = _shape(
    {
        **dict.fromkeys(("id", "key", "name", "engine", "branch", "statement"), _TEXT),
        "state": {"enum": ["queued", "running", "sending"]},
        "place": {"anyOf": [_WHOLE, {"type": "null"}]},
        "progress": {"anyOf": [_WHOLE, {"type": "null"}]},
        "seconds": {"type": "number"},
    }
)
_STATEMENT = _shape({"statement_id": _TEXT, "status": _STATE}, manifest=_OBJECT, result=_CHUNK)
_API_KEY = _shape(
    {
        **dict.fromkeys(("id", "scope", "name", "created_at", "expires_at", "revoked_at", "state"), _TEXT),
        **dict.fromkeys(("namespaces", "branches"), _items(_TEXT)),
    },
    key={"type": "string", "description": "The key itself, only where it is created."},
)
_JOB = _shape(
    {
        **dict.fromkeys(("id", "kind", "created_at", "started_at", "ended_at", "progress"), _TEXT),
        "state": {"enum": ["queued", "running", "succeeded", "failed", "canceled"]},
        "request": _OBJECT,
    },
    result={},
    error={"anyOf": [{"$ref": "#/components/schemas/ErrorBody"}, {"type": "null"}]},
)
_STARTED = _shape({"job": _JOB, "links": _OBJECT}, run=_TEXT)
_DROPPED = _shape({"dropped": _FLAG}, name=_TEXT, table=_TEXT)
_NAMED = _shape({"name": _TEXT})
_REF = _shape(dict.fromkeys(("name", "created_from", "state", "created_at", "author", "message"), _TEXT))
_COLUMN = _shape({"name": _TEXT, "type": _TEXT})
#: The answers of operations for which the table of operations names no class, or which put more around it.
_ANSWERS: dict[str, Any] = {
    "healthz": _shape({"status": _TEXT}),
    "readyz": _shape({"status": _TEXT}),
    "whoami": _shape(
        {"id": _TEXT, "name": _TEXT, "scope": _TEXT, "namespaces": _items(_TEXT), "branches": _items(_TEXT)}
    ),
    "audit": _shape({"entries": _items(_OBJECT)}),
    "keys": _shape({"keys": _items(_API_KEY)}),
    **dict.fromkeys(("create_key", "revoke_key", "rotate_key"), _API_KEY),
    **dict.fromkeys(("create_statement", "statement_state"), _STATEMENT),
    "statement_chunk": _CHUNK,
    "queries": _shape({"queries": _items(_QUERY)}),
    "format_sql": _shape({"sql": _TEXT, "reads": _FLAG}),
    "cancel_query": _shape({"id": _TEXT, "canceled": _FLAG}),
    "cancel_statement": _shape({"statement_id": _TEXT, "status": _STATE}),
    "tables": _shape(
        {"tables": _items(_shape({"name": _TEXT, "format": _TEXT}))}, views=_items(_TEXT), next_page_token={}
    ),
    "dropped": _shape({"tables": _items(_TEXT), "drops": _items(_shape({"table": _TEXT, "id": _TEXT, "at": _TEXT}))}),
    "schema": _shape(
        {"table": _TEXT, "columns": _items(_COLUMN), **dict.fromkeys(("partitioning", "sorting", "key"), _items(_TEXT))}
    ),
    "rollback": _shape({"table": _TEXT, "snapshot": _OBJECT}),
    **dict.fromkeys(("drop", "drop_branch", "drop_tag"), _DROPPED),
    **dict.fromkeys(("ingest", "start_run", "resume_run", "maintain", "verify"), _STARTED),
    "jobs": _shape({"jobs": _items(_JOB)}, next_page_token={}),
    **dict.fromkeys(("job", "cancel_job", "resume_job"), _JOB),
    "pipelines": _shape(
        {
            "pipelines": _items(_shape({"name": _TEXT, "tables": _items(_OBJECT)})),
            "problems": _items(_shape({"module": _TEXT, "message": _TEXT})),
        }
    ),
    "branches": _shape({"branches": _items(_REF)}, next_page_token={}),
    **dict.fromkeys(("create_branch", "create_tag"), _NAMED),
    "diff_branch": _shape({}, changes=_items(_OBJECT), columns=_items(_COLUMN), rows=_items(_OBJECT)),
    "merge": _shape({"commit": _TEXT}),
    "cherry_pick": _shape({"picked": _TEXT, "commit": _TEXT}),
    "revert": _shape({"reverted": _TEXT, "commit": _TEXT}),
    "diff": _shape({"columns": _items(_COLUMN), "rows": _items(_OBJECT)}),
}


def describe(api: FastAPI) -> dict[str, Any]:
    """The description of the routes of an application."""
    if api.openapi_schema is None:
        description = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
        description["components"]["schemas"][ErrorBody.__name__] = ErrorBody.model_json_schema()
        schemas = _Schemas(description["components"]["schemas"])
        description["servers"] = [{"url": "/", "description": "Where this description is."}]
        description["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "An API key, lake_…, or an OIDC token."}
        }
        for path, methods in description["paths"].items():
            for method, operation in methods.items():
                _complete(operation, BY_ROUTE[method.upper(), path], schemas)
        api.openapi_schema = description
    return api.openapi_schema


def _complete(described: dict[str, Any], operation: Operation, schemas: _Schemas) -> None:
    described["operationId"] = _IDS.get(operation.name) or _camel_case(operation.name)
    described["security"] = [] if operation.needs == PUBLIC else [{"key": []}]
    if operation.once:
        described.setdefault("parameters", []).append(_KEY_HEADER)
    success = next(status for status in described["responses"] if status.startswith("2"))
    content = described["responses"][success].get("content", {}).get("application/json")
    schema = _ANSWERS.get(operation.name) or _of_class(operation, schemas)
    if content is not None and schema is not None:
        content["schema"] = schema


def _of_class(operation: Operation, schemas: _Schemas) -> dict[str, Any] | None:
    """The shape of an answer whose class the table of operations names."""
    if not operation.answer:
        return None
    module, _, name = operation.answer.removesuffix("[]").partition(":")
    schema = schemas.of(getattr(import_module(module), name))
    if operation.answer.endswith("[]"):
        schema = _items(schema)
    if not operation.key:
        return schema
    return _shape({operation.key: schema}, **({"next_page_token": {}} if operation.is_paged else {}))


_PLAIN: dict[Any, dict[str, Any]] = {
    bool: _FLAG,
    int: _WHOLE,
    float: {"type": "number"},
    Decimal: {},
    **dict.fromkeys((str, Path, TableName, date), _TEXT),
    datetime: {"type": "string"},
    Result: _shape({"columns": _items(_COLUMN), "rows": _items(_OBJECT)}),
    type(None): {"type": "null"},
}


class _Schemas:
    """The schemas of classes, each once, under their names."""

    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components
        self._names: dict[type, str] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type of the Python API, as `plain` writes its values."""
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if is_dataclass(kind) and isinstance(kind, type):
            return self._of_dataclass(kind)
        origin, parts = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(part) for part in parts]}
        if origin is Literal:
            return {"enum": list(parts)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object"}
        if origin in (tuple, list, set, frozenset) or getattr(origin, "__name__", "") == "Sequence":
            return _items(self.of(parts[0]))
        return {}

    def _of_dataclass(self, kind: type) -> dict[str, Any]:
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = self._free_name(kind)
            self._components[name] = {}  # it may refer to itself
            hints = get_type_hints(kind)
            properties = {part.name: self.of(hints[part.name]) for part in fields(kind)}
            self._components[name] = {"title": name, **_shape(properties)}
        return {"$ref": f"#/components/schemas/{name}"}

    def _free_name(self, kind: type) -> str:
        """The name of a class, with that of its package if another class has it."""
        if kind.__name__ not in self._components:
            return kind.__name__
        return kind.__module__.split(".")[1].capitalize() + kind.__name__


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
