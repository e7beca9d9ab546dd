"""Every error that leaves the lakehouse, in one tree.

LakeError
├── ConfigError          UnknownChoiceError, NotInstalledError, BadSettingError, HomeError
├── BadNameError
├── NotSupportedError    StatementRefusedError, NeedsSparkError
├── TableError           NoSuchTableError, NotDroppedError, TableExistsError, WhenError, CommitConflictError, ContractError,
│                        NoSuchColumnError, NoRowsError, BranchError
│                        BranchError: NoSuchBranchError, BranchExistsError, BranchProtectedError, BranchConflictError,
│                        PublishRefusedError, NoSuchCommitError
├── CatalogError         CatalogUnreachableError, CatalogAccessError, CatalogBusyError
├── EngineError          EngineMemoryError, EngineUnreachableError, QueryRejectedError, SparkInUseError, StatementFailedError,
│                        StatementLostError
├── RuntimeMissingError  JavaError, JarError, DiskFullError
├── StackError           NoSuchServiceError, PortTakenError, ServiceFailedError
├── StorageError         NoSuchBucketError, AccessDeniedError, StorageUnreachableError
├── PipelineError        BadDeclarationError, BadPartitionError, NoSuchPipelineError, SourceError, NoSuchRunError,
│                        RunBlockedError, RunConflictError, DbtError
├── SourceFileError      NoSuchFileError (EmptyGlobError, NoDataFilesError), UnreadableFileError, EmptyFileError, BinaryFileError
│                        (NulBytesError), DamagedFileError, JsonArrayError, BadRowError
├── MaintenanceRunningError
├── ServiceError         AlreadyServedError, BadRequestError, UnauthorizedError (MissingKeyError), ForbiddenError, NotFoundError, RequestTooLargeError, MediaTypeError,
│                        NotAcceptableError, MethodError, SlowBodyError, TooManyRequestsError, KeyReusedError, OutcomeUnknownError, StatementCanceledError,
│                        StatementTimeoutError, WorkerDiedError, ServiceUnreachableError, ResultTruncatedError
└── Retryable            mixed in where a retry may succeed and none was made: EngineUnreachableError,
                         StatementLostError, StorageUnreachableError, CatalogUnreachableError

A message states what failed and with which value. `code` is stable for programs, `hint` is the next step, and
`is_user_error` selects exit code 2 (wrong request) instead of 1 (failure).
"""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.masking import mask


class LakeError(Exception):
    """The base class of every error that this package raises on purpose.

    >>> try:
    ...     lake.table("crm.lead")
    ... except LakeError as error:
    ...     print(error.code, "|", error.message, "|", error.hint)
    no_such_table | There is no table crm.lead. | Did you mean crm.leads? List all: lake tables
    """

    code = "failed"
    is_user_error = False

    def __init__(self, message: str, hint: str = "") -> None:
        # An address in a message may be one that the user gave with a password in it.
        self.message, self.hint = mask(message), mask(hint)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own, which pickle would call with the message.
        return _rebuilt, (type(self), self.__dict__, self.args)

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape of every error."""
        return {"error": self.code, "message": self.message, "hint": self.hint}


class Retryable:
    """Mixed into errors that a retry may resolve.

    Not into an error that is raised after retries: retries would be nested, and three of three are nine.
    """


class ConfigError(LakeError):
    """A setting or the installation is wrong."""

    code = "bad_setting"
    is_user_error = True


class BadSettingError(ConfigError):
    """A setting has an invalid value, or does not exist."""


class UnknownChoiceError(ConfigError):
    """A setting or an argument is not one of the valid choices."""

    code = "unknown_choice"

    def __init__(self, setting: str, given: str, known: Iterable[str]) -> None:
        self.setting, self.given, self.known = setting, given, sorted(known)
        super().__init__(f"Invalid value for {setting}: {given!r}.", f"Choose one of: {', '.join(self.known)}.")


class NotInstalledError(ConfigError):
    """An optional library is not installed."""

    code = "not_installed"

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"This needs {library}, which is not installed.", f"pip install 'lakehouse[{extra}]'")


class HomeError(ConfigError):
    """The lake's folder cannot be used."""

    code = "bad_home"


class BadNameError(LakeError):
    """The name of a table, namespace or branch is invalid."""

    code = "bad_name"
    is_user_error = True


class NotSupportedError(LakeError):
    """This format, engine or profile does not support the operation."""

    code = "not_supported"
    is_user_error = True


