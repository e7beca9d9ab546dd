"""Every error that leaves the lakehouse, in one tree.

LakeError
├── ConfigError          UnknownChoiceError, NotInstalledError, BadSettingError, HomeError
├── BadNameError
├── NotSupportedError
├── TableError           NoSuchTableError, NoSuchBranchError, NotDroppedError, TableExistsError, WhenError
├── EngineError          EngineUnreachableError, QueryRejectedError, StatementLostError
├── RuntimeMissingError  JavaError, JarError, DiskFullError
├── StorageError         NoSuchBucketError, AccessDeniedError, StorageUnreachableError
├── PipelineError        BadDeclarationError, BadPartitionError, NoSuchPipelineError, SourceError, NoSuchRunError,
│                        RunBlockedError, RunConflictError
└── Retryable            mixed in where trying again may help: EngineUnreachableError, StatementLostError,
                         StorageUnreachableError

An error says what, which value and what to do next. `code` is the machine's word for it, `hint` the next step,
`asked_wrongly` decides between exit code 2 (the request was wrong) and 1 (it failed).
"""

from __future__ import annotations

from collections.abc import Iterable


class LakeError(Exception):
    """Anything that went wrong in a way we can explain."""

    code = "failed"
    asked_wrongly = False

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own, which pickle would call with the message.
        return _rebuilt, (type(self), self.__dict__, self.args)

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape of every error."""
        return {"error": self.code, "message": self.message, "hint": self.hint}


class Retryable:
    """Mixed into errors that may go away when the same thing is tried again."""


class ConfigError(LakeError):
    """Something is wrong with a setting or with the machine's set-up."""

    code = "bad_setting"
    asked_wrongly = True


class BadSettingError(ConfigError):
    """A setting has a value of the wrong kind, or is not a setting at all."""


class UnknownChoiceError(ConfigError):
    """A setting or an argument names something that is not on the list."""

    code = "unknown_choice"

    def __init__(self, setting: str, given: str, known: Iterable[str]) -> None:
        self.setting, self.given, self.known = setting, given, sorted(known)
        super().__init__(f"{setting}={given!r} is not known here.", f"Choose one of: {', '.join(self.known)}.")


class NotInstalledError(ConfigError):
    """A part of the lakehouse was asked for whose library is not installed."""

    code = "not_installed"

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"This needs {library}, which is not installed.", f"pip install 'lakehouse[{extra}]'")


class HomeError(ConfigError):
    """The lake's folder cannot be used as one."""

    code = "bad_home"


class BadNameError(LakeError):
    """A table, namespace or branch has a name that cannot be one."""

    code = "bad_name"
    asked_wrongly = True


class TableError(LakeError):
    """Something is wrong with one table."""

    code = "table_error"


class NoSuchTableError(TableError):
    """A table was named that is not in the lake."""

    code = "no_such_table"
    asked_wrongly = True

    def __init__(self, name: str, nearest: Iterable[str] = (), total: int = 0) -> None:
        self.name, self.nearest = name, list(nearest)
        if self.nearest:
            hint = f"Nearest: {', '.join(self.nearest)}. All of them: lake tables"
        elif total:
            hint = "See what there is: lake tables"
        else:
            hint = "The lake is empty. Try: lake demo"
        super().__init__(f"There is no table {name}.", hint)


class NoSuchBranchError(TableError):
    """A branch was named that is not there."""

    code = "no_such_branch"
    asked_wrongly = True


class NotDroppedError(TableError):
    """A table was to be brought back that nobody dropped."""

    code = "not_dropped"
    asked_wrongly = True


class TableExistsError(TableError):
    """A table would be put where one already stands."""

    code = "table_exists"
    asked_wrongly = True


class WhenError(TableError):
    """A WHEN is not a time, a snapshot or a reference of that table."""

    code = "bad_when"
    asked_wrongly = True


class NotSupportedError(LakeError):
    """This format, engine or profile cannot do what was asked."""

    code = "not_supported"
    asked_wrongly = True


