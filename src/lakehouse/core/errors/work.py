"""Errors of engines, statements, pipelines and runs."""

from __future__ import annotations

from lakehouse.core.errors.base import LakeError, Retryable


class EngineError(LakeError):
    """An engine failed."""

    code = "engine_failed"


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


class EngineUnreachableError(Retryable, EngineError):
    """An engine does not respond, or could not be started."""

    code = "engine_unreachable"


class StatementLostError(Retryable, EngineError):
    """The engine died during a statement, so its outcome is unknown."""

    code = "statement_lost"


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


class RunConflictError(PipelineError):
    """Other writers kept changing the same tables during a run, which was repeated."""

    code = "run_conflict"


class MaintenanceRunningError(LakeError):
    """Another maintenance of the same lake has not finished."""

    code = "maintenance_running"