class NeedsSparkError(NotSupportedError):
    """A change, a rule or a check needs Spark, and was to be made without it; nothing was written."""


class StatementRefusedError(NotSupportedError):
    """The statement could lose data, leave the lake or run code; or it is of a kind that the guard does not know."""

    code = "statement_refused"


def _rebuilt(kind: type[LakeError], facts: dict[str, object], args: tuple[object, ...]) -> LakeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


# ---- tables, branches and the catalog's log -------------------------------------------------------------------------


class TableError(LakeError):
    """An operation on one table failed."""

    code = "table_error"


class NoSuchTableError(TableError):
    """The lake has no table of that name."""

    code = "no_such_table"
    is_user_error = True

    def __init__(self, name: str, nearest: Iterable[str] = (), total: int = 0) -> None:
        self.name, self.nearest = name, list(nearest)
        if self.nearest:
            hint = f"Did you mean {' or '.join(self.nearest)}? List all: lake tables"
        elif total:
            hint = "List all tables: lake tables"
        else:
            hint = "The lake is empty. Try: lake demo"
        super().__init__(f"There is no table {name}.", hint)


class BranchError(TableError):
    """An operation on a branch, a tag or a publish failed."""

    code = "branch_error"


class NoSuchBranchError(BranchError):
    """There is no branch or tag of that name."""

    code = "no_such_branch"
    is_user_error = True


class BranchExistsError(BranchError):
    """A branch or tag of that name exists already."""

    code = "branch_exists"
    is_user_error = True


class BranchProtectedError(BranchError):
    """The branch is protected: only checked runs may change it."""

    code = "branch_protected"
    is_user_error = True


class BranchConflictError(BranchError):
    """Tables changed since a branch was created, or since the commit that a revert would undo."""

    code = "branch_conflict"


class CommitConflictError(TableError):
    """Other writers changed the table during every attempt to commit, or the branch that a writer owns."""

    code = "commit_conflict"


class PublishRefusedError(BranchError):
    """The before_publish hook rejected the publish."""

    code = "publish_refused"


class NoSuchCommitError(BranchError):
    """The log has no such commit."""

    code = "no_such_commit"
    is_user_error = True


class NotDroppedError(TableError):
    """There is no dropped table of that name to restore."""

    code = "not_dropped"
    is_user_error = True


class TableExistsError(TableError):
    """A table of that name exists already."""

    code = "table_exists"
    is_user_error = True


class WhenError(TableError):
    """A WHEN is not a timestamp, a snapshot id or a ref of that table."""

    code = "bad_when"
    is_user_error = True


# ---- catalogs, the stack, object stores -----------------------------------------------------------------------------


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


# ---- engines, statements, pipelines and runs ------------------------------------------------------------------------


class EngineError(LakeError):
    """An engine failed."""

    code = "engine_failed"


class EngineMemoryError(EngineError):
    """A statement needs more memory than its engine has."""

    code = "out_of_memory"


