"""The object store: MinIO if it is installed or Go can build it, else s3proxy on Spark's Java."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import NotInstalledError, ServiceFailedError
from lakehouse.core.quoting import java_properties
from lakehouse.engines.spark.java import find_java
from lakehouse.process.daemons import module_command
from lakehouse.process.files import locked
from lakehouse.process.http_client import answers
from lakehouse.process.sockets import accepts_connections
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import ENVIRONMENT, ContainerSpec, Port, ProcessSpec, Service, StackContext
from lakehouse.stack.process import environment, run_tool

MINIO_VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
S3PROXY = MavenArtifact(
    "org.gaul",
    "s3proxy",
    "4.1.0",
    "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
    54_955_934,
    "jar-with-dependencies",
)
_BUILD_TIMEOUT_S = 1800
#: Beside the data: why s3proxy was started although Go is installed.
_REASON = "s3proxy.reason"


def kind(context: StackContext) -> str:
    """The object store in use: `minio` or `s3proxy`."""
    chosen = context.settings.stack.storage
    if chosen != "auto":
        return chosen
    # Neither reads the other's folder, so existing data decides.
    for server in ("minio", "s3proxy"):
        if (context.folder("storage") / server).is_dir():
            return server
    return "minio" if minio(context.settings) or shutil.which("go") else "s3proxy"


def description(context: StackContext) -> str:
    """The object store in use, and why it is not MinIO."""
    if kind(context) == "minio":
        return "MinIO"
    if context.settings.stack.storage == "s3proxy":
        return "s3proxy: stack.storage"
    if (reason := context.folder("storage") / _REASON).is_file():
        return f"s3proxy: {reason.read_text().strip()}"
    if minio(context.settings) or shutil.which("go"):
        return "s3proxy: it holds data already, which MinIO cannot read"
    return "s3proxy: no Go toolchain to build MinIO"


def minio(settings: Settings) -> str | None:
    """The path of MinIO: the built program, or one on the PATH."""
    return str(_minio_target(settings)) if _minio_target(settings).is_file() else shutil.which("minio")


def _minio_target(settings: Settings) -> Path:
    return settings.cache / "dist" / f"minio-{MINIO_VERSION}" / "minio"


def _build(context: StackContext, progress: Callable[[str], object]) -> None:
    """Build MinIO, once: it is published as source only. With `auto`, a build that fails or takes too long leaves s3proxy."""
    if kind(context) != "minio" or minio(context.settings):
        return
    go = shutil.which("go")
    if go is None:
        raise NotInstalledError("MinIO, or Go to build it,", "stack")
    target = _minio_target(context.settings)
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.parent.with_name(target.parent.name + ".lock")):
        if target.is_file():
            return
        progress("Building MinIO with Go, once: some minutes")
        try:
            _run_go(go, target)
        except (ServiceFailedError, subprocess.TimeoutExpired) as exc:
            if context.settings.stack.storage != "auto":
                raise _not_built(exc) from exc
            _fall_back(context, _not_built(exc).message, progress)


def _run_go(go: str, target: Path) -> None:
    command = [go, "install", "-ldflags", "-s -w", f"github.com/minio/minio@{MINIO_VERSION}"]
    scratch = target.parent / "bin"
    environ = {**os.environ, "GOBIN": str(scratch)}
    run_tool("storage", "building MinIO with Go", command, env=environ, timeout=_BUILD_TIMEOUT_S)
    (scratch / "minio").replace(target)


def _not_built(exc: Exception) -> ServiceFailedError:
    timed_out = isinstance(exc, subprocess.TimeoutExpired)
    why = f"building MinIO took more than {_BUILD_TIMEOUT_S // 60} minutes" if timed_out else str(exc).rstrip(".")
    return ServiceFailedError(f"{why}.", "Use the other object store: LAKE_STACK__STORAGE=s3proxy")


def _fall_back(context: StackContext, reason: str, progress: Callable[[str], object]) -> None:
    """Choose s3proxy for this lake. Its folder decides from now on, because MinIO cannot read it."""
    folder = context.folder("storage")
    (folder / "s3proxy").mkdir(parents=True, exist_ok=True)
    (folder / _REASON).write_text(reason.rstrip(".") + "\n")
    progress(f"{reason} Starting s3proxy instead. To try MinIO again, before there is data: rm -r {folder}")


def _minio_process(context: StackContext) -> ProcessSpec:
    stack = context.settings.stack
    folder = context.folder("storage") / "minio"
    listening = ["--address", f"{stack.host}:{stack.storage_port}"]
    listening += ["--console-address", f"{stack.host}:{stack.storage_console_port}"]
    return ProcessSpec(
        (minio(context.settings) or "minio", "server", "--quiet", *listening, str(folder)),
        environment={
            "MINIO_ROOT_USER": context.secrets.access_key,
            "MINIO_ROOT_PASSWORD": context.secrets.secret_key,
            "MINIO_REGION": stack.region,
            "MINIO_UPDATE": "off",
            "MINIO_BROWSER_REDIRECT": "off",
            "GOMEMLIMIT": stack.storage_memory.upper().rstrip("B") + "iB",
        },
    )


def _s3proxy_process(context: StackContext) -> ProcessSpec:
    file = context.config("storage") / "s3proxy.properties"
    java = find_java(context.settings.spark.java_home)
    properties = {
        "s3proxy.endpoint": context.endpoints.s3_endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": context.endpoints.s3_access_key,
        "s3proxy.credential": context.endpoints.s3_secret_key,
        # Trino sends headers with a listing that this server does not implement; it works without them.
        "s3proxy.ignore-unknown-headers": "true",
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(context.folder("storage") / "s3proxy"),
        "jclouds.identity": "unused",
        "jclouds.credential": "unused",
    }
    command = [str(java.program), f"-Xmx{context.settings.stack.storage_memory}", "-XX:TieredStopAtLevel=1"]
    return ProcessSpec(
        (*command, "-jar", str(artifact_path(context.settings, S3PROXY)), "--properties", str(file)),
        files={file: java_properties(properties)},
    )


def _prepare(context: StackContext) -> None:
    (context.folder("storage") / kind(context)).mkdir(parents=True, exist_ok=True)


def _healthy(context: StackContext) -> bool:
    stack = context.settings.stack
    if kind(context) == "minio":
        return answers(f"{context.endpoints.s3_endpoint}/minio/health/ready")
    return accepts_connections(context.endpoints.host, stack.storage_port)


def _ready(context: StackContext) -> None:
    """Create the bucket, in a child process: the S3 client takes more memory than the supervisor."""
    own = {
        "LAKE_S3__ENDPOINT": context.endpoints.s3_endpoint,
        "LAKE_S3__REGION": context.endpoints.s3_region,
        "LAKE_S3__ACCESS_KEY": context.endpoints.s3_access_key,
        "LAKE_S3__SECRET_KEY": context.endpoints.s3_secret_key,
        "LAKE_STACK__BUCKET": context.endpoints.bucket,
    }
    command = module_command("lakehouse.stack.bucket")
    run_tool(
        "storage", f"creating the bucket {context.endpoints.bucket}", command, env=environment(own), cwd=context.run
    )


_CONTAINER = ContainerSpec(
    image="quay.io/minio/minio:RELEASE.2025-09-07T16-13-09Z",
    command=("server", "--address", ":9000", "--console-address", ":9001", "/data"),
    environment={
        "MINIO_ROOT_USER": "${S3_ACCESS_KEY}",
        "MINIO_ROOT_PASSWORD": "${S3_SECRET_KEY}",
        "MINIO_REGION": "${S3_REGION}",
        "MINIO_UPDATE": "off",
    },
    health=("CMD", "mc", "ready", "local"),
    volumes={"storage": "/data"},
    root=True,  # a new volume belongs to root, and this image cannot change its owner
    start_period_s=20,
    memory="1g",
)

_BUCKET_JOB = ContainerSpec(
    image="",
    build=True,
    entrypoint=("python", "-m", "lakehouse.stack.bucket"),
    environment=ENVIRONMENT,
    needs={"storage": "service_healthy"},
    once=True,
    memory="512m",
)

SERVICE = Service(
    name="storage",
    about="the object store: MinIO, or s3proxy over a folder",
    version=f"MinIO {MINIO_VERSION.rpartition('-')[2]}, s3proxy {S3PROXY.version}",
    licence="MinIO: AGPL-3.0; s3proxy: Apache-2.0",
    memory_mb=80,
    ports=(Port("storage_port", "http://{host}:{port}", 9000), Port("storage_console_port", inside=9001)),
    artifacts=lambda context: () if kind(context) == "minio" else (S3PROXY,),
    build=_build,
    prepare=_prepare,
    process=lambda context: _minio_process(context) if kind(context) == "minio" else _s3proxy_process(context),
    healthy=_healthy,
    ready=_ready,
    container=_CONTAINER,
    jobs={"bucket": _BUCKET_JOB},
)
