"""Checks that the locations which clients choose are below the warehouse."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakehouse.rest_catalog.errors import RestError

_S3 = re.compile(r"s3[an]?://")
_FILE = re.compile(r"file:/*|/")
#: Characters that engines, URIs or storage policies do not take literally, and percent-encoded dots and slashes.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\*?#$]|%2[ef]|%5c", re.IGNORECASE)
_PATH_PROPERTY = re.compile(r"write\.(?:[\w-]+\.)*path")


class Warehouse:
    """The location below which all files of tables and views are."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        self._prefix = _normalize(self.location) + "/"

    def check(self, location: str, what: str = "location") -> None:
        """Refuse a location that is not below the warehouse. `s3:`, `s3a:` and `s3n:` are the same scheme."""
        path = _normalize(location.rstrip("/"))
        below = path.removeprefix(self._prefix)
        segments = below.split("/")
        if below == path or _UNSAFE.search(below) or any(segment in ("", ".", "..") for segment in segments):
            raise RestError(f"The {what} is not below the warehouse.", f"Choose one below {self.location}/.")

    def check_metadata_file(self, location: str) -> None:
        """Refuse a metadata file outside the warehouse. The response is the same whether the file exists or not."""
        self.check(location, "metadata-location")

    def check_paths(self, properties: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Refuse `write.*.path` properties that are not below the warehouse, unless the table has them already."""
        for name, value in properties.items():
            if _PATH_PROPERTY.fullmatch(name.lower()) and before.get(name) != value:
                self.check(value, f"property {name}")


def table_locations(location: str, properties: Mapping[str, str]) -> list[str]:
    """Return all locations of a table: its own and those of its `write.*.path` properties."""
    paths = {value for name, value in properties.items() if _PATH_PROPERTY.fullmatch(name.lower())}
    return [location, *sorted(paths - {location})]


def _normalize(location: str) -> str:
    """Return a location with one spelling of its scheme; one of another scheme as it is."""
    if prefix := _S3.match(location):
        return "s3://" + location[prefix.end() :]
    if prefix := _FILE.match(location):
        return "file:///" + location[prefix.end() :]
    return location