class QueryRejectedError(EngineError):
    """The SQL does not parse, or names something that does not exist."""

    code = "bad_sql"
    is_user_error = True
    sql: str = ""
    line: int | None = None
    column: int | None = None

    def __init__(
        self, message: str, hint: str = "", sql: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        self.sql, self.line, self.column = sql, line, column
        place = f" (line {line}, column {column})" if line and column else ""
        super().__init__(message + place, hint)

    def pointer(self) -> str:
        """The line of the SQL with a caret under the error; empty if the position is unknown."""
        lines = self.sql.splitlines()
        if not (self.line and self.column and 0 < self.line <= len(lines)):
            return ""
        return f"{lines[self.line - 1]}\n{' ' * (self.column - 1)}^"

    def as_dict(self) -> dict[str, object]:
        place = {"line": self.line, "column": self.column} if self.line else {}
        return {**super().as_dict(), **place}


class StatementFailedError(EngineError):
    """A statement that parses met a value or a state for which SQL has no answer, such as a schema that is not empty."""

    code = "statement_failed"
    is_user_error = True


class EngineUnreachableError(Retryable, EngineError):
    """An engine does not respond, or could not be started."""

    code = "engine_unreachable"


class StatementLostError(Retryable, EngineError):
    """The engine died during a statement, so its outcome is unknown."""

    code = "statement_lost"

    @classmethod
    def of_commit(cls) -> StatementLostError:
        """The error for a commit that the catalog may have made without saying so."""
        return cls(
            "The catalog did not confirm the commit, so it may or may not have been committed.",
            "Check with `lake history`, then run it again.",
        )


class SparkInUseError(EngineError):
    """This process already has another Spark; PySpark allows one."""

    code = "spark_in_use"
    is_user_error = True


class RuntimeMissingError(LakeError):
    """Something that Spark needs on this machine is missing or broken."""

    code = "runtime_missing"


class JavaError(RuntimeMissingError):
    """No Java that Spark runs on was found."""

    code = "bad_java"


class JarError(RuntimeMissingError):
    """A jar could not be downloaded, or its checksum does not match."""

    code = "bad_jar"


class DiskFullError(RuntimeMissingError):
    """The disk of the lake or of its cache is full."""

    code = "disk_full"


class PipelineError(LakeError):
    """A pipeline, or a run of one, failed."""

    code = "pipeline_failed"


class BadDeclarationError(PipelineError):
    """The declaration of a pipeline is invalid."""

    code = "bad_pipeline"
    is_user_error = True


class BadPartitionError(PipelineError):
    """The partition key is not valid for the pipeline."""

    code = "bad_partition"
    is_user_error = True


class NoSuchPipelineError(PipelineError):
    """There is no pipeline of that name."""

    code = "no_such_pipeline"
    is_user_error = True


class SourceError(PipelineError):
    """A source does not provide what a run needs."""

    code = "source_failed"


class NoSuchRunError(PipelineError):
    """There is no run of that id."""

    code = "no_such_run"
    is_user_error = True


class RunBlockedError(PipelineError):
    """A rule or check with severity `block` failed, so nothing was published."""

    code = "run_blocked"


class DbtError(PipelineError):
    """A dbt command that only reads failed."""

    code = "dbt_failed"


class RunConflictError(PipelineError):
    """Other writers kept changing the same tables during a run, which was repeated."""

    code = "run_conflict"


class MaintenanceRunningError(LakeError):
    """Another maintenance of the same lake has not finished."""

    code = "maintenance_running"


# ---- requests to a service ------------------------------------------------------------------------------------------


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


class MissingKeyError(UnauthorizedError):
    """The request has neither key nor token: unlike a wrong one, that is no attempt to guess."""


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


# ---- ingests and their files ----------------------------------------------------------------------------------------


class ContractError(TableError):
    """A file does not match the table's schema, and the contract forbids changing the table."""

    code = "contract_broken"
    is_user_error = True


class NoSuchColumnError(TableError):
    """An option names a column that neither the files nor the table have."""

    code = "no_such_column"
    is_user_error = True


class NoRowsError(TableError):
    """A new table cannot be created because the files have no valid row to infer types from."""

    code = "no_rows"
    is_user_error = True


class SourceFileError(LakeError):
    """A source file cannot be read."""

    code = "bad_source"
    is_user_error = True
    file: str = ""
    line: int | None = None

    def __init__(self, message: str, hint: str = "", file: str = "", line: int | None = None) -> None:
        self.file, self.line = mask(file), line
        super().__init__(message, hint)

    def as_dict(self) -> dict[str, object]:
        location = {key: value for key, value in (("file", self.file), ("line", self.line)) if value}
        return {**super().as_dict(), **location}


class NoSuchFileError(SourceFileError):
    """There is no file or folder with this name."""

    code = "no_such_file"


class EmptyGlobError(NoSuchFileError):
    """A pattern matches no file."""

    code = "empty_glob"


class NoDataFilesError(NoSuchFileError):
    """A folder has no data file."""

    code = "no_data_files"


class UnreadableFileError(SourceFileError):
    """The file exists, but reading is not permitted or it is not a regular file."""

    code = "unreadable_file"


class EmptyFileError(SourceFileError):
    """The file has no bytes, only blank lines, or nothing below the lines to skip."""

    code = "empty_file"


class BinaryFileError(SourceFileError):
    """The file is neither text nor Parquet."""

    code = "binary_file"


class NulBytesError(BinaryFileError):
    """A text file contains NUL bytes, so it is damaged or not text."""

    code = "nul_bytes"


class DamagedFileError(SourceFileError):
    """The file is truncated or its content is invalid."""

    code = "damaged_file"


class JsonArrayError(SourceFileError):
    """The file is one JSON array or value instead of one object per line."""

    code = "json_array"


class BadRowError(SourceFileError):
    """A row is invalid and the contract does not allow to quarantine it."""

    code = "bad_row"


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
