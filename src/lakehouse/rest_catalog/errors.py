"""Errors of the protocol: a status, the exception name that clients map to their own, and a message."""

from __future__ import annotations


class RestError(Exception):
    """A request is refused. The server sends it as an error response."""

    status = 400
    kind = "BadRequestException"

    def __init__(self, message: str, hint: str = "", status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.status, self.kind = status or self.status, kind or self.kind

    def as_body(self) -> dict[str, object]:
        """Return the body of the error response."""
        message = f"{self.message} {self.hint}".rstrip()
        return {"error": {"message": message, "type": self.kind, "code": self.status}}


class NoSuchNamespaceError(RestError):
    """A namespace does not exist."""

    status, kind = 404, "NoSuchNamespaceException"


class NoSuchTableError(RestError):
    """A table does not exist."""

    status, kind = 404, "NoSuchTableException"


class NoSuchViewError(RestError):
    """A view does not exist."""

    status, kind = 404, "NoSuchViewException"


class NotFoundError(RestError):
    """A branch, a file or a path does not exist."""

    status, kind = 404, "NotFoundException"


class AlreadyExistsError(RestError):
    """A name is taken."""

    status, kind = 409, "AlreadyExistsException"


class NamespaceNotEmptyError(RestError):
    """A namespace to be dropped is not empty."""

    status, kind = 409, "NamespaceNotEmptyException"


class CommitFailedError(RestError):
    """A requirement of a commit no longer holds: the client may refresh and retry."""

    status, kind = 409, "CommitFailedException"


class UnprocessableError(RestError):
    """The parts of a request contradict each other."""

    status, kind = 422, "UnprocessableEntityException"


class UnauthorizedError(RestError):
    """The token is missing or invalid."""

    status, kind = 401, "NotAuthorizedException"


class ForbiddenError(RestError):
    """A branch is protected."""

    status, kind = 403, "ForbiddenException"


class UnsupportedError(RestError):
    """A part of the protocol that this server does not implement."""

    status, kind = 406, "UnsupportedOperationException"
