"""A Java that Python drives, for servers that listen on every interface when they are started the usual way.

Their own `main` gives no say in it, but the classes it is made of do. With Py4J, which comes with PySpark, those are put
together here, on the address that is asked for: no patched class, and no Java compiler on the user's machine.
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


def drive(java: str, class_path: Sequence[str], options: Sequence[str]) -> tuple[Any, subprocess.Popen[bytes]]:
    """A Java process and its classes. It ends when this process does: it watches its input."""
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


def serve_until_told(serve: Callable[[], object], ended: Callable[[], bool], stop: Callable[[], object]) -> int:
    """Run a server until we are told to end (0) or it ends by itself (1)."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    threading.Thread(target=serve, daemon=True).start()
    while not told.wait(0.5):
        if ended():
            return 1
    stop()
    return 0


def hadoop_jars() -> list[Path]:
    """Hadoop's client, which PySpark carries, for servers that want one."""
    wanted = ("hadoop-client-api-", "hadoop-client-runtime-", "commons-logging-", "commons-cli-", "commons-io-")
    names = (*wanted, "commons-collections-")
    return sorted(file for file in (spark_home() / "jars").glob("*.jar") if file.name.startswith(names))
