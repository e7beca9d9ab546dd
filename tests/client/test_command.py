"""`lake --url`: the commands print of a service what they print of the lake itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import click
import pytest
from tests.conftest import LAKE
from tests.support.servers.service import Served, wait_for
from tests.support.workbook import DAY, workbook

from lakehouse.cli.app import lake as lake_group
from lakehouse.cli.app import run
from lakehouse.client import RemoteLake, connect
from lakehouse.core.errors import NotSupportedError

#: Takes minutes.
SLOW = "select sum(a.id * b.id) as s from range(10000000) a(id), range(100000) b(id)"
COMMANDS = [
    ["tables"],
    ["tables", "--dropped"],
    ["describe", "cli.leads"],
    ["describe", "cli.leads", "-o", "table"],
    ["history", "cli.leads"],
    ["history", "cli.leads", "-o", "table"],
    ["inspect", "cli.leads", "--files"],
    ["inspect", "cli.leads", "--snapshot", "before_bo", "-o", "table"],
    ["inspect", "cli.leads", "--raw", "nothing.avro"],
    ["travel", "cli.leads", "before_bo"],
    ["diff", "cli.leads", "--from", "before_bo"],
    ["diff", "cli.leads", "--from", "before_bo", "-o", "table"],
    ["report", "cli.leads"],
    ["sql", "select *, timestamp '2026-01-31 12:00:00' as at from cli.leads order by id"],
    ["sql", "select * from cli.leads order by id", "-o", "table"],
    ["sql", "select count(*) as n from cli.leads", "--branch", "cli_exp"],
    ["sql", "select nope from cli.leads"],
    ["branch"],
    ["branch", "diff", "cli_exp"],
    ["branch", "diff", "cli_exp", "cli.leads"],
    ["tag", "list"],
    ["log"],
    ["log", "cli.leads", "--limit", "1", "-o", "csv"],
    ["health"],
    ["health", "cli.leads", "--deep"],
    ["health", "cli.lead"],
    ["maintain", "--dry-run"],
    ["keys"],
    ["keys", "list", "-o", "table"],
    ["keys", "revoke", "nope"],
    ["maintain", "cli.leads", "--only", "expire", "-o", "table"],
    ["maintain", "cli.lead"],
    ["verify", "cli.leads", "-o", "csv"],
    ["runs"],
    ["runs", "show"],
    ["runs", "show", "nope"],
    ["pipelines", "-o", "csv"],
    ["describe", "cli.lead"],
    ["branch", "drop", "nowhere"],
    ["run", "nope"],
    ["run", "market", "--from", "2026-01-15", "--to", "2026-01-14"],
    ["ingest", "nope.csv", "--into", "cli.leads"],
    ["ingest", "words.csv", "--into", "cli.words", "--null", "-", "--null", "a,b", "--dry-run", "-o", "table"],
    ["ingest", "book.xlsx", "--into", "cli.book", "--sheet", "Other", "--dry-run", "-o", "table"],
    ["ingest", "words.csv", "--into", "cli.words", "--skip-rows", "1", "--dry-run", "-o", "table"],
    ["ingest", "words.csv", "--into", "cli.words", "--skip-rows", "-1"],
    ["cherry-pick", "9999"],
    ["revert", "9999"],
    ["revert", "9999", "--dry-run"],
]


def create_view(served: Served, namespace: str, name: str) -> None:
    """A view as Spark stores it."""
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": [namespace],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    field = {"id": 1, "name": "one", "type": "int", "required": False}
    schema = {"type": "struct", "schema-id": 0, "fields": [field]}
    body = {"name": name, "schema": schema, "view-version": version}
    answer = served.admin.post(f"/catalog/v1/lake/namespaces/{namespace}/views", body)
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def leads(served: Served) -> None:
    """A table with two snapshots, a tag between them, and a branch."""
    lake = served.service.lake
    lake.ingest_rows([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}], "cli.leads", key=["id"])
    lake.refs.branches.create_tag("before_bo", message="first")
    lake.ingest_rows([{"id": 2, "name": "Bo"}], "cli.leads", key=["id"])
    lake.refs.branches.create("cli_exp", message="try")
    lake.branch("cli_exp").ingest_rows([{"id": 3, "name": "Cy"}], "cli.leads", key=["id"])
    create_view(served, "cli", "names")


def without_seconds(text: str) -> str:
    """What a command said, without how long it took."""
    return re.sub(r"in \d+\.\d s", "in N s", text)


@pytest.mark.usefixtures("leads")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_prints_the_same(
    served: Served,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.csv").write_text('id,n\n1,-\n2,"a,b"\n3,7\n')
    (tmp_path / "book.xlsx").write_bytes(workbook(First=[["a"], ["x"]], Other=[["id", "day"], [1, (DAY,)]]))
    given = arguments if "-o" in arguments else [*arguments, "-o", "json"]
    monkeypatch.setenv("LAKE_HOME", str(served.service.lake.folder))
    here = run(given), capsys.readouterr()
    monkeypatch.delenv("LAKE_HOME")
    monkeypatch.setenv("LAKE_URL", served.url)
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    there = run(given), capsys.readouterr()
    assert there[1].out == here[1].out
    assert without_seconds(there[1].err) == without_seconds(here[1].err)
    assert there[0] == here[0]
    assert here[1].out or here[1].err


@pytest.mark.usefixtures("leads")
def test_views_are_listed_beside_tables(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = served.admin.get("/tables").json()
    assert "cli.names" in listed["views"] and "cli.names" not in [table["name"] for table in listed["tables"]]
    assert served.client(namespaces=("other",)).get("/tables").json()["views"] == []
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    for arguments in (["tables", "-o", "csv"], ["shell", "-c", "tables cli.n*", "-o", "csv"]):
        assert run(["--url", served.url, *arguments]) == 0
        assert "\ncli.names,view,," in capsys.readouterr().out
    with connect(served.url, served.admin.key) as lake, lake.branch("cli_exp") as exp:
        assert ("cli.names" in lake.views(), exp.views()) == (True, [])


@pytest.mark.parametrize(
    "arguments",
    [["serve"], ["up"], ["down"], ["demo"], ["doctor"], ["export", "a.b", "x.csv"], ["dagster"], ["setup"]],
    ids=" ".join,
)
def test_a_command_that_needs_a_lake_of_this_machine_says_so(
    served: Served,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["--url", served.url, *arguments, "-o", "json"]) == 2
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "not_supported"
    assert f"`lake {arguments[0]}" in error["message"] and served.url in error["message"]
    assert error["hint"] == "Run it where the lake is, without --url."
    assert list(tmp_path.iterdir()) == []


def test_the_hint_names_where_the_address_is_set(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake.toml").write_text(f'url = "{served.url}"\n')
    assert run(["export", "a.b", "x.csv"]) == 2
    assert f"without `url` in {tmp_path / 'lake.toml'}." in capsys.readouterr().err


def test_a_key_is_read_from_a_file_and_never_printed(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(served.admin.key)
    assert run(["--url", served.url, "--key-file", "key", "sql", "select 1 as one", "-o", "csv"]) == 0
    assert capsys.readouterr().out == "one\n1\n"
    assert run(["--url", served.url, "--key-file", "key", "config", "show"]) == 0
    assert served.admin.key not in capsys.readouterr().out
    assert run(["--url", served.url, "--key-file", "nope", "tables"]) == 2
    assert "nope cannot be read" in capsys.readouterr().err


def test_keys_are_created_rotated_and_revoked_on_the_service(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_URL", served.url)
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    assert run(["keys", "create", "--scope", "writer", "--namespace", "cli", "--days", "7", "--name", "from afar"]) == 0
    first = capsys.readouterr().out.strip()
    created = served.service.keys.get(first)
    assert (created.scope, created.namespaces, created.name) == ("writer", ("cli",), "from afar")
    assert served.service.keys.verify(first).id == created.id
    assert run(["keys", "rotate", first]) == 0
    second = capsys.readouterr().out.strip()
    assert (served.service.keys.get(first).state, served.service.keys.verify(second).scope) == ("revoked", "writer")
    assert run(["keys", "revoke", second]) == 0
    said, identifier = capsys.readouterr().err, served.service.keys.get(second).id
    assert (said, served.service.keys.get(second).state) == (f"Revoked {identifier}.\n", "revoked")
    for text in (first, second):
        assert text not in (served.service.lake.folder / "logs" / "audit" / "audit.jsonl").read_text()
    monkeypatch.setenv("LAKE_KEY", served.client("writer").key)
    assert run(["keys"]) == 2
    assert "--scope admin" in capsys.readouterr().err


def test_changes_through_the_command_line_reach_the_lake(
    served: Served,
    lake: RemoteLake,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_URL", served.url)
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    lake.ingest_rows([{"id": 1, "name": "Ann"}], "cli2.leads", key=["id"])
    (tmp_path / "more.csv").write_text("id,name\n2,Bob\n")
    for arguments in (
        ["ingest", "more.csv", "--into", "cli2.leads", "--key", "id"],
        ["drop", "cli2.leads"],
        ["undrop", "cli2.leads"],
        ["branch", "create", "cli2_exp"],
        ["branch", "drop", "cli2_exp"],
        ["tag", "create", "cli2_tag"],
        ["tag", "drop", "cli2_tag"],
    ):
        assert run(arguments) == 0, capsys.readouterr().err
    assert "2 rows" in capsys.readouterr().err
    assert served.service.lake.sql("select count(*) from cli2.leads").rows() == [(2,)]


def test_ctrl_c_ends_the_statement_on_the_service(served: Served, lake: RemoteLake, tmp_path: Path) -> None:
    """The service has one process for statements, so the next one runs only if the first has ended."""
    environment = {**os.environ, "LAKE_URL": served.url, "LAKE_KEY": served.admin.key}
    pool = served.service.queries.pool
    process = subprocess.Popen([LAKE, "sql", SLOW], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: pool.busy)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, said.strip()) == (130, "Stopped.")
    wait_for(lambda: not pool.busy)
    assert lake.sql("select 3 as three").rows() == [(3,)]


def test_a_timeout_says_what_timed_out_and_which_setting_changes_it(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_URL", served.url)
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    monkeypatch.setenv("LAKE_TIMEOUT_S", "1")
    assert run(["sql", SLOW, "-o", "json"]) == 1
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "service_unreachable"
    assert "silent for 1 s after POST /query" in error["message"] and "LAKE_TIMEOUT_S" in error["hint"]
    wait_for(lambda: not served.service.queries.pool.busy)


#: Commands that concern the machine where the lake is, and say so.
OF_THIS_MACHINE = {
    *"backup clone connect dagster dbt demo doctor down export logs migrate plan restore serve setup status ui up".split(),
    *(f"stack {action}" for action in ("list", "fetch", "rotate-token", "serve")),
    "cache prune",
    "semantics check",
    "semantics draft",
}
#: Commands that reach the service, or write files here, and refuse the arguments of the test: each names what is wrong with them.
WITH_A_REASON = {
    *"ask cherry-pick diff ingest revert rollback run sql travel".split(),
    *(f"branch {action}" for action in ("create", "drop", "merge", "diff")),
    "keys revoke",
    "keys rotate",
    "new pipeline",
    "runs log",
    "runs show",
    "tag create",
    "tag drop",
}


def all_commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that `lake --help` and the help of its groups list."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))
        else:
            yield (*path, name), command


def least_arguments(command: click.Command) -> list[str]:
    """A value for whatever the command requires."""
    given: list[str] = []
    for parameter in command.params:
        if parameter.required:
            choices = getattr(parameter.type, "choices", None)
            value = str(choices[0]) if choices else "cli.leads"
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            given += [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            given += [] if is_flag else [value]
    return given


@pytest.mark.usefixtures("leads")
@pytest.mark.parametrize(
    ("path", "command"),
    list(all_commands(lake_group)),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_works_remotely_or_says_why_not(
    served: Served,
    path: tuple[str, ...],
    command: click.Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO()))
    monkeypatch.setenv("LAKE_URL", served.url)
    monkeypatch.setenv("LAKE_KEY", served.admin.key)
    code = run([*path, *least_arguments(command), *(["--all"] if path == ("maintain",) else [])])
    said = capsys.readouterr()
    name = " ".join(path)
    assert ("of this machine" in said.err) == (name in OF_THIS_MACHINE), said.err
    refused = 3 if name == "ask" else 2  # 3: a question that is not understood
    expected = refused if name in OF_THIS_MACHINE | WITH_A_REASON else 0
    assert (code, "Error:" in said.err) == (expected, expected == 2), said.err


def test_what_only_a_lake_of_this_machine_has_is_named(served: Served) -> None:
    with connect(served.url, served.admin.key) as lake:
        for name in ("backup", "clone", "migrate", "export", "spark", "folder"):
            with pytest.raises(NotSupportedError, match=f"{name} works on a lake of this machine"):
                getattr(lake, name)
        with pytest.raises(AttributeError):
            lake.nothing  # noqa: B018
