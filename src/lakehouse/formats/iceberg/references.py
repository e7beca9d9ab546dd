"""Reads what an Iceberg metadata file refers to: manifest lists, manifests, data files, delete files, statistics.

All these files are immutable, so each is read once per reader. A manifest list or manifest is decoded only as far as it is
needed to know the files: paths, sizes, kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, TableError
from lakehouse.core.files import Files, file_uri, local_path
from lakehouse.core.metadata_file import load_metadata

#: Field ids of a manifest list and of a manifest (Iceberg's specification).
_MANIFEST_PATH, _MANIFEST_LENGTH = 500, 501
_STATUS, _CONTENT, _FILE_PATH, _FILE_SIZE = 0, (2, 134), (2, 100), (2, 104)
#: The status of an entry for a file that the snapshot removed.
_DELETED = 2
_CONTENTS = ("data", "position-deletes", "equality-deletes")


def normalized(uri: str) -> str:
    """Return one spelling of a URI, by which files are compared: `file:///a`, `s3://b/k`."""
    if uri.startswith(("s3a://", "s3n://")):
        return "s3://" + uri.partition("://")[2]
    return uri if uri.startswith("s3://") else file_uri(local_path(uri))


@dataclass(frozen=True)
class NeededFile:
    """A file that a table is made of."""

    uri: str
    """As the metadata spells it."""
    kind: str
    """metadata, statistics, manifest-list, manifest, data, position-deletes or equality-deletes."""
    size: int = -1
    """Bytes as the metadata states them; -1 where it does not."""


@dataclass(frozen=True)
class MetadataFiles:
    """What one metadata file of a table or view states about its files."""

    uri: str
    uuid: str
    location: str
    current: str
    """The id of the current snapshot; empty if there is none."""
    manifest_lists: Mapping[str, str] = field(default_factory=dict)
    """The URI of each snapshot's manifest list by the id of the snapshot."""
    statistics: tuple[NeededFile, ...] = ()
    previous: tuple[str, ...] = ()
    """The earlier metadata files that it lists. No reader needs them."""
    is_view: bool = False


@dataclass
class ReferenceReader:
    """Reads metadata through `files`, and each file once."""

    files: Files
    _metadata: dict[str, MetadataFiles] = field(default_factory=dict)
    _lists: dict[str, tuple[NeededFile, ...]] = field(default_factory=dict)
    _manifests: dict[str, tuple[NeededFile, ...]] = field(default_factory=dict)

    def metadata(self, uri: str) -> MetadataFiles:
        """Return what a metadata file states."""
        if uri not in self._metadata:
            self._metadata[uri] = _metadata_files(uri, load_metadata(uri, self.files))
        return self._metadata[uri]

    def manifests(self, manifest_list: str) -> tuple[NeededFile, ...]:
        """Return the manifests of a snapshot."""
        if manifest_list not in self._lists:
            records = _records(manifest_list, self.files, _MANIFEST_PATH, _MANIFEST_LENGTH)
            self._lists[manifest_list] = tuple(NeededFile(path, "manifest", size) for path, size in records)
        return self._lists[manifest_list]

    def contents(self, manifest: str) -> tuple[NeededFile, ...]:
        """Return the live data and delete files of a manifest."""
        if manifest not in self._manifests:
            records = _records(manifest, self.files, _STATUS, _CONTENT, _FILE_PATH, _FILE_SIZE)
            self._manifests[manifest] = tuple(
                NeededFile(path, _CONTENTS[content or 0], size)
                for status, content, path, size in records
                if status != _DELETED
            )
        return self._manifests[manifest]

    def table(self, pointer: str, only: frozenset[str] | None = None) -> Iterator[NeededFile]:
        """Yield every file that a metadata file needs: of all its snapshots, or of some. A file may come twice."""
        metadata = self.metadata(pointer)
        yield NeededFile(pointer, "metadata")
        yield from metadata.statistics
        seen: set[str] = set()
        for snapshot, manifest_list in metadata.manifest_lists.items():
            if only is not None and snapshot not in only:
                continue
            yield NeededFile(manifest_list, "manifest-list")
            for manifest in self.manifests(manifest_list):
                if manifest.uri not in seen:
                    seen.add(manifest.uri)
                    yield manifest
                    yield from self.contents(manifest.uri)


def _metadata_files(uri: str, raw: Mapping[str, Any]) -> MetadataFiles:
    try:
        if "view-uuid" in raw:
            return MetadataFiles(uri, raw["view-uuid"], raw["location"], "", is_view=True)
        current = raw.get("current-snapshot-id")
        statistics = [*raw.get("statistics", ()), *raw.get("partition-statistics", ())]
        return MetadataFiles(
            uri=uri,
            uuid=str(raw.get("table-uuid", "")),
            location=str(raw["location"]),
            current="" if current in (None, -1) else str(current),
            manifest_lists={
                str(snapshot["snapshot-id"]): snapshot["manifest-list"] for snapshot in raw.get("snapshots", ())
            },
            statistics=tuple(
                NeededFile(statistic["statistics-path"], "statistics", statistic.get("file-size-in-bytes", -1))
                for statistic in statistics
            ),
            previous=tuple(entry["metadata-file"] for entry in raw.get("metadata-log", ())),
        )
    except (KeyError, TypeError, AttributeError) as exc:
        # A snapshot of format version 1 may list its manifests itself instead of naming a manifest list.
        raise TableError(f"The metadata file {uri} lacks {exc}.", "lake verify") from exc


def _records(uri: str, files: Files, *fields: int | tuple[int, int]) -> list[tuple[Any, ...]]:
    """Return some fields of an Avro file's records, by the ids that Iceberg gives them."""
    from lakehouse.pyiceberg_internals import read_avro

    data = files.read(uri)
    try:
        return read_avro(data, *fields)
    except LakeError:
        raise
    except Exception as exc:  # noqa: BLE001 - the decoder raises anything for damaged bytes
        raise TableError(f"The file {uri} is damaged: {exc!r}.", "lake verify") from exc
