"""Every error that leaves the lakehouse, in one tree.

LakeError
├── ConfigError          UnknownChoiceError, NotInstalledError, BadSettingError, HomeError
├── BadNameError
├── NotSupportedError    StatementRefusedError, NeedsSparkError
├── TableError           NoSuchTableError, NotDroppedError, TableExistsError, WhenError, CommitConflictError, BranchError
│                        BranchError: NoSuchBranchError, BranchExistsError, BranchProtectedError, BranchConflictError,
│                        PublishRefusedError, NoSuchCommitError
├── CatalogError         CatalogUnreachableError, CatalogAccessError, CatalogBusyError
├── EngineError          EngineUnreachableError, QueryRejectedError, SparkInUseError, StatementLostError
├── RuntimeMissingError  JavaError, JarError, DiskFullError
├── StackError           NoSuchServiceError, PortTakenError, ServiceFailedError
├── StorageError         NoSuchBucketError, AccessDeniedError, StorageUnreachableError
├── PipelineError        BadDeclarationError, BadPartitionError, NoSuchPipelineError, SourceError, NoSuchRunError,
│                        RunBlockedError, RunConflictError
├── MaintenanceRunningError
├── ServiceError         AlreadyServedError, BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, RequestTooLargeError, MediaTypeError,
│                        NotAcceptableError, MethodError, SlowBodyError, TooManyRequestsError, KeyReusedError, OutcomeUnknownError, StatementCanceledError,
│                        StatementTimeoutError, WorkerDiedError, ServiceUnreachableError, ResultTruncatedError
└── Retryable            mixed in where a retry may succeed and none was made: EngineUnreachableError,
                         StatementLostError, StorageUnreachableError, CatalogUnreachableError

A message states what failed and with which value. `code` is stable for programs, `hint` is the next step, and
`is_user_error` selects exit code 2 (wrong request) instead of 1 (failure).
"""

from __future__ import annotations

from lakehouse.core.errors.base import (
    BadNameError,
    BadSettingError,
    ConfigError,
    HomeError,
    LakeError,
    NeedsSparkError,
    NotInstalledError,
    NotSupportedError,
    Retryable,
    StatementRefusedError,
    UnknownChoiceError,
)
from lakehouse.core.errors.servers import (
    AccessDeniedError,
    CatalogAccessError,
    CatalogBusyError,
    CatalogError,
    CatalogUnreachableError,
    NoSuchBucketError,
    NoSuchServiceError,
    PortTakenError,
    ServiceFailedError,
    StackError,
    StorageError,
    StorageUnreachableError,
)
from lakehouse.core.errors.service import (
    AlreadyServedError,
    BadRequestError,
    ForbiddenError,
    KeyReusedError,
    MediaTypeError,
    MethodError,
    NotAcceptableError,
    NotFoundError,
    OutcomeUnknownError,
    RequestTooLargeError,
    ResultTruncatedError,
    ServiceError,
    ServiceUnreachableError,
    SlowBodyError,
    StatementCanceledError,
    StatementTimeoutError,
    TooManyRequestsError,
    UnauthorizedError,
    WorkerDiedError,
)
from lakehouse.core.errors.tables import (
    BranchConflictError,
    BranchError,
    BranchExistsError,
    BranchProtectedError,
    CommitConflictError,
    NoSuchBranchError,
    NoSuchCommitError,
    NoSuchTableError,
    NotDroppedError,
    PublishRefusedError,
    TableError,
    TableExistsError,
    WhenError,
)
from lakehouse.core.errors.work import (
    BadDeclarationError,
    BadPartitionError,
    DiskFullError,
    EngineError,
    EngineUnreachableError,
    JarError,
    JavaError,
    MaintenanceRunningError,
    NoSuchPipelineError,
    NoSuchRunError,
    PipelineError,
    QueryRejectedError,
    RunBlockedError,
    RunConflictError,
    RuntimeMissingError,
    SourceError,
    SparkInUseError,
    StatementLostError,
)

__all__ = [
    "AlreadyServedError",
    "AccessDeniedError",
    "BadDeclarationError",
    "BadNameError",
    "BadPartitionError",
    "BadRequestError",
    "BadSettingError",
    "BranchConflictError",
    "BranchError",
    "BranchExistsError",
    "BranchProtectedError",
    "CatalogAccessError",
    "CatalogBusyError",
    "CatalogError",
    "CatalogUnreachableError",
    "CommitConflictError",
    "ConfigError",
    "DiskFullError",
    "EngineError",
    "EngineUnreachableError",
    "ForbiddenError",
    "HomeError",
    "JarError",
    "JavaError",
    "KeyReusedError",
    "LakeError",
    "MaintenanceRunningError",
    "MediaTypeError",
    "MethodError",
    "NeedsSparkError",
    "NoSuchBranchError",
    "NoSuchBucketError",
    "NoSuchCommitError",
    "NoSuchPipelineError",
    "NoSuchRunError",
    "NoSuchServiceError",
    "NoSuchTableError",
    "NotAcceptableError",
    "NotDroppedError",
    "NotFoundError",
    "NotInstalledError",
    "NotSupportedError",
    "OutcomeUnknownError",
    "PipelineError",
    "PortTakenError",
    "PublishRefusedError",
    "QueryRejectedError",
    "RequestTooLargeError",
    "ResultTruncatedError",
    "Retryable",
    "RunBlockedError",
    "RunConflictError",
    "RuntimeMissingError",
    "ServiceError",
    "ServiceFailedError",
    "ServiceUnreachableError",
    "SlowBodyError",
    "SourceError",
    "StackError",
    "StatementCanceledError",
    "SparkInUseError",
    "StatementLostError",
    "StatementRefusedError",
    "StatementTimeoutError",
    "StorageError",
    "StorageUnreachableError",
    "TableError",
    "TableExistsError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnknownChoiceError",
    "WhenError",
    "WorkerDiedError",
    "error_from_dict",
]


def error_from_dict(payload: dict[str, object], sql: str = "") -> LakeError:
    """Rebuild an error that another process serialized with `as_dict`."""
    message, hint = str(payload.get("message", "no reason given")), str(payload.get("hint", ""))
    kind = _by_code(LakeError).get(str(payload.get("error")), LakeError)
    error = kind.__new__(kind)
    LakeError.__init__(error, message, hint)
    error.__dict__.update({name: value for name, value in payload.items() if name not in {"error", "message", "hint"}})
    if isinstance(error, QueryRejectedError):
        error.sql = sql
    return error


def _by_code(kind: type[LakeError]) -> dict[str, type[LakeError]]:
    known = {kind.code: kind}
    for child in kind.__subclasses__():
        known = {**_by_code(child), **known}
    return known
