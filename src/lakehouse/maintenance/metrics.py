"""Figures of the tables' health for monitoring, with Prometheus names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.maintenance.health import TableHealth


@dataclass(frozen=True)
class Figure:
    """One sample of a gauge."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    value: float


_GAUGES = {
    "score": "Health of a table, from 0 to 100.",
    "files": "Data files of a table.",
    "bytes": "Bytes of the current data and delete files of a table.",
    "rows": "Rows of a table.",
    "delete_files": "Delete files of a table.",
    "snapshots": "Snapshots of a table.",
    "metadata_bytes": "Size of a table's metadata file.",
    "unnamed_files": "Files in a table's folder that nothing names.",
    "unnamed_bytes": "Bytes of these files.",
}


def figures(tables: Sequence[TableHealth]) -> Iterator[Figure]:
    """Yield the figures of all tables, those of one name together."""
    for name, text in _GAUGES.items():
        for health in tables:
            labels = (("table", health.table), ("format", health.format))
            yield Figure(f"lake_table_{name}", text, labels, float(getattr(health, name)))


def exposition(tables: Sequence[TableHealth]) -> str:
    """Return the figures in Prometheus's text format."""
    lines: list[str] = []
    seen: set[str] = set()
    for figure in figures(tables):
        if figure.name not in seen:
            seen.add(figure.name)
            lines += [f"# HELP {figure.name} {figure.help}", f"# TYPE {figure.name} gauge"]
        labels = ",".join(f'{name}="{value}"' for name, value in figure.labels)  # table names need no escaping
        lines.append(f"{figure.name}{{{labels}}} {figure.value:g}")
    return "\n".join(lines) + "\n" if lines else ""
