"""Errors of statements and pipelines, and of what they run on."""

from __future__ import annotations

from lakehouse.core.errors.base import LakeError, Retryable


class EngineError(LakeError):
    """An engine could not do its work."""

    code = "engine_failed"


class QueryRejectedError(EngineError):
    """The SQL is wrong: it does not parse, or names something that is not there."""

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
    is_user_error = True


class BadPartitionError(PipelineError):
    """A partition was named that the pipeline cannot have."""

    code = "bad_partition"
    is_user_error = True


class NoSuchPipelineError(PipelineError):
    """A pipeline was named that nobody declared."""

    code = "no_such_pipeline"
    is_user_error = True


class SourceError(PipelineError):
    """A source does not have, or does not give, what a run needs."""

    code = "source_failed"


class NoSuchRunError(PipelineError):
    """A run was named that never was."""

    code = "no_such_run"
    is_user_error = True


class RunBlockedError(PipelineError):
    """A rule or check with the severity `block` was broken, so nothing was published."""

    code = "run_blocked"


class RunConflictError(Retryable, PipelineError):
    """Others changed the same tables again and again while a run was going on."""

    code = "run_conflict"
