"""Checks that the locations which clients choose are below the warehouse."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from lakehouse.core.files import local_path
from lakehouse.rest_catalog.errors import RestError

_S3 = re.compile(r"s3[an]?://")
_FILE = re.compile(r"file:/*|/")
#: Characters that engines, URIs or storage policies do not take literally, and percent-encoded dots and slashes.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\*?#$]|%2[ef]|%5c", re.IGNORECASE)
#: The same for files, whose names may hold encoded values of partitions.
_UNSAFE_IN_FILES = re.compile(r"[\x00-\x1f\x7f\\*?#]")
_PATH_PROPERTY = re.compile(r"write\.(?:[\w-]+\.)*path")


class Warehouse:
    """The location below which all files of tables and views are."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        self._prefix = normalize(self.location) + "/"

    def check(self, location: str, what: str = "location") -> None:
        """Refuse a location that is not below the warehouse. `s3:`, `s3a:` and `s3n:` are the same scheme."""
        path = normalize(location.rstrip("/"))
        below = path.removeprefix(self._prefix)
        if below == path or _UNSAFE.search(below) or _has_odd_segment(below):
            raise RestError(f"The {what} is not below the warehouse.", f"Choose one below {self.location}/.")

    def has_link(self, location: str) -> bool:
        """Whether a local path leads through a symbolic link below the warehouse: perhaps to the files of another table."""
        if not self._prefix.startswith("file:"):
            return False
        path, root = (os.path.abspath(local_path(name)) for name in (location, self.location))
        return os.path.realpath(path) != os.path.join(os.path.realpath(root), os.path.relpath(path, root))

    def check_metadata_file(self, location: str) -> None:
        """Refuse a metadata file outside the warehouse. The response is the same whether the file exists or not."""
        self.check(location, "metadata-location")

    def check_paths(self, properties: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Refuse `write.*.path` properties that are not below the warehouse, unless the table has them already."""
        for name, value in properties.items():
            if is_path_property(name) and before.get(name) != value:
                self.check(value, f"property {name}")


def is_path_property(name: str) -> bool:
    """Whether a property of a table names a folder for its files."""
    return _PATH_PROPERTY.fullmatch(name.lower()) is not None


def table_locations(location: str, properties: Mapping[str, str]) -> list[str]:
    """Return all locations of a table: its own and those of its `write.*.path` properties."""
    paths = {value for name, value in properties.items() if is_path_property(name)}
    return [location, *sorted(paths - {location})]


def normalize(location: str) -> str:
    """Return a location with one spelling of its scheme; one of another scheme as it is."""
    if prefix := _S3.match(location):
        return "s3://" + location[prefix.end() :]
    if prefix := _FILE.match(location):
        return "file:///" + location[prefix.end() :]
    return location


def is_below(path: str, folder: str) -> bool:
    """Whether a normalized path is inside a normalized folder, and not the folder itself."""
    return path.startswith(folder.rstrip("/") + "/") and not _has_odd_segment(path.partition("://")[2].lstrip("/"))


def has_unsafe_part(path: str) -> bool:
    """Whether the path of a file holds characters that engines do not take literally."""
    return _UNSAFE_IN_FILES.search(path) is not None


def _has_odd_segment(path: str) -> bool:
    return any(segment in ("", ".", "..") for segment in path.split("/"))
