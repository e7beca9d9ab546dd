"""Lineage: a graph around a table, in columns from source to gold."""

from __future__ import annotations

from typing import Any

from lakehouse.console.lineage import MOST_NODES, graph, last_states


def pipeline(**tables: list[str]) -> dict[str, Any]:
    return {"name": "p", "tables": [{"name": name, "made_from": sources} for name, sources in tables.items()]}


CHAIN = pipeline(b=["a"], c=["b"], d=["c"], e=["b", "d"])


def names(drawn: dict[str, Any]) -> set[str]:
    return {node["name"] for node in drawn["nodes"]}


def test_depth_says_how_far_the_graph_goes_in_both_directions() -> None:
    assert names(graph([CHAIN], {}, "c", 1)) == {"b", "c", "d"}
    assert names(graph([CHAIN], {}, "c", 2)) == {"a", "b", "c", "d", "e"}
    assert names(graph([CHAIN], {}, "", 1)) == {"a", "b", "c", "d", "e"}


def test_a_table_stands_right_of_everything_that_it_is_made_from() -> None:
    drawn = graph([CHAIN], {"b": {"state": "failed", "at": ""}}, "", 1)
    across = {node["name"]: node["x"] for node in drawn["nodes"]}
    assert across["a"] < across["b"] < across["c"] < across["d"] < across["e"]
    assert {(edge["from"], edge["to"]) for edge in drawn["edges"]} == {
        ("a", "b"), ("b", "c"), ("c", "d"), ("b", "e"), ("d", "e"),
    }  # fmt: skip
    assert [node["state"] for node in drawn["nodes"] if node["name"] == "b"] == ["failed"]


def test_a_table_is_behind_if_an_input_was_published_after_it() -> None:
    states = {
        "b": {"state": "published", "at": "2026-01-02", "checked_at": "2026-01-02"},
        "c": {"state": "published", "at": "2026-01-01", "checked_at": "2026-01-01"},
        "d": {"state": "published", "at": "2026-01-01", "checked_at": "2026-01-02"},
        "e": {"state": "failed", "at": "2026-01-03", "checked_at": "2026-01-03"},
    }
    drawn = graph([CHAIN], states, "", 1)
    assert {node["name"]: node["behind"] for node in drawn["nodes"] if node["behind"]} == {"c": ["b"]}


def test_a_table_that_reads_itself_and_a_large_graph_are_drawn() -> None:
    assert names(graph([pipeline(a=["a", "b"])], {}, "a", 2)) == {"a", "b"}
    large = graph([pipeline(**{f"t{number}": ["a"] for number in range(200)})], {}, "", 1)
    assert (len(large["nodes"]), large["left_out"]) == (MOST_NODES, 201 - MOST_NODES)


def test_the_newest_run_that_built_a_table_decides_its_state() -> None:
    runs = [
        {"state": "nothing", "ended_at": "3", "tables": [{"table": "a"}]},
        {"state": "failed", "ended_at": "2", "tables": [{"table": "a"}]},
        {"state": "published", "ended_at": "1", "tables": [{"table": "a"}, {"table": "b"}]},
    ]
    assert last_states(runs) == {
        "a": {"state": "failed", "at": "2", "checked_at": "3"},
        "b": {"state": "published", "at": "1", "checked_at": "1"},
    }
