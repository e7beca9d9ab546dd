"""Metadata files: read once, for they never change, and written through PyIceberg's FileIO wherever the lake is."""

from __future__ import annotations

import gzip
import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import load_file_io
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.view.metadata import ViewMetadata

from lakehouse.core.uris import local_path
from lakehouse.rest_catalog.problems import NotFound, Problem

#: What the cache may hold of files as they are; parsed ones come on top, a few times as much.
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
        """The file as it is, JSON."""
        return self._cached(location).raw

    def check_there(self, location: str) -> None:
        """Refuse a file that somebody removed, though its content may still be known here."""
        with self._lock:
            known = location in self._cache
        if known and not self._is_there(location):
            raise NotFound(f"Failed to open input stream for file: {location}", "The file is not there.")

    def _is_there(self, location: str) -> bool:
        if _is_local(location):
            return local_path(location).is_file()  # a millisecond less than through Arrow
        return bool(self._io(location).new_input(location).exists())

    def table(self, location: str) -> TableMetadata:
        """The metadata of a table."""
        cached = self._cached(location)
        if not isinstance(cached.parsed, ViewMetadata | None):
            return cached.parsed
        try:
            cached.parsed = TableMetadataUtil.parse_raw(cached.raw.decode())
        except (ValidationError, ValueError, KeyError) as exc:
            raise Problem(f"{location} is not a table's metadata that can be changed here: {_first_line(exc)}") from exc
        return cached.parsed

    def view(self, location: str) -> ViewMetadata:
        """The metadata of a view."""
        cached = self._cached(location)
        if not isinstance(cached.parsed, ViewMetadata):
            try:
                cached.parsed = ViewMetadata.model_validate_json(cached.raw)
            except ValueError as exc:
                raise Problem(f"{location} is not a view's metadata: {_first_line(exc)}") from exc
        return cached.parsed

    def write(self, location: str, content: bytes) -> None:
        """Write a file that is not there yet; whoever reads it next need not fetch it."""
        stored = gzip.compress(content) if location.endswith(_GZIP) else content
        try:
            with self._io(location).new_output(location).create(overwrite=False) as stream:
                stream.write(stored)
        except (OSError, ValueError) as exc:
            raise _failure(f"{location} could not be written", exc) from exc
        self._put(location, _Cached(content))

    def make_room(self, folder: str) -> None:
        """Make a local table's folders before the client writes there: not every engine makes its own."""
        if _is_local(folder):
            for part in ("data", "metadata"):
                (local_path(folder) / part).mkdir(parents=True, exist_ok=True)

    def remove(self, location: str) -> None:
        """Remove a file that this process has just written and nobody points at."""
        with self._lock:
            gone = self._cache.pop(location, None)
            self._size -= len(gone.raw) if gone else 0
        try:
            self._io(location).delete(location)
        except OSError:
            return  # maintenance finds it

    def _cached(self, location: str) -> _Cached:
        with self._lock:
            cached = self._cache.get(location)
            if cached is not None:
                self._cache.move_to_end(location)
                return cached
        return self._put(location, _Cached(self._read(location)))

    def _put(self, location: str, cached: _Cached) -> _Cached:
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
            raise NotFound(f"Failed to open input stream for file: {location}", "The file is not there.") from exc
        except (OSError, ValueError) as exc:
            raise _failure(f"{location} could not be read", exc) from exc
        return gzip.decompress(content) if location.endswith(_GZIP) else content

    def _io(self, location: str) -> Any:
        # One for each scheme: an S3 client is dear to make and safe to share.
        scheme = "file" if location.startswith("/") else location.partition(":")[0]
        if scheme not in _SCHEMES:
            raise Problem(f"{location} is nowhere that tables can lie.", f"Known are: {', '.join(_SCHEMES)}.")
        if scheme not in self._by_scheme:
            self._by_scheme[scheme] = load_file_io(self._properties, location)
        return self._by_scheme[scheme]


def new_location(folder: str, properties: Mapping[str, str], before: str = "") -> str:
    """Where the next metadata file of a table or view goes."""
    last = before.rsplit("/", 1)[-1].partition("-")[0]
    version = int(last) + 1 if last.isdigit() else 0
    gzipped = properties.get("write.metadata.compression-codec", "none").lower() == "gzip"
    inside = properties.get("write.metadata.path", f"{folder.rstrip('/')}/metadata").rstrip("/")
    return f"{inside}/{version:05d}-{uuid.uuid4()}" + (_GZIP if gzipped else ".metadata.json")


def only_referenced_snapshots(raw: bytes) -> bytes:
    """Metadata with those snapshots alone that a branch or tag names."""
    metadata = json.loads(raw)
    named = {ref["snapshot-id"] for ref in metadata.get("refs", {}).values()} | {metadata.get("current-snapshot-id")}
    metadata["snapshots"] = [each for each in metadata.get("snapshots", []) if each["snapshot-id"] in named]
    return json.dumps(metadata, separators=(",", ":")).encode()


def _is_local(location: str) -> bool:
    return location.startswith(("file:", "/"))


def _failure(what: str, exc: Exception) -> Problem:
    """Of the error's text only the cause is told, for a server may quote the request in it."""
    told = re.search(r"AWS Error (\w+)", str(exc))
    cause = told[1] if told else getattr(exc, "strerror", None) or type(exc).__name__
    return Problem(f"{what}: {cause}", status=500, kind="ServiceFailureException")


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0]
