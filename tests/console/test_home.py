"""The home page: what needs attention, what runs, and the order of layers."""

from __future__ import annotations

from typing import Any

from lakehouse.console.home import attention, layers, running


def table(name: str, problem: str = "") -> dict[str, Any]:
    return {"name": name, "format": "iceberg", "current": None, "problem": problem}


def run(pipeline: str, state: str, identifier: str = "r1") -> dict[str, Any]:
    written = [{"table": "gold.daily"}]
    return {
        "id": identifier,
        "pipeline": pipeline,
        "state": state,
        "error": {},
        "branch": "run_1",
        "tables": written,
        "started_at": "2026-01-01T00:00:00Z",
    }


def test_layers_come_in_the_order_of_the_flow() -> None:
    shown = layers(
        [table("zoo.a"), table("gold.daily"), table("bronze.b"), table("app.c")], {}, [run("taxi", "published")]
    )
    assert [layer["name"] for layer in shown] == ["bronze", "gold", "app", "zoo"]
    assert shown[1]["tables"][0]["run"]["pipeline"] == "taxi"


def test_the_most_urgent_comes_first_and_an_old_failure_is_forgotten() -> None:
    health = {"a.b": {"table": "a.b", "score": 40, "problem": "", "reasons": [{"text": "many small files"}]}}
    runs = [run("market", "published", "r3"), run("market", "failed", "r2"), run("taxi", "blocked")]
    items = attention([table("x.y", "gone")], health, runs, [])
    assert [item["kind"] for item in items] == ["broken", "blocked", "health"]


def test_a_run_of_a_job_is_listed_once_and_can_be_canceled() -> None:
    job = {
        "id": "j1",
        "kind": "run",
        "state": "running",
        "request": {"id": "r1", "pipeline": "taxi"},
        "progress": "silver",
        "started_at": "",
        "created_at": "2026-01-01T00:00:00Z",
    }
    work = running([run("taxi", "running"), run("market", "running", "r9")], [job], [])
    assert [(item["kind"], item["title"], item["cancel"]) for item in work] == [
        ("run", "taxi", "/jobs/j1/cancel"),
        ("run", "market", ""),
    ]
