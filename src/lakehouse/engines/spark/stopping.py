"""The end of a session: stop the JVM that was started for it, leave that of the warm Spark to others, notice one that has ended."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from lakehouse.engines.spark.attach import detach, silent_disconnect

if TYPE_CHECKING:
    from lakehouse.engines.spark.launch import StartedSession

_STOP_TIMEOUT_S = 30
_CONNECT_TIMEOUT_S = 5


def has_ended(started: StartedSession) -> bool:
    """Whether the JVM of a session has ended; errors of Py4J do not say it."""
    if started.lease is None:
        return started.jvm is not None and started.jvm.poll() is not None
    try:
        socket.create_connection(("127.0.0.1", started.lease.port), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError:
        return True
    return False


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


def _forget(shut_down: bool) -> None:
    """Reset what PySpark holds once per process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._gateway is not None and shut_down:
        SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
