"""Refusals in the protocol's words: a status, the name of the error that clients map to their own, and a message."""

from __future__ import annotations


class Problem(Exception):
    """A request that cannot be answered as asked. It leaves as an answer of the protocol, never as an error of ours."""

    status = 400
    kind = "BadRequestException"

    def __init__(self, message: str, hint: str = "", status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.status, self.kind = status or self.status, kind or self.kind

    def as_body(self) -> dict[str, object]:
        """The protocol's error body."""
        told = f"{self.message} {self.hint}".rstrip()
        return {"error": {"message": told, "type": self.kind, "code": self.status}}


class NoSuchNamespace(Problem):
    """A namespace was named that is not there."""

    status, kind = 404, "NoSuchNamespaceException"


class NoSuchTable(Problem):
    """A table was named that is not there."""

    status, kind = 404, "NoSuchTableException"


class NoSuchView(Problem):
    """A view was named that is not there."""

    status, kind = 404, "NoSuchViewException"


class NotFound(Problem):
    """A branch, a file or an address that is not there."""

    status, kind = 404, "NotFoundException"


class AlreadyThere(Problem):
    """A name is taken."""

    status, kind = 409, "AlreadyExistsException"


class NotEmpty(Problem):
    """A namespace that still holds something."""

    status, kind = 409, "NamespaceNotEmptyException"


class CommitFailed(Problem):
    """What a commit was made from is no longer so: the client may read again and retry."""

    status, kind = 409, "CommitFailedException"


class Unprocessable(Problem):
    """Each part of the request is right, but they contradict each other."""

    status, kind = 422, "UnprocessableEntityException"


class NotAllowed(Problem):
    """No token, or not one of ours."""

    status, kind = 401, "NotAuthorizedException"


class Forbidden(Problem):
    """A request from where none may come."""

    status, kind = 403, "ForbiddenException"


class Unsupported(Problem):
    """A part of the protocol that is not served here."""

    status, kind = 406, "UnsupportedOperationException"
