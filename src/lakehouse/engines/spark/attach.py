"""Attach this process to the JVM of the warm Spark: sessions of its own there, without starting a JVM.

PySpark attaches to a running JVM if it has the port and secret of its gateway. Attached processes share the JVM and nothing else:
each has sessions of its own (settings, temporary views), its own job group, and Python workers of its own.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Where installed packages and Python's own modules are.
_INSTALLED = (sys.prefix, sys.base_prefix)


_PY4J_DISCONNECTED = "Exception while sending command."
#: The classes of whose functions PySpark asks for every column.
_CLASSES = ("functions", "PythonUtils", "PythonSQLUtils")


class _Members:
    """A class of the JVM that asks the JVM for each of its functions once.

    PySpark asks twice before every call: a third of the requests of a small run.
    """

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._class, name)
        setattr(self, name, member)
        return member


@dataclass(frozen=True)
class Lease:
    """The right to use a warm Spark's JVM, for as long as a connection to its daemon is open."""

    port: int
    secret: str = field(repr=False)
    release: Callable[[], None]


@contextmanager
def gateway_environment(port: int, secret: str) -> Iterator[None]:
    """Tell PySpark which gateway to use. Child processes must not inherit the secret."""
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def attach(lease: Lease) -> SparkSession:
    """A new session in the JVM of a lease."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    with gateway_environment(lease.port, lease.secret):
        gateway = launch_gateway()
    atexit.register(detach, gateway)
    jvm: Any = gateway.jvm
    for name in _CLASSES:
        setattr(jvm, name, _Members(getattr(jvm, name)))
    root = jvm.SparkSession.builder().getOrCreate()  # the default session of the JVM
    context = root.sparkContext()
    with _own_interrupt_handler():
        java_context = jvm.JavaSparkContext.fromSparkContext(context)
        attached = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jvm=jvm, _jconf=context.getConf()))
    attached.stop = _keep_running
    # Python workers are kept, and have imported the user's modules: those of another environment are not used.
    attached.environment |= {"LAKE_CODE": _code_fingerprint(), "PYTHONPATH": os.pathsep.join(_own_folders())}
    session = SparkSession(attached, root.newSession())
    jvm.SparkSession.setDefaultSession(root)  # which PySpark has just replaced for the whole JVM
    return kept_running(session)


def kept_running(session: SparkSession) -> SparkSession:
    """The same session, whose `stop` does nothing: it would end the Spark of everyone who is attached to it."""
    session.stop = _keep_running
    return session


def _keep_running() -> None:
    """Instead of `stop` of an attached session and context."""


@contextmanager
def silent_disconnect() -> Iterator[None]:
    """Keep what Py4J logs, with a traceback, when the JVM ends out of the log: the caller reports it."""

    def is_other(record: logging.LogRecord) -> bool:
        return record.msg != _PY4J_DISCONNECTED

    log = logging.getLogger()
    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


def detach(gateway: Any) -> None:
    """Delete the Java objects that this process holds, and disconnect; the gateway keeps serving others.

    Py4J deletes an object when Python has no reference to it any more, in a thread: what is left when the process ends would stay
    in the JVM.
    """
    from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
    from py4j.finalizer import ThreadSafeFinalizer
    from py4j.java_gateway import GatewayClient

    atexit.unregister(detach)
    client = gateway._gateway_client
    prefix = f"{client.address}{client.port}"
    keys = [key for key in list(ThreadSafeFinalizer.finalizers) if key.startswith(prefix)]
    tasks: deque[Any] = getattr(client, "finalizer_deque", deque())  # PYSPARK_PIN_THREAD=false has none
    waiting = [task[1] for task in list(tasks) if task != SHUTDOWN_FINALIZER_WORKER]
    with silent_disconnect():  # the JVM may have ended
        for name in (*(key.removeprefix(prefix) for key in keys), *waiting):
            # Of the base class: the client's own method leaves it to the thread.
            GatewayClient.garbage_collect_object(client, name)
    for key in keys:
        ThreadSafeFinalizer.remove_finalizer(key)
    tasks.clear()
    tasks.appendleft(SHUTDOWN_FINALIZER_WORKER)
    client.close()


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep PySpark's handler of Ctrl-C away: it cancels the jobs of all sessions in the JVM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _own_folders() -> list[str]:
    """The folders from which this process imports modules that are not installed: workers import them, too."""
    return [folder for folder in sys.path if folder and not folder.startswith(_INSTALLED)]


def _code_fingerprint() -> str:
    """Changes with the files of all modules that are not installed packages."""
    files = {str(getattr(module, "__file__", "") or "") for module in list(sys.modules.values())}
    own = sorted(file for file in files if file.endswith(".py") and not file.startswith(_INSTALLED))
    facts = [f"{file} {os.stat(file).st_mtime_ns}" for file in own if os.path.exists(file)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
