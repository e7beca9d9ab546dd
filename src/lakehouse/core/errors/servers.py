"""Errors of servers: catalogs, the stack, object stores."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.errors.base import LakeError, Retryable


class CatalogError(LakeError):
    """The catalog failed."""

    code = "catalog_failed"


class CatalogUnreachableError(Retryable, CatalogError):
    """The catalog does not respond."""

    code = "catalog_unreachable"


class CatalogAccessError(CatalogError):
    """The catalog refuses access, or its database does not exist."""

    code = "catalog_denied"
    is_user_error = True


class CatalogBusyError(CatalogError):
    """The catalog stayed locked for too long, or others changed it during every attempt."""

    code = "catalog_busy"


class StackError(LakeError):
    """A server of the stack could not be started, stopped or reached."""

    code = "stack_failed"


class NoSuchServiceError(StackError):
    """The stack has no service of that name."""

    code = "no_such_service"
    is_user_error = True

    def __init__(self, name: str, known: Iterable[str], nearest: Iterable[str] = ()) -> None:
        self.name, self.known, self.nearest = name, list(known), list(nearest)
        near = f"Did you mean {' or '.join(self.nearest)}? " if self.nearest else ""
        super().__init__(f"There is no service {name!r}.", f"{near}All of them: {', '.join(self.known)}.")


class PortTakenError(StackError):
    """Another process listens on a service's port."""

    code = "port_taken"


class ServiceFailedError(StackError):
    """A service did not start, or keeps exiting."""

    code = "service_failed"


class StorageError(LakeError):
    """An object store failed."""

    code = "storage_failed"


class NoSuchBucketError(StorageError):
    """The object store has no bucket of that name."""

    code = "no_such_bucket"
    is_user_error = True


class AccessDeniedError(StorageError):
    """The object store rejects the credentials, or denies them access."""

    code = "access_denied"
    is_user_error = True


class StorageUnreachableError(Retryable, StorageError):
    """The object store does not respond."""

    code = "storage_unreachable"