class EngineError(LakeError):
    """An engine could not do its work."""

    code = "engine_failed"


class QueryRejectedError(EngineError):
    """The SQL is wrong: it does not parse, or names something that is not there."""

    code = "bad_sql"
    asked_wrongly = True
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
        """The offending line of the SQL with a caret under the place, or nothing if the place is not known."""
        lines = self.sql.splitlines()
        if not (self.line and self.column and 0 < self.line <= len(lines)):
            return ""
        return f"{lines[self.line - 1]}\n{' ' * (self.column - 1)}^"

    def as_dict(self) -> dict[str, object]:
        place = {"line": self.line, "column": self.column} if self.line else {}
        return {**super().as_dict(), **place}


class EngineUnreachableError(Retryable, EngineError):
    """An engine does not answer or could not be started."""

    code = "engine_unreachable"


class StatementLostError(Retryable, EngineError):
    """The engine died in the middle of a statement, so nobody knows whether it was done."""

    code = "statement_lost"


class RuntimeMissingError(LakeError):
    """Something that Spark needs on this machine is missing or broken."""

    code = "runtime_missing"


class JavaError(RuntimeMissingError):
    """No Java that Spark runs on was found."""

    code = "bad_java"


class JarError(RuntimeMissingError):
    """A jar could not be fetched, or is not the one that was pinned."""

    code = "bad_jar"


class DiskFullError(RuntimeMissingError):
    """There is no room left where the lake or its cache lives."""

    code = "disk_full"


class PipelineError(LakeError):
    """Something is wrong with a pipeline or with a run of one."""

    code = "pipeline_failed"


class BadDeclarationError(PipelineError):
    """A pipeline is declared in a way that cannot work."""

    code = "bad_pipeline"
    asked_wrongly = True


class BadPartitionError(PipelineError):
    """A partition was named that the pipeline cannot have."""

    code = "bad_partition"
    asked_wrongly = True


class NoSuchPipelineError(PipelineError):
    """A pipeline was named that nobody declared."""

    code = "no_such_pipeline"
    asked_wrongly = True


class SourceError(PipelineError):
    """A source does not have, or does not give, what a run needs."""

    code = "source_failed"


class NoSuchRunError(PipelineError):
    """A run was named that never was."""

    code = "no_such_run"
    asked_wrongly = True


class RunBlockedError(PipelineError):
    """A rule or check with the severity `block` was broken, so nothing was published."""

    code = "run_blocked"


class RunConflictError(Retryable, PipelineError):
    """Others changed the same tables again and again while a run was going on."""

    code = "run_conflict"


class StorageError(LakeError):
    """An object store could not give what was asked of it."""

    code = "storage_failed"


class NoSuchBucketError(StorageError):
    """A bucket was named that the object store does not have."""

    code = "no_such_bucket"
    asked_wrongly = True


class AccessDeniedError(StorageError):
    """The object store does not know the keys, or does not let them read."""

    code = "access_denied"
    asked_wrongly = True


class StorageUnreachableError(Retryable, StorageError):
    """Nobody answers where the object store should be."""

    code = "storage_unreachable"


def error_from_dict(told: dict[str, object], sql: str = "") -> LakeError:
    """The error that another process of ours described with `as_dict`."""
    message, hint = str(told.get("message", "no reason given")), str(told.get("hint", ""))
    kind = _by_code(LakeError).get(str(told.get("error")), LakeError)
    error = kind.__new__(kind)
    LakeError.__init__(error, message, hint)
    error.__dict__.update({name: fact for name, fact in told.items() if name not in {"error", "message", "hint"}})
    if isinstance(error, QueryRejectedError):
        error.sql = sql
    return error


def _rebuilt(kind: type[LakeError], facts: dict[str, object], args: tuple[object, ...]) -> LakeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


def _by_code(kind: type[LakeError]) -> dict[str, type[LakeError]]:
    known = {kind.code: kind}
    for child in kind.__subclasses__():
        known = {**_by_code(child), **known}
    return known
