"""List, inspect, download and write objects in S3 and compatible stores, through Arrow's client."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    AccessDeniedError,
    BadSettingError,
    DiskFullError,
    LakeError,
    NoSuchBucketError,
    NotInstalledError,
    StorageError,
    StorageUnreachableError,
)
from lakehouse.core.files import RemoteFile
from lakehouse.core.setting import setting

SCHEME = "s3://"
#: A wrong endpoint costs all attempts; a busy server answers the second or third.
_MAX_ATTEMPTS = 3
_CONNECT_TIMEOUT_S = 3.0
_REQUEST_TIMEOUT_S = 5.0
#: Bytes per request; large enough that round trips do not matter.
_CHUNK_BYTES = 8 << 20

_DENIED = {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID"}

_KEYS_HINT = (
    "Set s3.access_key and s3.secret_key (LAKE_S3__ACCESS_KEY, LAKE_S3__SECRET_KEY) to keys that may read it; "
    "if both are unset, AWS's own variables and files apply."
)
_ENDPOINT_HINT = "Check s3.endpoint (LAKE_S3__ENDPOINT): lake config show. Leave it unset for AWS."
_REGION_HINT = "Check s3.region (LAKE_S3__REGION) and s3.endpoint (LAKE_S3__ENDPOINT): lake config show"


@dataclass(frozen=True)
class S3Settings:
    """`[s3]` in lake.toml, `LAKE_S3__*` in the environment."""

    endpoint: str = setting("", "Address of an S3 server, e.g. http://127.0.0.1:9000 (default: AWS).")
    region: str = setting("us-east-1", "Region of the buckets.")
    access_key: str = setting(
        "",
        "Access key, with s3.secret_key (default: AWS's own variables, files and roles, else anonymous).",
        secret=True,
    )
    secret_key: str = setting(
        "", "Secret key; best in .env, which git ignores (default: see s3.access_key).", secret=True
    )
    path_style: bool = setting(True, "With s3.endpoint: the bucket is in the path of an address, not in the host name.")


class S3:
    """The objects of an S3 store, by full name: `s3://bucket/key`."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        """The names of the objects in a folder, with `deep` also in its subfolders; empty if the folder does not exist."""
        from pyarrow.fs import FileSelector, FileType

        path = _path(folder)
        with self._translated(folder):
            below = self._client.get_file_info(FileSelector(path, recursive=deep, allow_not_found=True))
        names = sorted(SCHEME + info.path for info in below if info.type == FileType.File)
        if not names:
            self._check_bucket(folder)
        return names

    def stat(self, name: str) -> RemoteFile | None:
        """The size and ETag of an object; None if it does not exist."""
        path = _path(name)
        if "/" not in path:
            return None
        try:
            with self._translated(name), self._client.open_input_file(path) as stream:
                etag = stream.metadata().get("ETag", b"").decode().strip('"')
                return RemoteFile(name, stream.size(), etag)
        except FileNotFoundError:
            return None

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool] = lambda: False) -> None:
        """Download an object to a local file in chunks; raises if the object changed since `stat`."""
        try:
            with self._translated(file.name), self._client.open_input_file(_path(file.name)) as stream:
                size = _copy(stream, into, stop)
        except FileNotFoundError as exc:
            raise _changed(file) from exc
        # Each chunk is a request of its own, so an object that was replaced meanwhile would be half old, half new.
        if size != file.size or (file.size > _CHUNK_BYTES and self.stat(file.name) != file):
            into.unlink()
            raise _changed(file)

    def files(self, folder: str) -> Sequence[tuple[str, int, int]]:
        """Name, size and time of modification (in nanoseconds) of every object below a folder, sorted."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(_path(folder), recursive=True, allow_not_found=True)
        with self._translated(folder):
            below = self._client.get_file_info(selector)
        return sorted((SCHEME + info.path, info.size, info.mtime_ns) for info in below if info.type == FileType.File)

    def open(self, name: str) -> BinaryIO:
        """An object for reading at any position; raises FileNotFoundError if it does not exist."""
        with self._translated(name):
            stream: BinaryIO = self._client.open_input_file(_path(name))
            return stream

    def upload(self, file: Path, name: str) -> None:
        """Copy a local file to an object; readers see all of it or nothing."""
        with (
            file.open("rb") as content,
            self._translated(name),
            self._client.open_output_stream(_path(name), compression=None) as stream,
        ):
            while chunk := content.read(_CHUNK_BYTES):
                stream.write(chunk)

    def remove_folder(self, name: str) -> None:
        """Remove every object below a folder; there may be none."""
        with self._translated(name):
            self._client.delete_dir_contents(_path(name), missing_dir_ok=True)

    def remove(self, name: str) -> None:
        """Remove an object; it may be gone already."""
        try:
            with self._translated(name):
                self._client.delete_file(_path(name))
        except FileNotFoundError:
            pass

    def read(self, name: str) -> bytes:
        """Read a small object; raises FileNotFoundError if it does not exist."""
        with self._translated(name), self._client.open_input_file(_path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a small object; readers see all of it or nothing."""
        # Otherwise Arrow compresses a file named .gz a second time.
        with self._translated(name), self._client.open_output_stream(_path(name), compression=None) as stream:
            stream.write(content)

    def make_bucket(self, name: str) -> None:
        """Create a bucket unless it exists."""
        with self._translated(SCHEME + name):
            self._client.create_dir(name, recursive=False)

    @cached_property
    def _client(self) -> Any:
        try:
            from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem
        except ImportError as exc:
            raise NotInstalledError("pyarrow", "duckdb") from exc
        settings = self._settings
        scheme, host = address(settings.endpoint)
        if bool(settings.access_key) != bool(settings.secret_key):
            raise BadSettingError("Only one of s3.access_key and s3.secret_key is set.", _KEYS_HINT)
        return S3FileSystem(
            access_key=settings.access_key or None,
            secret_key=settings.secret_key or None,
            region=settings.region,
            scheme=scheme,
            endpoint_override=host or None,
            force_virtual_addressing=not settings.path_style,
            allow_bucket_creation=True,  # for make_bucket; nothing else here creates a folder
            connect_timeout=_CONNECT_TIMEOUT_S,
            request_timeout=_REQUEST_TIMEOUT_S,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_MAX_ATTEMPTS),
        )

    def _check_bucket(self, name: str) -> None:
        """Raise if the bucket of a name does not exist."""
        from pyarrow.fs import FileType

        bucket = _bucket(name)
        with self._translated(name):
            info = self._client.get_file_info(bucket)
        if info.type == FileType.NotFound:
            raise NoSuchBucketError(f"There is no bucket {bucket}.", _ENDPOINT_HINT)

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """Translate Arrow's errors. The message keeps only the cause, because a server may quote the request, with its keys."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise self._explained(name, exc) from exc
        except ValueError as exc:  # Arrow raises it for a path that it cannot parse, such as a//b
            raise StorageError(f"{name} is not a name that can be read.", "Write s3://bucket/key.") from exc

    def _explained(self, name: str, exc: OSError) -> LakeError:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            return DiskFullError(
                f"The disk is too full to download {name}.", "Free some space or move the lake: LAKE_HOME."
            )
        # The text starts with the name of the object, which may contain anything.
        match = re.search(
            r"(\w+)(?: \(HTTP status (\d+)\))? during \w+ operation: (.*)", str(exc).rpartition("AWS Error ")[2]
        )
        code, status, cause = match.groups("") if match else (str(exc.strerror or exc), "", "")
        if code in _DENIED or status in ("401", "403"):
            why = "with the keys that are set" if self._settings.access_key else "because s3.access_key is not set"
            return AccessDeniedError(f"S3 denies access to {name} {why}.", _KEYS_HINT)
        if code == "NO_SUCH_BUCKET":
            return NoSuchBucketError(f"There is no bucket {_bucket(name)}.", _ENDPOINT_HINT)
        if code == "NETWORK_CONNECTION":
            why = cause.partition(", ")[2].partition(";")[0]
            server = self._settings.endpoint or "AWS"
            return StorageUnreachableError(f"The S3 server {server} cannot be reached: {why}.", _ENDPOINT_HINT)
        return StorageError(f"{name} could not be read: {code} {status}".rstrip() + ".", _REGION_HINT)


def is_remote(uri: str) -> bool:
    """Whether a URI names an object; `s3a` is Hadoop's scheme for the same."""
    return uri.startswith((SCHEME, "s3a://"))


def error_code(exc: Exception) -> str:
    """The code of an object store's error, as Arrow states it; empty if it has none. The message may quote the request, with its keys."""
    match = re.search(r"AWS Error (\w+)", str(exc))
    return match[1] if match else ""


def hadoop_uri(uri: str) -> str:
    """The same object for Spark's own readers and writers, which know the scheme s3a."""
    return "s3a://" + uri.removeprefix(SCHEME) if uri.startswith(SCHEME) else uri


def _bucket(name: str) -> str:
    return _path(name).partition("/")[0]


def _path(name: str) -> str:
    """Arrow's path of an object or folder: `bucket/key`."""
    path = name.removeprefix(SCHEME).removeprefix("s3a://").rstrip("/")
    if not path or path.startswith("/"):
        raise StorageError(f"{name} names no bucket.", "Write s3://bucket/key.")
    return path


def address(endpoint: str) -> tuple[str, str]:
    """The scheme of an endpoint, and its host with the port."""
    scheme, separator, host = endpoint.rpartition("://")
    host = host.rstrip("/")
    if scheme.lower() not in ("", "http", "https") or (endpoint and not host) or "@" in host:
        # The value is not shown: there may be a password before the @.
        raise BadSettingError("s3.endpoint is not an address.", "Write it as http://127.0.0.1:9000 or https://host.")
    return (scheme.lower() if separator else "https"), host


def _copy(stream: Any, into: Path, stop: Callable[[], bool]) -> int:
    """Write a stream to a file; returns the number of bytes."""
    size = 0
    with into.open("wb") as file:
        while not stop() and (chunk := stream.read(_CHUNK_BYTES)):
            size += file.write(chunk)
    return size


def _changed(file: RemoteFile) -> StorageError:
    return StorageError(f"{file.name} changed while it was downloaded.", "Try again when it is complete.")
