"""Errors of the REST service: who asks, what is asked, and how much of it."""

from __future__ import annotations

from lakehouse.core.errors.base import LakeError


class ServiceError(LakeError):
    """A request to the service was refused, or the service cannot answer it now."""

    code = "request_failed"


class AlreadyServedError(ServiceError):
    """Another service of the same lake runs."""

    code = "already_served"
    is_user_error = True


class BadRequestError(ServiceError):
    """The request is malformed: its body, a parameter or a header."""

    code = "bad_request"
    is_user_error = True


class UnauthorizedError(ServiceError):
    """The key or token is missing, unknown, expired or revoked."""

    code = "unauthorized"
    is_user_error = True


class ForbiddenError(ServiceError):
    """The key is valid, but not for this operation, namespace or branch."""

    code = "forbidden"
    is_user_error = True


class NotFoundError(ServiceError):
    """There is no such address, statement, job or key."""

    code = "not_found"
    is_user_error = True


class RequestTooLargeError(ServiceError):
    """The body is larger than the service accepts."""

    code = "too_large"
    is_user_error = True


class MediaTypeError(ServiceError):
    """The service does not read this content type, or cannot answer with that one."""

    code = "bad_content_type"
    is_user_error = True


class NotAcceptableError(ServiceError):
    """The service has no answer in a format that the client accepts."""

    code = "not_acceptable"
    is_user_error = True


class MethodError(ServiceError):
    """The address exists, but not with this method."""

    code = "method_not_allowed"
    is_user_error = True


class SlowBodyError(ServiceError):
    """The body arrives too slowly."""

    code = "slow_body"
    is_user_error = True


class TooManyRequestsError(ServiceError):
    """The key has used up its rate or its number of concurrent requests."""

    code = "too_many_requests"

    def __init__(self, message: str, hint: str = "", retry_after_s: int = 1) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, hint)


class KeyReusedError(ServiceError):
    """The Idempotency-Key belongs to another request."""

    code = "idempotency_key_reused"
    is_user_error = True


class OutcomeUnknownError(ServiceError):
    """The service stopped while a request with this Idempotency-Key ran; it may have been committed."""

    code = "outcome_unknown"


class StatementCanceledError(ServiceError):
    """The statement was canceled by its client."""

    code = "canceled"


class StatementTimeoutError(ServiceError):
    """The statement ran longer than allowed."""

    code = "timeout"


class WorkerDiedError(ServiceError):
    """The process that ran a statement ended: it used more memory than allowed, or crashed."""

    code = "worker_died"


class ServiceUnreachableError(ServiceError):
    """The service does not answer, or ends the connection in the middle of an answer."""

    code = "service_unreachable"


class ResultTruncatedError(ServiceError):
    """The service returns fewer rows than the statement has, and none asked for that."""

    code = "truncated"
    is_user_error = True
