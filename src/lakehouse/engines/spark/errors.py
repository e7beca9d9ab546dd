"""Spark's errors as LakeErrors; no Py4JJavaError leaves this package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lakehouse.core.errors import (
    CommitConflictError,
    DiskFullError,
    EngineError,
    EngineMemoryError,
    LakeError,
    QueryRejectedError,
    StatementFailedError,
    StatementLostError,
)

_POSITION = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")
_CLASS = re.compile(r"^\[(?P<name>[A-Z_.]+)\]\s*")
_CAUSE = re.compile(r"(?:Caused by: |: )(?:[\w$]+\.)+(?P<name>\w+(?:Exception|Error)): (?P<why>.+)")
#: What Iceberg and Hudi say if another writer was faster. None of it comes after a commit.
_CONFLICT = re.compile(
    r"Runtime file filtering is not possible: the table has been concurrently modified"
    r"|Found (?:new )?conflicting (?:deleted |delete )?files"
    r"|Found concurrently added DV"
    r"|Cannot commit, (?:missing data files|found new (?:position )?delete)"
    r"|Missing required files to delete"
    r"|Cannot determine history between starting snapshot"
    r"|org\.apache\.iceberg\.exceptions\.CommitFailedException"
    r"|HoodieWriteConflictException"
)
_UNKNOWN_OUTCOME = "CommitStateUnknownException"
#: What Spark raises for a value or a state that the statement must not meet; other exceptions are failures of Spark.
_OF_THE_STATEMENT = re.compile(
    r"(Spark)?(Arithmetic|DateTime|NumberFormat)Exception"
    r"|Spark(ArrayIndexOutOfBounds|IllegalArgument|Runtime|UnsupportedOperation|Upgrade)Exception"
    r"|NamespaceNotEmptyException"
)
_RAISES = re.compile(r"\b(raise_error|assert_true)\s*\(", re.IGNORECASE)


@contextmanager
def translated(sql: str) -> Iterator[None]:
    """Raise what Spark raises in this block as a LakeError."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        yield
    except (ParseException, AnalysisException) as exc:
        raise _rejected(str(exc), sql) from exc
    except (Py4JNetworkError, ConnectionError, EOFError) as exc:
        raise _lost() from exc
    except (PySparkException, Py4JError) as exc:
        # Py4J's own error without a trace of Java: the connection broke while the answer was waited for.
        is_lost = type(exc) is Py4JError and "Trace:" not in str(exc)
        raise (_lost() if is_lost else _failed(str(exc), sql, type(exc).__name__)) from exc


@contextmanager
def ended_jvm_ignored() -> Iterator[None]:
    """Put something in the JVM back as it was, unless the JVM has ended, which the statement itself says."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        yield


def _rejected(text: str, sql: str) -> QueryRejectedError:
    position = _POSITION.search(text)
    line, column = (int(position[1]), int(position[2]) + 1) if position else (None, None)
    # Spark appends the statement and the plan to the message; the first paragraph is the message.
    message = _CLASS.sub("", text.strip().split("\n\n")[0].split("\n== ")[0].split(";\n")[0]).strip()
    message = re.sub(r"\s*;? *\(?line \d+,? pos(ition)? \d+\)?\.?", "", message).replace("\n", " ")
    return QueryRejectedError(message, sql=sql, line=line, column=column)


def _lost() -> StatementLostError:
    return StatementLostError(
        "Spark's JVM ended during the statement, so it may or may not have been committed.",
        "logs/spark.log in the lake's folder says why. If it ran out of memory, read less at once or raise"
        " spark.driver_memory.",
    )


def _of_spark(text: str) -> LakeError | None:
    """What stopped Spark, where it is not a value of the statement."""
    if "No space left on device" in text:
        return DiskFullError("The disk is full; the statement was not committed.", "Free some space and run it again.")
    if "java.lang.OutOfMemoryError" in text:
        return EngineMemoryError(
            "Spark needs more memory than it has for the statement.", "Read less at once, or raise spark.driver_memory."
        )
    if "SparkContext was shut down" in text:
        return _lost()
    if "cancelled" in text and "job" in text.lower():
        return EngineError("The statement was cancelled; nothing was committed.")
    if _UNKNOWN_OUTCOME in text:
        return StatementLostError.of_commit()
    if _CONFLICT.search(text):
        return CommitConflictError(
            "Other writers changed the table while the statement ran.", "Nothing was written. Run it again."
        )
    return None


def _failed(text: str, sql: str, kind: str) -> LakeError:
    if (error := _of_spark(text)) is not None:
        return error
    causes = _CAUSE.findall(text)
    if causes:
        name, why = causes[-1]
        if _OF_THE_STATEMENT.fullmatch(name) or (name == "RuntimeException" and _RAISES.search(sql)):
            return StatementFailedError(_CLASS.sub("", why.strip()))
        return EngineError(f"Spark failed: {why.strip()} ({name}).", "LAKE_DEBUG=1 shows the whole trace.")
    first = _CLASS.sub("", next((line for line in text.splitlines() if line.strip()), "no reason given"))
    if _OF_THE_STATEMENT.fullmatch(kind) or kind in ("ArrayIndexOutOfBoundsException", "IllegalArgumentException"):
        return StatementFailedError(first.strip())
    return EngineError(f"Spark failed: {first.strip()}", "LAKE_DEBUG=1 shows the whole trace.")
