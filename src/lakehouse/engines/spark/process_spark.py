"""The Spark of this process: PySpark has one context per process, so all lakes of a process that need the same Spark share it.

The first lake starts or attaches it, the last one that closes ends it. One that has ended, because its JVM died or somebody
stopped its context, is noticed and replaced when it is next needed.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import SparkInUseError
from lakehouse.engines.spark.attach import detach, silent_disconnect

if TYPE_CHECKING:
    from lakehouse.engines.spark.launch import StartedSession

_STOP_TIMEOUT_S = 30
_CONNECT_TIMEOUT_S = 5
_SAME_PROCESS = "Close the other one first, or use another process."


@dataclass
class _SharedSpark:
    key: str
    started: StartedSession
    users: set[int] = field(default_factory=set)
    """The ids of the sessions' pools that use it."""
    borrowed: int = 0
    """How often it is in use now, or was given away for good."""


_lock = threading.RLock()
_current: _SharedSpark | None = None


def acquire(user: object, key: str, start: Callable[[], StartedSession], isolated: bool = False) -> StartedSession:
    """The Spark of this process, started if there is none.

    Args:
        key: identifies the settings that the Spark is started with; empty for one that can be beside others (Spark Connect).
        isolated: not one that other processes use, too.
    Raises:
        SparkInUseError: the process has a Spark with other settings.
    """
    global _current
    if not key:
        return start()
    with _lock:
        if _current is not None and has_ended(_current.started):
            discard(_current.started)
        if _current is not None and isolated and _current.started.lease is not None:
            if _current.borrowed:
                raise SparkInUseError("This process is attached to the warm Spark and uses it.", _SAME_PROCESS)
            discard(_current.started)
        if _current is None:
            _refuse_other_context()
            _current = _SharedSpark(key, start())
        if _current.key != key:
            raise SparkInUseError("This process already has a Spark, of a lake with other settings.", _SAME_PROCESS)
        _current.users.add(id(user))
        return _current.started


def release(user: object, started: StartedSession) -> None:
    """End the Spark unless another user has it."""
    with _lock:
        if started.url:
            stop_session(started)
        if _current is None or _current.started is not started:
            return  # it was replaced meanwhile
        _current.users.discard(id(user))
        if not _current.users:
            discard(started)


def discard(started: StartedSession) -> None:
    """End a Spark for all its users; each of them gets a new one when it next needs one."""
    global _current
    with _lock:
        if _current is not None and _current.started is started:
            _current = None
            stop_session(started)


def is_current(started: StartedSession) -> bool:
    """Whether a Spark is still that of this process, and answers."""
    current = _current
    return bool(started.url) or (current is not None and current.started is started and not has_ended(started))


@contextmanager
def in_use(started: StartedSession) -> Iterator[None]:
    """While the block runs, the Spark is not replaced by an isolated one."""
    give_away(started, 1)
    try:
        yield
    finally:
        give_away(started, -1)


def give_away(started: StartedSession, times: int = 1) -> None:
    """Count how often a Spark is in use."""
    with _lock:
        if _current is not None and _current.started is started:
            _current.borrowed += times


def has_ended(started: StartedSession) -> bool:
    """Whether a session can no longer be used: its JVM has ended, or its context was stopped. Py4J's errors do not say it."""
    if started.url:
        return False
    if started.jvm is not None and started.jvm.poll() is not None:
        return True
    context = getattr(started.spark._sc, "_jsc", None)
    if context is None:
        return True
    from py4j.protocol import Py4JError

    try:
        socket.create_connection(("127.0.0.1", _port(started)), timeout=_CONNECT_TIMEOUT_S).close()
        with silent_disconnect():
            return bool(context.sc().isStopped())
    except (OSError, Py4JError):
        return True


def stop_session(started: StartedSession) -> None:
    """End a session, and the JVM that was started for it; a later session starts or attaches anew."""
    jvm = started.jvm
    with silent_disconnect():
        if started.lease is not None:
            detach(started.spark._sc._gateway)
            started.lease.release()
        elif jvm is None or jvm.poll() is None:
            started.spark.stop()
        if jvm is not None and jvm.stdin is not None:
            jvm.stdin.close()  # the JVM ends when its input closes
            jvm.wait(timeout=_STOP_TIMEOUT_S)
        if started.url:
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # set by PySpark; a Spark started later would inherit it
        else:
            _forget(shut_down=started.lease is None)


def _port(started: StartedSession) -> int:
    return int(started.spark._sc._gateway.gateway_parameters.port)


def _refuse_other_context() -> None:
    """Raise if the user's own code has a context: PySpark would return it instead of one with the lake's catalogs."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is not None and context._active_spark_context is not None:
        raise SparkInUseError(
            "This process has a Spark context that is not the lake's.", "Stop it first, or use another process."
        )


def _forget(shut_down: bool) -> None:
    """Reset what PySpark holds once per process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._gateway is not None and shut_down:
        SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
