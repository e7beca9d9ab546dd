"""Keeping one service alive, with servers of a few lines: real processes, no Java."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.load import load_settings
from lakehouse.core.errors import ServiceFailedError
from lakehouse.stack import monitor
from lakehouse.stack.context import stack_context
from lakehouse.stack.model import ProcessSpec, Service, StackContext
from lakehouse.stack.monitor import ServiceMonitor
from lakehouse.stack.process import start_mark

#: Says that it is there by a file, and ends when it is told to.
SERVER = "import pathlib, time; pathlib.Path('up').touch(); time.sleep(600)"


@pytest.fixture
def context(home: Path) -> StackContext:
    return stack_context(load_settings({"home": home}, environ={}))


@pytest.fixture
def keep(context: StackContext) -> Iterator[Callable[..., ServiceMonitor]]:
    """Begins to keep a service that runs a few lines of Python."""
    begun: list[ServiceMonitor] = []

    def keeping(
        code: str = SERVER, needs: tuple[ServiceMonitor, ...] = (), name: str = "tiny", **more: Any
    ) -> ServiceMonitor:
        def healthy(context: StackContext) -> bool:
            return (context.folder(name) / "up").exists()

        own = {"healthy": healthy, "start_timeout_s": 20.0, **more}
        process = ProcessSpec((sys.executable, "-c", textwrap.dedent(code)))
        service = Service(name, "a test's", "1", "none", 10, process=lambda context: process, **own)
        begun.append(ServiceMonitor(service, context, needs, lambda: None))
        begun[-1].begin()
        return begun[-1]

    yield keeping
    for each in reversed(begun):
        each.stop()


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never was so"
        time.sleep(0.02)


def test_a_server_runs_once_it_answers_and_is_gone_when_it_is_stopped(keep: Callable[..., ServiceMonitor]) -> None:
    kept = keep()
    until(lambda: kept.state == "running")
    told = kept.told()
    assert start_mark(told["pid"]) == told["mark"] != ""
    kept.stop()
    assert start_mark(told["pid"]) == ""
    assert (kept.state, kept.told()["pid"]) == ("stopped", None)


def test_a_server_that_dies_is_started_again(keep: Callable[..., ServiceMonitor]) -> None:
    kept = keep()
    until(lambda: kept.state == "running")
    first = kept.told()["pid"]
    os.kill(first, signal.SIGKILL)
    until(lambda: kept.state == "running" and kept.told()["pid"] not in (None, first))
    assert kept.restarts == 1


def test_a_server_that_dies_again_and_again_is_given_up(
    keep: Callable[..., ServiceMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_PAUSES", (0.01, 0.01))
    kept = keep("import pathlib, time; pathlib.Path('up').touch(); time.sleep(0.5); print('no more of this')")
    until(lambda: kept.state == "failed")
    assert kept.restarts == 2
    assert "it ended 3 times: no more of this" in kept.why


def test_a_server_that_never_runs_is_not_tried_again(keep: Callable[..., ServiceMonitor]) -> None:
    kept = keep("raise SystemExit('the licence is missing here')")
    until(lambda: kept.state == "failed")
    assert kept.restarts == 0
    assert kept.why == "it ended with code 1: the licence is missing here"


def test_a_server_that_never_answers_is_ended(keep: Callable[..., ServiceMonitor]) -> None:
    kept = keep("import time; time.sleep(600)", start_timeout_s=0.5)
    until(lambda: kept.state == "failed")
    assert "did not answer within" in kept.why
    assert kept.told()["pid"] is None


def test_a_service_waits_for_what_it_needs(keep: Callable[..., ServiceMonitor]) -> None:
    slow = "import pathlib, time; time.sleep(0.7); pathlib.Path('up').touch(); time.sleep(600)"
    first = keep(slow, name="first")
    second = keep(name="second", needs=(first,))
    until(lambda: second.state == "running")
    assert first.state == "running"


def test_a_service_whose_need_fails_says_which(keep: Callable[..., ServiceMonitor]) -> None:
    first = keep("raise SystemExit('no luck at all')", name="first")
    second = keep(name="second", needs=(first,))
    until(lambda: second.state == "failed")
    assert "it needs first, which does not run" in second.why


def test_what_has_to_be_prepared_may_fail_with_a_reason(keep: Callable[..., ServiceMonitor]) -> None:
    def prepare(context: StackContext) -> None:
        raise ServiceFailedError("the schema is of tomorrow")

    kept = keep(prepare=prepare)
    until(lambda: kept.state == "failed")
    assert "the schema is of tomorrow" in kept.why


def test_a_server_that_ignores_its_signal_is_ended_by_force(
    keep: Callable[..., ServiceMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehouse.stack.process.end.__defaults__", (0.3,))
    kept = keep("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER)
    until(lambda: kept.state == "running")
    pid = kept.told()["pid"]
    kept.stop()
    assert start_mark(pid) == ""


def test_our_own_settings_do_not_reach_a_server(
    keep: Callable[..., ServiceMonitor], context: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_S3__SECRET_KEY", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    kept = keep("import os; print(sorted(os.environ.items()), flush=True)\n" + SERVER)
    until(lambda: kept.state == "running")
    assert "PATH" in context.log("tiny").read_text()
    assert "hunter2" not in context.log("tiny").read_text()
