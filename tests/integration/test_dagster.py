"""`lake dagster` as a process: its page and its GraphQL answer on loopback alone, and Ctrl-C ends all of its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from tests.conftest import LAKE, command_for
from tests.support.servers.ports import free_port

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_START_TIMEOUT_S = 600
_STOP_TIMEOUT_S = 300
_LISTENING = "0A"
_LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")

QUESTION = """{
  assetNodes { assetKey { path } groupName }
  repositoriesOrError { ... on RepositoryConnection { nodes { schedules { name } sensors { name } } } }
}"""


@dataclass(frozen=True)
class Dagster:
    """A running `lake dagster`."""

    process: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> tuple[int, str]:
        with urlopen(self.url + path, timeout=30) as answer:
            return answer.status, answer.read().decode()

    def ask(self, question: str) -> dict[str, Any]:
        body = json.dumps({"query": question}).encode()
        with urlopen(Request(self.url + "/graphql", body, {"Content-Type": "application/json"}), timeout=60) as answer:
            result = json.loads(answer.read())
        assert "errors" not in result, result
        return dict(result["data"])

    def answers(self) -> bool:
        try:
            return self.get("/server_info")[0] == 200
        except (URLError, OSError):
            return False


def processes_below(pid: int) -> set[int]:
    """A process and all that it started, and those started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended meanwhile
    pids = {pid}
    while more := {child for child, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return pids


def running(pids: set[int]) -> set[int]:
    """Those that have not ended; a zombie has."""
    alive = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            alive.add(pid)
    return alive


def listening_addresses(pids: set[int]) -> set[str]:
    """The addresses, as the kernel writes them, on which some processes listen."""
    sockets = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                continue
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {line[1].partition(":")[0] for line in lines if line[3] == _LISTENING and f"socket:[{line[9]}]" in sockets}


def wait_for(ready: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


@contextmanager
def running_dagster(home: Path, folder: Path) -> Iterator[Dagster]:
    """`lake dagster` for a lake, with this working folder."""
    port, log = free_port(), folder / "log"
    (folder / "inbox").mkdir()
    environment = {**os.environ, "LAKE_HOME": str(home), "LAKE_SOURCES__FILES__PATH": str(folder / "inbox")}
    # As a shell script starts it in the background, without Ctrl-C.
    command = ["/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"', LAKE, "dagster", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
    server = Dagster(process, f"http://127.0.0.1:{port}")
    try:
        started = wait_for(lambda: server.answers() or process.poll() is not None, _START_TIMEOUT_S)
        assert started and process.poll() is None, log.read_text()[-3000:]
        yield server
    finally:
        for pid in running(processes_below(process.pid)):
            os.kill(pid, signal.SIGKILL)
        process.wait()


#: A pipeline with partitions of a class of its own and a rule whose name Dagster does not allow.
SHOPS = """
from dataclasses import dataclass
from lakehouse.pipelines import Pipeline, Source, Table
from lakehouse.pipelines import functions as F
from lakehouse.quality import at_least


@dataclass(frozen=True)
class Shops:
    column: str = "shop"
    start: str = "north"

    def check(self, key):
        return key

    def between(self, first, last):
        return [first, last]

    def shifted(self, key, by):
        return key

    def sql_type(self):
        return "string"


def read(context):
    return context.spark.range(2).select("id", F.lit(context.partition).alias("shop"))


def landed(rows):
    return rows


def counted(rows):
    return rows.groupBy("shop").agg(F.count("id").alias("n"))


tills = Source("tills_{name}", read)
{name} = Pipeline("{name}", (
    Table("{name}.bronze", landed, inputs=(tills,), partition_by="shop"),
    Table("{name}.gold", counted, inputs=("{name}.bronze",), partition_by="shop", rules=(at_least("n", -100),)),
), Shops())
"""
_REPOSITORY = 'repositoryName: "__repository__", repositoryLocationName: "lakehouse.orchestrate.definitions"'
_EVENTS_S = 600


@dataclass(frozen=True)
class Assets:
    """The assets of a pipeline in a running Dagster, by GraphQL."""

    server: Dagster
    pipeline: str

    def key(self, table: str) -> str:
        return f'{{path: ["{self.pipeline}", "{table}"]}}'

    def built(self, table: str) -> set[str]:
        """The partitions that Dagster shows as materialized."""
        statuses = "... on DefaultPartitionStatuses { materializedPartitions }"
        asset = f"... on AssetNode {{ assetPartitionStatuses {{ {statuses} }} }}"
        answer = self.server.ask(f"{{ assetNodeOrError(assetKey: {self.key(table)}) {{ {asset} }} }}")
        return set(answer["assetNodeOrError"]["assetPartitionStatuses"]["materializedPartitions"])

    def materialize(self, table: str, partition: str) -> str:
        """Materialize one asset; returns how the run ended."""
        selector = f'{{{_REPOSITORY}, jobName: "__ASSET_JOB", assetSelection: [{self.key(table)}]}}'
        tags = f'[{{key: "dagster/partition", value: "{partition}"}}]'
        parameters = f"{{selector: {selector}, runConfigData: {{}}, executionMetadata: {{tags: {tags}}}}}"
        launched = "__typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }"
        answer = self.server.ask(f"mutation {{ launchRun(executionParams: {parameters}) {{ {launched} }} }}")[
            "launchRun"
        ]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        question = f'{{ runOrError(runId: "{answer["run"]["runId"]}") {{ ... on Run {{ status }} }} }}'
        (state,) = self._ended(lambda: [self.server.ask(question)["runOrError"]])
        return state

    def backfill(self, *partitions: str, tables: Sequence[str]) -> str:
        """Start to build partitions of some assets, new ones too, as one backfill; returns its id."""
        for partition in partitions:
            names = f'partitionsDefName: "{self.pipeline}", partitionKey: "{partition}"'
            added = f"addDynamicPartition(repositorySelector: {{{_REPOSITORY}}}, {names}) {{ __typename }}"
            self.server.ask(f"mutation {{ {added} }}")
        selected = ", ".join(self.key(table) for table in tables)
        parameters = f"{{assetSelection: [{selected}], partitionNames: {json.dumps(partitions)}}}"
        launched = "__typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }"
        answer = self.server.ask(
            f"mutation {{ launchPartitionBackfill(backfillParams: {parameters}) {{ {launched} }} }}"
        )["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def backfilled(self, backfill_id: str) -> list[str]:
        """How the runs of a backfill ended. That the backfill itself has ended is noted when Dagster looks again, 30 s later."""
        backfill = f'partitionBackfillOrError(backfillId: "{backfill_id}")'
        question = f"{{ {backfill} {{ ... on PartitionBackfill {{ runs {{ status }} }} }} }}"
        return self._ended(lambda: self.server.ask(question)["partitionBackfillOrError"]["runs"])

    def _ended(self, runs: Callable[[], list[dict[str, str]]]) -> list[str]:
        states: list[str] = []

        def have_ended() -> bool:
            states[:] = [run["status"] for run in runs()]
            return bool(states) and all(state in ("SUCCESS", "FAILURE", "CANCELED") for state in states)

        wait_for(have_ended, _EVENTS_S)
        return states


@pytest.fixture(scope="module")
def pipeline(
    shared_lake: Lake, shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Assets]:
    """A pipeline of a project, with a partition that was built outside, in one Dagster for all tests: its start is the dear part."""
    name, folder = "tills_in_dagster", tmp_path_factory.mktemp("dagster")
    (folder / f"{name}.py").write_text(SHOPS.replace("{name}", name))
    (folder / "lake.toml").write_text(f'pipelines = ["{name}"]\n')
    shared_lake.sql("select 1", engine="spark")
    lake = command_for(shared_settings.home)
    with ThreadPoolExecutor(1) as pool:
        outside = pool.submit(lake, "run", name, "--partition", "north", cwd=folder)  # while Dagster starts
        with running_dagster(shared_settings.home, folder) as server:
            assert outside.result().returncode == 0, outside.result().stderr
            yield Assets(server, name)


def test_assets_of_any_partitions_are_materialized_and_backfilled_and_runs_made_outside_show(
    pipeline: Assets, shared_lake: Lake
) -> None:
    name = pipeline.pipeline
    before = {record.id for record in shared_lake.runs()}
    backfill = pipeline.backfill("east", "south", tables=("bronze", "gold"))  # Dagster looks for backfills every 30 s
    assert wait_for(lambda: "north" in pipeline.built("gold"), _EVENTS_S), "the run made outside"
    assert pipeline.materialize("gold", "north") == "SUCCESS"
    assert pipeline.backfilled(backfill) == ["SUCCESS"]
    assert pipeline.built("bronze") == pipeline.built("gold") == {"north", "east", "south"}
    rows = shared_lake.sql(f"select shop, n from {name}.gold order by shop").rows()
    assert rows == [("east", 2), ("north", 2), ("south", 2)]
    built = [
        {report.table: set(report.partitions) for report in record.tables}
        for record in shared_lake.runs()
        if record.id not in before
    ]
    assert sorted(built, key=len) == [
        {f"{name}.gold": {"north"}},
        {f"{name}.bronze": {"east", "south"}, f"{name}.gold": {"east", "south"}},
    ], "one asset by itself, and a backfill is one transaction"


def test_dagster_serves_the_pipelines_on_loopback_and_ends_with_all_its_processes(
    pipeline: Assets, shared_settings: Settings
) -> None:
    dagster = pipeline.server
    status, page = dagster.get("/")
    assert (status, "<!doctype html>" in page.lower(), "Dagster" in page) == (200, True, True)
    answer = dagster.ask(QUESTION)
    groups = {"/".join(node["assetKey"]["path"]): node["groupName"] for node in answer["assetNodes"]}
    for name, group in {
        "gold/daily_bars": "market",
        "gold/fct_daily_trips": "taxi",
        "gold/user_activity": "social",
        "crm/leads": "files",
        "iceberg_snapshot_report": "report",
        f"{pipeline.pipeline}/gold": pipeline.pipeline,
    }.items():
        assert groups[name] == group
    (repository,) = answer["repositoriesOrError"]["nodes"]
    assert {item["name"] for item in repository["schedules"]} == {
        f"{name}_schedule" for name in ("market", "taxi", "social", "files", pipeline.pipeline)
    }
    assert [item["name"] for item in repository["sensors"]] == ["crm_leads_folder", "lake_runs"]
    assert (shared_settings.home / "dagster" / "dagster.yaml").is_file()

    everybody = processes_below(dagster.process.pid)
    assert len(everybody) > 1, "the page and the code location have processes of their own"
    assert listening_addresses(everybody) <= set(_LOOPBACK)
    dagster.process.send_signal(signal.SIGINT)
    assert dagster.process.wait(_STOP_TIMEOUT_S) in (0, -signal.SIGINT, 130)
    assert wait_for(lambda: not running(everybody), _STOP_TIMEOUT_S), running(everybody)
    assert not dagster.answers()
