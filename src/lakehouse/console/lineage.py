"""Lineage: the tables of pipelines as a graph around one of them, laid out in columns from source to gold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
#: The state of a run that had nothing to build: it says nothing of its tables.
NOTHING = "nothing"
#: Deeper or larger graphs cannot be read; the page says what it leaves out.
DEEPEST, MOST_NODES = 6, 80
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 206, 42, 246, 58, 12


def graph(pipelines: Sequence[Facts], states: Mapping[str, Facts], focus: str, depth: int) -> dict[str, Any]:
    """The nodes and edges within some steps of a table, or of all pipelines, with their places in a picture."""
    inputs = {
        str(table["name"]): [str(name) for name in table["made_from"]]
        for pipeline in pipelines
        for table in pipeline["tables"]
    }
    owners = {str(table["name"]): str(pipeline["name"]) for pipeline in pipelines for table in pipeline["tables"]}
    names = _around(inputs, focus, depth) if focus else [*dict.fromkeys([*inputs, *sum(inputs.values(), [])])]
    left_out = max(len(names) - MOST_NODES, 0)
    columns = _columns(names[:MOST_NODES], inputs)
    nodes = {
        name: {
            "name": name,
            "pipeline": owners.get(name, ""),
            "state": states.get(name, {}).get("state", ""),
            "at": states.get(name, {}).get("at", ""),
            "behind": _behind(name, inputs.get(name, ()), states),
            "is_table": name in inputs,
            "is_focus": name == focus,
            "x": _MARGIN + place * _ACROSS,
            "y": _MARGIN + row * _DOWN,
        }
        for place, column in enumerate(columns)
        for row, name in enumerate(column)
    }
    edges = [
        {"from": source, "to": name, "path": _path(nodes[source], nodes[name])}
        for name in nodes
        for source in inputs.get(name, ())
        if source in nodes
    ]
    rows = max((len(column) for column in columns), default=0)
    size = {
        "width": max(len(columns) * _ACROSS - _ACROSS + _WIDTH, 0) + 2 * _MARGIN,
        "height": max(rows * _DOWN - _DOWN + _HEIGHT, 0) + 2 * _MARGIN,
        "node_width": _WIDTH,
        "node_height": _HEIGHT,
    }
    return {"nodes": list(nodes.values()), "edges": edges, "size": size, "left_out": left_out, "names": sorted(owners)}


def last_states(runs: Sequence[Facts]) -> dict[str, dict[str, str]]:
    """The state of the newest run that built each table, when it ended, and when the newest one looked for something to build."""
    states: dict[str, dict[str, str]] = {}
    for run in runs:
        for table in run["tables"]:
            facts = states.setdefault(table["table"], {"state": "", "at": "", "checked_at": run["ended_at"]})
            if not facts["state"] and run["state"] != NOTHING:
                facts.update(state=run["state"], at=run["ended_at"])
    return states


def _behind(name: str, sources: Sequence[str], states: Mapping[str, Facts]) -> list[str]:
    """The inputs of a table that were published after it was last built."""
    checked = states.get(name, {}).get("checked_at", "")
    return [
        source
        for source in sources
        if checked and states.get(source, {}).get("state") == "published" and states[source]["at"] > checked
    ]


def _around(inputs: Mapping[str, Sequence[str]], focus: str, depth: int) -> list[str]:
    """The names within some steps upstream and downstream of one."""
    outputs: dict[str, list[str]] = {}
    for name, sources in inputs.items():
        for source in sources:
            outputs.setdefault(source, []).append(name)
    reached = [focus]
    for neighbours in (inputs, outputs):
        edge: Collection[str] = [focus]
        for _ in range(min(depth, DEEPEST)):
            edge = [name for start in edge for name in neighbours.get(start, ()) if name not in reached]
            reached += dict.fromkeys(edge)
    return reached


def _columns(names: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names by their longest distance from a source."""
    places: dict[str, int] = {}

    def place(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in places:
            sources = [source for source in inputs.get(name, ()) if source in names and source not in above]
            places[name] = 1 + max((place(source, (*above, name)) for source in sources), default=-1)
        return places[name]

    columns: list[list[str]] = []
    for name in names:
        while len(columns) <= place(name):
            columns.append([])
        columns[place(name)].append(name)
    rows: dict[str, float] = {}
    for column in columns:  # each near the middle of its sources, so that few lines cross
        column.sort(key=lambda name: _middle([rows[source] for source in inputs.get(name, ()) if source in rows]))
        rows.update((name, float(row)) for row, name in enumerate(column))
    return columns


def _middle(rows: Sequence[float]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _path(source: Facts, target: Facts) -> str:
    """A curve from the right side of one node to the left side of another."""
    x1, y1, x2, y2 = source["x"] + _WIDTH, source["y"] + _HEIGHT // 2, target["x"], target["y"] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
