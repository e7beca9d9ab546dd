"""Errors over HTTP: the one JSON shape of the command line, with a status by the class of the error."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from lakehouse.core import errors
from lakehouse.core.errors import LakeError
from lakehouse.http.principal import NOBODY, Principal

_LOG = logging.getLogger(__name__)

#: The first class that an error is an instance of decides.
STATUSES: tuple[tuple[type[LakeError], int], ...] = (
    (errors.UnauthorizedError, 401),
    (errors.ForbiddenError, 403),
    (errors.StatementRefusedError, 403),
    (errors.BranchProtectedError, 403),
    (errors.NotFoundError, 404),
    (errors.NoSuchTableError, 404),
    (errors.NoSuchBranchError, 404),
    (errors.NoSuchCommitError, 404),
    (errors.NotDroppedError, 404),
    (errors.NoSuchPipelineError, 404),
    (errors.NoSuchRunError, 404),
    (errors.MethodError, 405),
    (errors.NotAcceptableError, 406),
    (errors.SlowBodyError, 408),
    (errors.StatementTimeoutError, 408),
    (errors.BranchExistsError, 409),
    (errors.TableExistsError, 409),
    (errors.BranchConflictError, 409),
    (errors.PublishRefusedError, 409),
    (errors.RunConflictError, 409),
    (errors.RunBlockedError, 409),
    (errors.OutcomeUnknownError, 409),
    (errors.StatementCanceledError, 409),
    (errors.RequestTooLargeError, 413),
    (errors.MediaTypeError, 415),
    (errors.KeyReusedError, 422),
    (errors.TooManyRequestsError, 429),
    (errors.WorkerDiedError, 507),
    (errors.EngineMemoryError, 507),
    (errors.DiskFullError, 507),
    (errors.NotInstalledError, 501),
    (errors.CatalogBusyError, 503),
    (errors.EngineUnreachableError, 503),
    (errors.CatalogUnreachableError, 503),
    (errors.StorageUnreachableError, 503),
    (errors.RuntimeMissingError, 503),
)
#: Errors of packages that the service does not import, by code.
_BY_CODE = {"commit_conflict": 409}


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    error: str
    """A stable code for programs, e.g. `no_such_table`."""
    message: str
    hint: str = ""

    model_config = {
        "extra": "allow",
        "json_schema_extra": {
            "example": {"error": "no_such_table", "message": "There is no table crm.lead.", "hint": "lake tables"}
        },
    }


_DESCRIPTIONS = {
    400: "The request is wrong.",
    401: "The key is missing, unknown, expired or revoked.",
    403: "The key, the branch or the guard does not allow this.",
    404: "There is no such table, branch, run, statement or job.",
    405: "The address exists, but not with this method.",
    406: "There is no answer in a format that the client accepts.",
    408: "The body arrived too slowly, or the statement took too long.",
    409: "It conflicts with the current state.",
    413: "The body is too large.",
    415: "The content type is not supported.",
    422: "The Idempotency-Key belongs to another request.",
    429: "Too many requests with this key.",
    500: "The service failed; its log has the reason.",
    503: "An engine, the catalog or the storage does not respond.",
    507: "The memory or the disk is full.",
}
_ERROR_CONTENT = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
#: By reference: from a model FastAPI would build a validator for each error of each route, which is most of the time to start.
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _ERROR_CONTENT} for status, text in _DESCRIPTIONS.items()
}


def status_of(error: LakeError) -> int:
    """The HTTP status of an error."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    return status or _BY_CODE.get(error.code) or (400 if error.is_user_error else 500)


def shown_to(principal: Principal, error: Mapping[str, Any]) -> dict[str, Any]:
    """An error for one caller: a hint may name tables, branches and runs that a caller with limits may not know."""
    hides = principal.is_limited and str(error["error"]).startswith(("no_such_", "not_dropped"))
    return {**error, "hint": "The lists have what the key may use: GET /tables, GET /branches."} if hides else {**error}


def error_response(error: LakeError, principal: Principal = NOBODY) -> Response:
    """The answer to a request that failed."""
    status = status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.TooManyRequestsError):
        headers["Retry-After"] = str(error.retry_after_s)
    return Response(json.dumps(shown_to(principal, error.as_dict())), status, headers, media_type="application/json")


def unexpected(exc: BaseException, request_id: str) -> LakeError:
    """The error for a failure that nobody planned for: the log gets the reason, the client its request id."""
    if isinstance(exc, RecursionError):
        return errors.BadRequestError("The request is nested too deeply.", "Write it with fewer levels.")
    _LOG.error("request %s failed", request_id, exc_info=exc)
    return LakeError("The service failed.", f"Its log has the reason, under the request {request_id}.")
