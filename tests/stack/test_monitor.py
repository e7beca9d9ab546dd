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
from lakehouse.process.pids import start_time
from lakehouse.stack import monitor
from lakehouse.stack.model import ProcessSpec, Service, StackContext, stack_context
from lakehouse.stack.monitor import ServiceMonitor

#: Creates a file when it is ready, and runs until it is ended.
SERVER = "import pathlib, time; pathlib.Path('up').touch(); time.sleep(600)"


@pytest.fixture
def context(home: Path) -> StackContext:
    return stack_context(load_settings({"home": home}, environ={}))


@pytest.fixture
def monitor_service(context: StackContext) -> Iterator[Callable[..., ServiceMonitor]]:
    """Starts to monitor a service that runs a few lines of Python."""
    begun: list[ServiceMonitor] = []

    def begin(
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

    yield begin
    for service_monitor in reversed(begun):
        service_monitor.stop()


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never was so"
        time.sleep(0.02)


def test_a_server_runs_once_it_answers_and_is_gone_when_it_is_stopped(
    monitor_service: Callable[..., ServiceMonitor],
) -> None:
    monitored = monitor_service()
    until(lambda: monitored.state == "running")
    status = monitored.status()
    assert start_time(status["pid"]) == status["start_time"] != ""
    monitored.stop()
    assert start_time(status["pid"]) == ""
    assert (monitored.state, monitored.status()["pid"]) == ("stopped", None)


def test_a_server_that_dies_is_started_again(monitor_service: Callable[..., ServiceMonitor]) -> None:
    monitored = monitor_service()
    until(lambda: monitored.state == "running")
    first = monitored.status()["pid"]
    os.kill(first, signal.SIGKILL)
    until(lambda: monitored.state == "running" and monitored.status()["pid"] not in (None, first))
    assert monitored.restarts == 1


def test_a_server_that_dies_again_and_again_is_given_up(
    monitor_service: Callable[..., ServiceMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_RESTART_DELAYS", (0.01, 0.01))
    monitored = monitor_service(
        "import pathlib, time; pathlib.Path('up').touch(); time.sleep(1.5); print('no more of this')"
    )
    until(lambda: monitored.state == "failed")
    assert monitored.restarts == 2
    assert "it ended 3 times: no more of this" in monitored.reason


def test_a_server_that_never_runs_is_not_tried_again(monitor_service: Callable[..., ServiceMonitor]) -> None:
    monitored = monitor_service("raise SystemExit('the licence is missing here')")
    until(lambda: monitored.state == "failed")
    assert monitored.restarts == 0
    assert monitored.reason == "it ended with code 1: the licence is missing here"


def test_a_server_that_never_answers_is_ended(monitor_service: Callable[..., ServiceMonitor]) -> None:
    monitored = monitor_service("import time; time.sleep(600)", start_timeout_s=0.5)
    until(lambda: monitored.state == "failed")
    assert "did not answer within" in monitored.reason
    assert monitored.status()["pid"] is None


def test_a_service_waits_for_what_it_needs(monitor_service: Callable[..., ServiceMonitor]) -> None:
    slow = "import pathlib, time; time.sleep(0.7); pathlib.Path('up').touch(); time.sleep(600)"
    first = monitor_service(slow, name="first")
    second = monitor_service(name="second", needs=(first,))
    until(lambda: second.state == "running")
    assert first.state == "running"


def test_a_service_whose_need_fails_says_which(monitor_service: Callable[..., ServiceMonitor]) -> None:
    first = monitor_service("raise SystemExit('no luck at all')", name="first")
    second = monitor_service(name="second", needs=(first,))
    until(lambda: second.state == "failed")
    assert "it needs first, which does not run" in second.reason


def test_what_has_to_be_prepared_may_fail_with_a_reason(monitor_service: Callable[..., ServiceMonitor]) -> None:
    def prepare(context: StackContext) -> None:
        raise ServiceFailedError("the schema is of tomorrow")

    monitored = monitor_service(prepare=prepare)
    until(lambda: monitored.state == "failed")
    assert "the schema is of tomorrow" in monitored.reason


def test_a_server_that_ignores_its_signal_is_ended_by_force(
    monitor_service: Callable[..., ServiceMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehouse.process.pids.STOP_TIMEOUT_S", 0.3)
    monitored = monitor_service("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER)
    until(lambda: monitored.state == "running")
    pid = monitored.status()["pid"]
    monitored.stop()
    assert start_time(pid) == ""


def test_our_own_settings_do_not_reach_a_server(
    monitor_service: Callable[..., ServiceMonitor], context: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_S3__SECRET_KEY", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monitored = monitor_service("import os; print(sorted(os.environ.items()), flush=True)\n" + SERVER)
    until(lambda: monitored.state == "running")
    assert "PATH" in context.log("tiny").read_text()
    assert "hunter2" not in context.log("tiny").read_text()
