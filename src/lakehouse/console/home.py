"""The home page: tables by layer, what runs, and what needs attention first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakehouse.console.lineage import NOTHING

Facts = Mapping[str, Any]
#: The layers in the order of the flow; other namespaces follow by name.
_LAYERS = ("bronze", "silver", "gold")
#: A table below the second score is worth a look.
_GOOD, _POOR = 90, 70
_BAD_RUNS = ("failed", "blocked", "killed")
_NEWEST_JOBS = 10


def layers(tables: Sequence[Facts], health: Mapping[str, Facts], runs: Sequence[Facts]) -> list[dict[str, Any]]:
    """The tables by namespace, each with its health and last run."""
    by_namespace: dict[str, list[dict[str, Any]]] = {}
    written_by = _last_runs(runs)
    for table in tables:
        name = str(table["name"])
        row = {**_row(table), "health": _score(health.get(name)), "run": written_by.get(name)}
        by_namespace.setdefault(name.partition(".")[0], []).append(row)
    return [
        {
            "name": namespace,
            "tables": by_namespace[namespace],
            "rows": sum(row["rows"] or 0 for row in by_namespace[namespace]),
            "bytes": sum(row["bytes"] or 0 for row in by_namespace[namespace]),
        }
        for namespace in sorted(by_namespace, key=_flow_order)
    ]


def attention(
    tables: Sequence[Facts], health: Mapping[str, Facts], runs: Sequence[Facts], jobs: Sequence[Facts]
) -> list[dict[str, str]]:
    """What a person should look at, the most urgent first."""
    items = [
        _item("broken", f"{table['name']} cannot be read", table["problem"], f"/ui/t/{table['name']}")
        for table in tables
        if table["problem"]
    ]
    items += _bad_runs(runs)
    for job in jobs[:_NEWEST_JOBS]:
        if job["state"] == "failed" and job["kind"] not in ("run", "resume"):
            message = (job["error"] or {}).get("message", "")
            items.append(_item("failed", f"The {job['kind']} of {job['created_at'][:16]} failed", message, ""))
    for table in health.values():
        if table["score"] < _POOR and not table["problem"]:
            text = table["reasons"][0]["text"] if table["reasons"] else ""
            items.append(_item("health", f"{table['table']} has a score of {table['score']}", text, "/ui/health"))
    return items


def _bad_runs(runs: Sequence[Facts]) -> list[dict[str, str]]:
    """The pipelines whose last run did not publish what it built."""
    newest: dict[str, Facts] = {}
    for run in runs:
        newest.setdefault(str(run["pipeline"]), run)
    items = []
    for run in newest.values():
        if run["state"] in _BAD_RUNS:
            text = run["error"].get("message") or "A rule or check failed; main was not changed."
            title = f"The last run of {run['pipeline']} is {run['state']}"
            items.append(_item(run["state"], title, text, f"/ui/runs/{run['id']}"))
        elif run["state"] == "kept":
            text = "It is finished and waits for a review."
            items.append(_item("kept", f"A run of {run['pipeline']} is not published", text, f"/ui/b/{run['branch']}"))
    return items


def running(runs: Sequence[Facts], jobs: Sequence[Facts], queries: Sequence[Facts]) -> list[dict[str, Any]]:
    """The jobs, runs and statements that have not ended, each with the route that cancels it."""
    active = [job for job in jobs if job["state"] in ("queued", "running")]
    of_jobs = {str(job["request"].get("id", "")) for job in active}
    work: list[dict[str, Any]] = [
        {
            "kind": job["kind"],
            "id": job["id"],
            "title": job["request"].get("pipeline") or job["request"].get("options", {}).get("into") or "",
            "state": job["state"],
            "progress": job["progress"],
            "since": job["started_at"] or job["created_at"],
            "cancel": f"/jobs/{job['id']}/cancel",
            "method": "POST",
        }
        for job in active
    ]
    work += [
        {
            "kind": "run",
            "id": run["id"],
            "title": run["pipeline"],
            "state": "running",
            "progress": "started elsewhere",
            "since": run["started_at"],
            "cancel": "",
            "method": "",
        }
        for run in runs
        if run["state"] == "running" and run["id"] not in of_jobs
    ]
    work += [
        {
            "kind": "query",
            "id": statement["id"],
            "title": statement["statement"],
            "state": statement["state"],
            "progress": f"{statement['seconds']:.0f} s" + (f", {done} %" if (done := statement["progress"]) else ""),
            "since": "",
            "cancel": f"/queries/{statement['id']}",
            "method": "DELETE",
        }
        for statement in queries
    ]
    return work


def health_word(health: Facts) -> str:
    """A score in a word, because a colour alone says nothing to some."""
    if health["problem"]:
        return "broken"
    return "good" if health["score"] >= _GOOD else "fair" if health["score"] >= _POOR else "poor"


def _row(table: Facts) -> dict[str, Any]:
    current = table["current"] or {}
    return {
        "name": table["name"],
        "format": table["format"],
        "rows": current.get("rows_total"),
        "bytes": current.get("bytes_total"),
        "files": current.get("files_total"),
        "changed_at": current.get("at", ""),
        "problem": table["problem"],
    }


def _score(health: Facts | None) -> dict[str, Any] | None:
    return None if health is None else {"score": health["score"], "word": health_word(health)}


def _last_runs(runs: Sequence[Facts]) -> dict[str, dict[str, Any]]:
    """The newest run that built each table, or found that it needs nothing."""
    newest: dict[str, dict[str, Any]] = {}
    for run in sorted(runs, key=lambda run: run["state"] == NOTHING):
        for table in run["tables"]:
            newest.setdefault(table["table"], {"id": run["id"], "pipeline": run["pipeline"], "state": run["state"]})
    return newest


def _flow_order(namespace: str) -> tuple[int, str]:
    return (_LAYERS.index(namespace) if namespace in _LAYERS else len(_LAYERS), namespace)


def _item(kind: str, title: str, text: str, link: str) -> dict[str, str]:
    return {"kind": kind, "title": title, "text": text, "link": link}
