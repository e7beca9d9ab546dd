"""Iceberg's metadata files of tables and views: read from any storage, plain or gzipped, and written.

Every module that needs the JSON of a metadata file gets it here.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from lakehouse.core.errors import TableError
from lakehouse.core.files import Files

_GZIP = b"\x1f\x8b"
#: Previous metadata files that a metadata file lists, as Iceberg's own default.
_LISTED_METADATA = 100


def load_metadata(uri: str, files: Files) -> dict[str, Any]:
    """Return the JSON of a metadata file; FileNotFoundError if there is none, TableError if it is damaged."""
    return parse_metadata(uri, files.read(uri))


def parse_metadata(uri: str, content: bytes) -> dict[str, Any]:
    """Return the JSON in the content of a metadata file; TableError if it is damaged."""
    try:
        metadata = json.loads(uncompressed(content))
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise TableError(f"The metadata file {uri} is damaged: {exc}.", "Restore it from a backup.") from exc
    if not isinstance(metadata, dict):
        raise TableError(f"The metadata file {uri} is damaged: it holds no JSON object.", "Restore it from a backup.")
    return metadata


def uncompressed(content: bytes) -> bytes:
    """Return the content of a metadata file as text. Names do not tell whether a file is gzipped, its first bytes do."""
    return gzip.decompress(content) if content[:2] == _GZIP else content


def compressed_like(content: bytes, text: bytes) -> bytes:
    """Return text gzipped if the content of another metadata file is."""
    return gzip.compress(text, mtime=0) if content[:2] == _GZIP else text


def write_next(pointer: str, metadata: Mapping[str, Any], files: Files) -> str:
    """Write a metadata file beside the one that it follows; returns its URI."""
    folder, _, name = pointer.rpartition("/")
    uri = new_uri(folder, version_of(name) + 1)
    files.write(uri, json.dumps(metadata).encode())
    return uri


def metadata_log(raw: Mapping[str, Any], pointer: str, most: int = _LISTED_METADATA) -> list[dict[str, Any]]:
    """Return the metadata log of the file that follows `pointer`, from which `raw` was read."""
    replaced = {"metadata-file": pointer, "timestamp-ms": raw["last-updated-ms"]}
    return [*raw.get("metadata-log", []), replaced][-most:]


def new_uri(folder: str, version: int, origin: str = "") -> str:
    """Return a URI for a metadata file of a version; the same one for each call with the same origin."""
    import uuid

    id = uuid.uuid5(uuid.NAMESPACE_URL, origin) if origin else uuid.uuid4()
    return f"{folder}/{version:05}-{id}.metadata.json"


def version_of(name: str) -> int:
    """Return the version in the name of a metadata file, such as `00003-….metadata.json` or `v3.metadata.json`; -1 if none."""
    import re

    match = re.match(r"v?(\d+)[-.]", name)
    return int(match[1]) if match else -1
