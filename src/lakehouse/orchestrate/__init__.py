"""Dagster and dbt: pipelines as assets with partitions, checks and schedules; dbt runs as transactions."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

_ADDRESS = "address"


def dagster_home(folder: Path) -> Path:
    """Where Dagster keeps the runs of a lake, by the lake's folder."""
    home = folder / "dagster"
    home.mkdir(exist_ok=True)
    return home


def note_dagster(folder: Path, url: str) -> None:
    """Note the address of the Dagster that starts on a lake."""
    (dagster_home(folder) / _ADDRESS).write_text(url)


def running_dagster(folder: Path) -> str:
    """The address of the Dagster of a lake if it answers, else nothing."""
    from lakehouse.process.sockets import accepts_connections

    file = folder / "dagster" / _ADDRESS
    url = file.read_text() if file.is_file() else ""
    return url if url and accepts_connections(urlsplit(url).hostname or "", urlsplit(url).port or 0) else ""
