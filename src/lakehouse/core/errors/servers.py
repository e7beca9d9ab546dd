"""Errors of what runs elsewhere: catalogs, the stack, object stores."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.errors.base import LakeError, Retryable


class CatalogError(LakeError):
    """The catalog's database could not do its work."""

    code = "catalog_failed"


class CatalogUnreachableError(Retryable, CatalogError):
    """Nobody answers where the catalog's database should be."""

    code = "catalog_unreachable"


class CatalogAccessError(CatalogError):
    """The catalog's database does not let us in, or is not there."""

    code = "catalog_denied"
    is_user_error = True


class CatalogBusyError(Retryable, CatalogError):
    """Others kept the catalog's database busy for too long."""

    code = "catalog_busy"


class StackError(LakeError):
    """A server of the stack could not be started, stopped or asked."""

    code = "stack_failed"


class NoSuchServiceError(StackError):
    """A service was named that the stack does not have."""

    code = "no_such_service"
    is_user_error = True

    def __init__(self, name: str, known: Iterable[str], nearest: Iterable[str] = ()) -> None:
        self.name, self.known, self.nearest = name, list(known), list(nearest)
        near = f"Did you mean {' or '.join(self.nearest)}? " if self.nearest else ""
        super().__init__(f"There is no service {name!r}.", f"{near}All of them: {', '.join(self.known)}.")


class PortTakenError(StackError):
    """Somebody else listens where a service should."""

    code = "port_taken"


class ServiceFailedError(StackError):
    """A service did not come up, or ended again and again."""

    code = "service_failed"


class StorageError(LakeError):
    """An object store could not give what was asked of it."""

    code = "storage_failed"


class NoSuchBucketError(StorageError):
    """A bucket was named that the object store does not have."""

    code = "no_such_bucket"
    is_user_error = True


class AccessDeniedError(StorageError):
    """The object store does not know the keys, or does not let them read."""

    code = "access_denied"
    is_user_error = True


class StorageUnreachableError(Retryable, StorageError):
    """Nobody answers where the object store should be."""

    code = "storage_unreachable"
