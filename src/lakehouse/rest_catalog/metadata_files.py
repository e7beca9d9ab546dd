"""Metadata files, read and written through PyIceberg's FileIO and cached, because they never change."""

from __future__ import annotations

import gzip
import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import load_file_io
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.view.metadata import ViewMetadata

from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import local_path
from lakehouse.core.metadata_file import uncompressed
from lakehouse.rest_catalog.errors import NotFoundError, RestError
from lakehouse.storage.s3 import error_code

#: The limit of the cache for raw files; parsed ones take a few times as much in addition.
_CACHE_BYTES = 64 << 20
_GZIP = ".gz.metadata.json"
_SCHEMES = ("file", "s3", "s3a", "s3n")


@dataclass
class _Cached:
    raw: bytes
    parsed: Any = None


class MetadataFiles:
    """The metadata files of tables and views, by their locations."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._cache: OrderedDict[str, _Cached] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._by_scheme: dict[str, Any] = {}

    def raw(self, location: str) -> bytes:
        """Return the JSON content of a file."""
        return self._cached(location).raw

    def parsed_json(self, location: str) -> dict[str, Any]:
        """Return a file as JSON, whatever it describes."""
        content = json.loads(self.raw(location))
        return content if isinstance(content, dict) else {}

    def input(self, location: str) -> Any:
        """Return a file of any kind for reading, as PyIceberg's `InputFile`."""
        return self._io(location).new_input(location)

    def is_present(self, location: str) -> bool:
        """Whether a file can be read: one that was removed may still be cached."""
        try:
            self.raw(location)
        except NotFoundError:
            return False
        return True

    def check_exists(self, location: str) -> None:
        """Refuse a file that was removed, although its content may still be cached."""
        with self._lock:
            cached = location in self._cache
        if cached and not self._exists(location):
            raise NotFoundError(f"Failed to open input stream for file: {location}", "The file does not exist.")

    def _exists(self, location: str) -> bool:
        if _is_local(location):
            return local_path(location).is_file()  # a millisecond faster than Arrow
        return bool(self._io(location).new_input(location).exists())

    def table(self, location: str) -> TableMetadata:
        """Return the metadata of a table."""
        cached = self._cached(location)
        if not isinstance(cached.parsed, ViewMetadata | None):
            return cached.parsed
        try:
            cached.parsed = TableMetadataUtil.parse_raw(cached.raw.decode())
        except (ValidationError, ValueError, KeyError) as exc:
            raise RestError(f"{location} is not valid table metadata: {_first_line(exc)}") from exc
        return cached.parsed

    def view(self, location: str) -> ViewMetadata:
        """Return the metadata of a view."""
        cached = self._cached(location)
        if not isinstance(cached.parsed, ViewMetadata):
            try:
                cached.parsed = ViewMetadata.model_validate_json(cached.raw)
            except ValueError as exc:
                raise RestError(f"{location} is not valid view metadata: {_first_line(exc)}") from exc
        return cached.parsed

    def write(self, location: str, content: bytes) -> None:
        """Write a new file and cache it."""
        stored = gzip.compress(content) if location.endswith(_GZIP) else content
        try:
            with self._io(location).new_output(location).create(overwrite=False) as stream:
                stream.write(stored)
        except (OSError, ValueError) as exc:
            raise _failure(f"{location} could not be written", exc) from exc
        self._add(location, _Cached(content))

    def create_folders(self, folder: str) -> None:
        """Create a local table's folders before the client writes there: not every engine creates them."""
        if _is_local(folder):
            for part in ("data", "metadata"):
                (local_path(folder) / part).mkdir(parents=True, exist_ok=True)

    def remove(self, location: str) -> None:
        """Remove a file that this process has just written and that is unused."""
        with self._lock:
            removed = self._cache.pop(location, None)
            self._size -= len(removed.raw) if removed else 0
        try:
            self._io(location).delete(location)
        except OSError:
            return  # maintenance removes it

    def _cached(self, location: str) -> _Cached:
        with self._lock:
            cached = self._cache.get(location)
            if cached is not None:
                self._cache.move_to_end(location)
                return cached
        return self._add(location, _Cached(self._read(location)))

    def _add(self, location: str, cached: _Cached) -> _Cached:
        with self._lock:
            before = self._cache.pop(location, None)
            self._size += len(cached.raw) - (len(before.raw) if before else 0)
            self._cache[location] = cached
            while self._size > _CACHE_BYTES and len(self._cache) > 1:
                self._size -= len(self._cache.popitem(last=False)[1].raw)
        return cached

    def _read(self, location: str) -> bytes:
        try:
            with self._io(location).new_input(location).open() as stream:
                content = stream.read()
        except FileNotFoundError as exc:
            raise NotFoundError(
                f"Failed to open input stream for file: {location}", "The file does not exist."
            ) from exc
        except (OSError, ValueError) as exc:
            raise _failure(f"{location} could not be read", exc) from exc
        return uncompressed(content)

    def _io(self, location: str) -> Any:
        # One per scheme: an S3 client is expensive to create and safe to share.
        scheme = "file" if location.startswith("/") else location.partition(":")[0]
        if scheme not in _SCHEMES:
            raise RestError(f"The scheme of {location} is not supported.", f"Supported: {', '.join(_SCHEMES)}.")
        if scheme not in self._by_scheme:
            self._by_scheme[scheme] = load_file_io(self._properties, location)
        return self._by_scheme[scheme]


def new_location(folder: str, properties: Mapping[str, str], before: str = "") -> str:
    """Return the location of the next metadata file of a table or view."""
    last = before.rsplit("/", 1)[-1].partition("-")[0]
    version = int(last) + 1 if last.isdigit() else 0
    gzipped = properties.get("write.metadata.compression-codec", "none").lower() == "gzip"
    target = properties.get("write.metadata.path", f"{folder.rstrip('/')}/metadata").rstrip("/")
    return f"{target}/{version:05d}-{uuid.uuid4()}" + (_GZIP if gzipped else ".metadata.json")


def only_referenced_snapshots(raw: bytes) -> bytes:
    """Return metadata with only the snapshots that a branch or tag refers to."""
    metadata = json.loads(raw)
    named = {ref["snapshot-id"] for ref in metadata.get("refs", {}).values()} | {metadata.get("current-snapshot-id")}
    metadata["snapshots"] = [snapshot for snapshot in metadata.get("snapshots", []) if snapshot["snapshot-id"] in named]
    return json.dumps(metadata, separators=(",", ":")).encode()


def _is_local(location: str) -> bool:
    return location.startswith(("file:", "/"))


def _failure(what: str, exc: Exception) -> RestError:
    """Return the error with its cause only: a server may quote the request in its message."""
    cause = error_code(exc) or getattr(exc, "strerror", None) or type(exc).__name__
    if cause == "NO_SUCH_BUCKET":
        return RestError(f"{what}: the bucket does not exist.")
    return RestError(f"{what}: {cause}", status=503, kind="ServiceUnavailableException")


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0]
