"""A JVM that Python controls, for servers whose own `main` listens on every interface.

With Py4J, which comes with PySpark, the classes behind that `main` are assembled here on the configured address. That
needs no patched class and no Java compiler on the user's machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lakehouse.engines.spark.launch import spark_home


def launch_jvm(java: str, class_path: Sequence[str], options: Sequence[str]) -> tuple[Any, subprocess.Popen[bytes]]:
    """Start a JVM; returns its classes and its process. It ends with this process, because it reads our end of a pipe."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    (jar,) = (spark_home() / "jars").glob("py4j-*.jar")
    port, token, process = launch_gateway(
        jarpath=str(jar),
        classpath=os.pathsep.join(class_path),
        javaopts=list(options),
        die_on_exit=True,
        redirect_stdout=sys.stdout,
        redirect_stderr=sys.stderr,
        java_path=java,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token.decode(), auto_convert=True))
    return gateway.jvm, process


def serve_until_signal(serve: Callable[[], object], ended: Callable[[], bool], stop: Callable[[], object]) -> int:
    """Run a server until SIGTERM arrives (returns 0) or it ends by itself (returns 1)."""
    signalled = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: signalled.set())
    threading.Thread(target=serve, daemon=True).start()
    while not signalled.wait(0.5):
        if ended():
            return 1
    stop()
    return 0


def hadoop_jars() -> list[Path]:
    """The jars of Hadoop's client, which PySpark includes."""
    commons = ("commons-logging-", "commons-cli-", "commons-io-", "commons-collections-")
    names = ("hadoop-client-api-", "hadoop-client-runtime-", *commons)
    return sorted(file for file in (spark_home() / "jars").glob("*.jar") if file.name.startswith(names))
