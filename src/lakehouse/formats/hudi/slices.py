"""The file slices of a Hudi table, from its timeline alone: which files each version of a file group has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakehouse.core.tables import FileSlice
from lakehouse.formats.hudi.timeline import Instant

_LOG = ".log."


def file_slices(timeline: Sequence[Instant]) -> list[FileSlice]:
    """Return every file slice that these instants wrote, in their order; cleaned ones too."""
    groups: dict[str, list[FileSlice]] = {}
    for instant in timeline:
        for group in instant.replaced_files():
            groups[group] = [
                replace(file_slice, replaced_at=file_slice.replaced_at or instant.id)
                for file_slice in groups.get(group, [])
            ]
        for partition, stats in (instant.metadata.get("partitionToWriteStats") or {}).items():
            for stat in stats:
                _add(groups.setdefault(stat["fileId"], []), partition, stat, instant.id)
    for slices in groups.values():
        if slices and not slices[-1].replaced_at:
            slices[-1] = replace(slices[-1], is_latest=True)
    return [file_slice for slices in groups.values() for file_slice in slices]


def _add(slices: list[FileSlice], partition: str, stat: Mapping[str, Any], instant: str) -> None:
    path, size, is_log = stat["path"], stat["fileSizeInBytes"], _LOG in stat["path"].rpartition("/")[2]
    if is_log and slices:
        last = slices[-1]
        slices[-1] = replace(last, files=(*last.files, path), bytes=last.bytes + size, log_files=last.log_files + 1)
    elif path:  # an instant that deleted every row of a group wrote no file
        slices.append(FileSlice(stat["fileId"], partition, instant, (path,), size, int(is_log)))


def instant_of(file: str) -> str:
    """Return the instant that wrote a file of a Hudi table, which its name states."""
    name = file.rpartition("/")[2]
    part = name.split("_")[1] if name.startswith(".") and "_" in name else name.rpartition("_")[2]
    return part.partition(".")[0]
