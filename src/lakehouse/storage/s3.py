"""Objects in S3 and everything that speaks like it, read through Arrow's own client: listed, looked at, fetched."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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
from lakehouse.core.setting import setting
from lakehouse.core.source import RemoteFile

SCHEME = "s3://"
#: What a wrong endpoint costs is all of these; a server that is busy answers within the second or third.
_TRIES = 3
_CONNECT_TIMEOUT_S = 3.0
_SILENCE_TIMEOUT_S = 5.0
#: One request each; large enough that the round trips do not matter.
_PIECE = 8 << 20

_DENIED = {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID"}

_KEYS_HINT = (
    "Set s3.access_key and s3.secret_key (LAKE_S3__ACCESS_KEY, LAKE_S3__SECRET_KEY) to keys that may read it; "
    "where both are unset, AWS's own variables and files count."
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
    """The objects that the settings give access to, by their whole names: `s3://bucket/key`."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        """The names of all objects below a folder, or right in it; none if there is no such folder."""
        from pyarrow.fs import FileSelector, FileType

        path = _path(folder)
        with self._translated(folder):
            below = self._client.get_file_info(FileSelector(path, recursive=deep, allow_not_found=True))
        names = sorted(SCHEME + info.path for info in below if info.type == FileType.File)
        if not names:
            self._check_bucket(folder)
        return names

    def stat(self, name: str) -> RemoteFile | None:
        """An object's size and the mark of its content, or None if there is none of that name."""
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
        """Copy an object to a local file, piece by piece; it arrives as it was looked at or not at all."""
        try:
            with self._translated(file.name), self._client.open_input_file(_path(file.name)) as stream:
                arrived = _copy(stream, into, stop)
        except FileNotFoundError as exc:
            raise _changed(file) from exc
        # Pieces are asked for one by one, so an object that was replaced meanwhile would arrive half old, half new.
        if arrived != file.size or (file.size > _PIECE and self.stat(file.name) != file):
            into.unlink()
            raise _changed(file)

    def read(self, name: str) -> bytes:
        """All of a small object; FileNotFoundError if there is none."""
        with self._translated(name), self._client.open_input_file(_path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """A small object, seen complete or not at all."""
        # Without this, Arrow would pack what is called .gz once more.
        with self._translated(name), self._client.open_output_stream(_path(name), compression=None) as stream:
            stream.write(content)

    def make_bucket(self, name: str) -> None:
        """A bucket of that name, unless there is one."""
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
            raise BadSettingError("Of s3.access_key and s3.secret_key only one is set.", _KEYS_HINT)
        return S3FileSystem(
            access_key=settings.access_key or None,
            secret_key=settings.secret_key or None,
            region=settings.region,
            scheme=scheme,
            endpoint_override=host or None,
            force_virtual_addressing=not settings.path_style,
            allow_bucket_creation=True,  # for make_bucket; nothing else here makes a folder
            connect_timeout=_CONNECT_TIMEOUT_S,
            request_timeout=_SILENCE_TIMEOUT_S,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        )

    def _check_bucket(self, name: str) -> None:
        """Say so if it is the bucket that is missing, not what should be in it."""
        from pyarrow.fs import FileType

        bucket = _bucket(name)
        with self._translated(name):
            found = self._client.get_file_info(bucket)
        if found.type == FileType.NotFound:
            raise NoSuchBucketError(f"There is no bucket {bucket}.", _ENDPOINT_HINT)

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """Arrow's errors as ours; of their texts only the cause is told, for a server may quote the request in them."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise self._explained(name, exc) from exc
        except ValueError as exc:  # Arrow's own for a path that it cannot take apart, such as a//b
            raise StorageError(f"{name} is not a name that can be read.", "Write s3://bucket/key.") from exc

    def _explained(self, name: str, exc: OSError) -> LakeError:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            return DiskFullError(f"There is no room to fetch {name}.", "Free some space or move the lake: LAKE_HOME.")
        # The text starts with the object's name, which may read like anything.
        told = re.search(
            r"(\w+)(?: \(HTTP status (\d+)\))? during \w+ operation: (.*)", str(exc).rpartition("AWS Error ")[2]
        )
        code, status, cause = told.groups("") if told else (str(exc.strerror or exc), "", "")
        if code in _DENIED or status in ("401", "403"):
            why = "with the keys that are set" if self._settings.access_key else "because s3.access_key is not set"
            return AccessDeniedError(f"S3 refuses to give {name} {why}.", _KEYS_HINT)
        if code == "NO_SUCH_BUCKET":
            return NoSuchBucketError(f"There is no bucket {_bucket(name)}.", _ENDPOINT_HINT)
        if code == "NETWORK_CONNECTION":
            why = cause.partition(", ")[2].partition(";")[0]
            server = self._settings.endpoint or "AWS"
            return StorageUnreachableError(f"The S3 server {server} cannot be reached: {why}.", _ENDPOINT_HINT)
        return StorageError(f"{name} could not be read: {code} {status}".rstrip() + ".", _REGION_HINT)


def is_remote(uri: str) -> bool:
    """Whether a URI names an object; s3a is what Hadoop calls the same."""
    return uri.startswith((SCHEME, "s3a://"))


def _bucket(name: str) -> str:
    return _path(name).partition("/")[0]


def _path(name: str) -> str:
    """What Arrow calls an object or a folder: `bucket/key`."""
    path = name.removeprefix(SCHEME).removeprefix("s3a://").rstrip("/")
    if not path or path.startswith("/"):
        raise StorageError(f"{name} names no bucket.", "Write s3://bucket/key.")
    return path


def address(endpoint: str) -> tuple[str, str]:
    """The endpoint's scheme and its host with the port."""
    scheme, found, host = endpoint.rpartition("://")
    host = host.rstrip("/")
    if scheme.lower() not in ("", "http", "https") or (endpoint and not host) or "@" in host:
        # Not shown: what stands before an @ may be a password.
        raise BadSettingError("s3.endpoint is not an address.", "Write it as http://127.0.0.1:9000 or https://host.")
    return (scheme.lower() if found else "https"), host


def _copy(stream: Any, into: Path, stop: Callable[[], bool]) -> int:
    """Write what the stream holds into the file; says how many bytes that were."""
    arrived = 0
    with into.open("wb") as file:
        while not stop() and (piece := stream.read(_PIECE)):
            arrived += file.write(piece)
    return arrived


def _changed(file: RemoteFile) -> StorageError:
    return StorageError(f"{file.name} was changed while it was fetched.", "Try again when it is complete.")
