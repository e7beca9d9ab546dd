"""What `lake dagster` gives to the process that takes its place."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import click
import pytest

from lakehouse.cli import demo
from lakehouse.cli.context import Context
from lakehouse.cli.loaded import SOCKET
from lakehouse.orchestrate import running_dagster
from lakehouse.process.sockets import listen_unix
from lakehouse.storage.local import LocalHome


@pytest.mark.parametrize("profile", ["embedded", "sql"])
def test_dagster_gets_the_home_and_the_profile_of_the_command(
    call: Any, home: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    given: dict[str, str] = {}
    monkeypatch.setattr(os, "execve", lambda program, arguments, environment: given.update(environment))
    monkeypatch.delenv("LAKE_HOME")
    done = call("--profile", profile, "--home", str(home), "dagster", "--port", "3999")
    assert done.code == 0, done.err
    assert "http://127.0.0.1:3999" in done.err
    assert (given["LAKE_HOME"], given["LAKE_PROFILE"]) == (str(home), profile)
    assert given["DAGSTER_HOME"] == str(home / "dagster")
    assert running_dagster(home) == "", "noted, but nothing listens there"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert call("--profile", profile, "--home", str(home), "dagster", "--port", str(port)).code == 0
        assert running_dagster(home) == f"http://127.0.0.1:{port}"
    instance = (home / "dagster" / "dagster.yaml").read_text()
    assert instance == "telemetry:\n  enabled: false\nnux:\n  enabled: false\n", "nothing is sent or asked for"


def test_a_command_of_the_demo_is_not_handed_to_a_loaded_dbt(tmp_path: Path) -> None:
    home = LocalHome(tmp_path / "lake").ready()
    context = Context(flags={"home": str(home.folder)}, may_hand_over=True)
    with listen_unix(home.run / SOCKET) as loaded:
        with pytest.raises(click.UsageError, match="--no-publish needs a branch"):
            demo._run(context, ["dbt", "--engine", "trino", "--no-publish", "build"])
        loaded.setblocking(False)
        with pytest.raises(BlockingIOError):
            loaded.accept()
