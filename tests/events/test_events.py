"""Events of runs and ingests reach files and servers, and a server that is down costs a run nothing."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.event_receiver import receiver

from lakehouse.config.load import load_settings
from lakehouse.core.errors import BadSettingError, LakeError, RunBlockedError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.pipelines import LightContext, Pipeline, Table
from lakehouse.quality import Check, fresh, unique

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
OLD = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def opened(home: Path, **events: str) -> Iterator[Lake]:
    with assemble(load_settings({"home": home, **{f"events.{name}": value for name, value in events.items()}})) as lake:
        yield lake


def shop(*checks: Check, rows: int = 2) -> Pipeline:
    def needs_spark() -> Any:
        raise AssertionError("this table is built without Spark")

    def write(context: LightContext) -> int:
        table = pa.Table.from_pylist([{"id": 1 + n % 2, "at": OLD} for n in range(rows)], SCHEMA)
        context.catalog.create_table_if_not_exists("shop.sales", schema=SCHEMA).append(table, dict(context.notes))
        return rows

    return Pipeline("shop", (Table("shop.sales", needs_spark, checks=checks, light=write),))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_is_reported_as_openlineage_to_a_file_and_a_server(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    with receiver() as server, opened(home, file=str(file), url=server.url, api_key="the-key") as lake:
        record = lake.run(shop(), light=True)
        # The run and the table that it built, each with a start and an end.
        events = server.wait(4)
        assert lines(file) == events
        assert all(headers["Authorization"] == "Bearer the-key" for headers in server.headers)
    kinds = [(event["eventType"], event["job"]["name"]) for event in events]
    assert kinds == [
        ("START", "shop"),
        ("START", "shop.shop.sales"),
        ("COMPLETE", "shop.shop.sales"),
        ("COMPLETE", "shop"),
    ]
    first, _, part, last = events
    assert first["run"]["runId"] == last["run"]["runId"] == part["run"]["facets"]["parent"]["run"]["runId"]
    assert uuid.UUID(first["run"]["runId"]).version == 5
    assert last["run"]["facets"]["lakehouse_run"]["id"] == record.id
    (output,) = last["outputs"]
    assert output["name"] == "shop.sales"
    assert output["facets"]["version"]["datasetVersion"] == record.tables[0].snapshot
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["id", "at"]
    for event in events:
        assert {"eventType", "eventTime", "run", "job", "producer", "schemaURL"} <= set(event)
        datetime.fromisoformat(event["eventTime"])


def test_a_failed_ingest_is_reported(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    with opened(home, file=str(file)) as lake, pytest.raises(LakeError):
        lake.ingest(tmp_path / "nothing.csv", into="shop.sales")
    start, failed = lines(file)
    assert (start["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == failed["run"]["runId"]
    assert "nothing.csv" in failed["run"]["facets"]["errorMessage"]["message"]
    (line,) = lines(home / "logs" / "lake.jsonl")
    assert (line["event"], line["level"], line["table"]) == ("ingest_failed", "error", "shop.sales")


def test_the_log_has_the_id_of_the_run(home: Path) -> None:
    with opened(home) as lake:
        record = lake.run(shop(), light=True)
    started, *steps, ended = lines(home / "logs" / "lake.jsonl")
    assert {step["event"] for step in steps} == {"run_step"} and any("shop.sales" in step["text"] for step in steps)
    assert (started["event"], ended["event"], ended["state"], ended["rows"]) == (
        "run_started",
        "run_ended",
        "published",
        2,
    )
    assert {line["run"] for line in (started, *steps, ended)} == {record.id}


def test_a_dry_run_reports_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("id\n1\n")
    with opened(home) as lake:
        lake.ingest(tmp_path / "sales.csv", into="shop.sales", dry_run=True)
    assert not (home / "logs" / "lake.jsonl").exists()


def test_a_failed_run_and_a_stale_table_reach_the_webhook(home: Path) -> None:
    with receiver() as server, opened(home, webhook=server.url) as lake:
        lake.run(shop(fresh("at", timedelta(days=1))), light=True)
        (stale,) = server.wait(1)
        assert (stale["event"], stale["table"], stale["check"]) == ("table_stale", "shop.sales", "at_fresh")
        assert "old" in stale["detail"]
        with pytest.raises(RunBlockedError):
            lake.run(shop(unique("id")), light=True)
        failed = server.wait(2)[1]
    assert (failed["event"], failed["pipeline"]) == ("run_failed", "shop")
    assert failed["message"] and failed["run"]


@pytest.mark.parametrize("kind", ["closed", "silent", "refusing"])
def test_a_dead_receiver_neither_fails_nor_slows_a_run_and_is_reported_once(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    status, delay = {"closed": (200, 0.0), "silent": (200, 30.0), "refusing": (500, 0.0)}[kind]
    with receiver(status, delay) as server:
        url = "http://127.0.0.1:9/secret-path" if kind == "closed" else server.url
        with opened(home, url=url, webhook=url, timeout_s="0.5") as lake, caplog.at_level(logging.WARNING):
            plain, observed = _seconds(lake, shop()), _seconds(lake, shop())
            lake._components.observer()._events.flush(5)
    warnings = [record.getMessage() for record in caplog.records if record.name == "lakehouse.events"]
    assert len(warnings) == 1 and "events.url" in warnings[0], "the webhook had nothing to send"
    assert "secret-path" not in warnings[0]
    assert max(plain, observed) < 20


def _seconds(lake: Lake, pipeline: Pipeline) -> float:
    started = time.monotonic()
    assert lake.run(pipeline, light=True).state == "published"
    return time.monotonic() - started


def test_a_queued_event_takes_no_time_although_the_receiver_is_silent() -> None:
    from lakehouse.events.delivery import HttpSink

    with receiver(delay_s=30.0) as server:
        sink = HttpSink("events.url", server.url, timeout_s=0.3)
        started = time.monotonic()
        for number in range(1_000):
            sink.send({"number": number})
        assert time.monotonic() - started < 10, "each would take 0.3 s"
        assert sink.flush(30), "what cannot be delivered is given up"


@pytest.mark.parametrize("name", ["url", "webhook", "traces"])
def test_an_address_that_is_not_http_is_refused_before_the_run(home: Path, name: str) -> None:
    with opened(home, **{name: "file:///etc/passwd"}) as lake, pytest.raises(BadSettingError, match=f"events.{name}"):
        lake.run(shop(), light=True)


def test_a_folder_that_cannot_be_written_does_not_fail_a_run(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(home, file="/proc/nothing/lineage.jsonl") as lake, caplog.at_level(logging.WARNING):
        assert lake.run(shop(), light=True).state == "published"
    assert sum("events.file" in record.getMessage() for record in caplog.records) == 1


def test_traces_have_runs_and_their_failures(home: Path) -> None:
    with receiver() as server, opened(home, traces=server.url) as lake:
        record = lake.run(shop(), light=True)
        with pytest.raises(RunBlockedError):
            lake.run(shop(unique("id")), light=True)
        spans = [body["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for body in server.wait(2)]
    assert [span["name"] for span in spans] == ["lake.run", "lake.run"]
    attributes = {attribute["key"]: attribute["value"]["stringValue"] for attribute in spans[0]["attributes"]}
    assert attributes == {"lake.run": record.id, "lake.pipeline": "shop"}
    assert (spans[0]["status"], spans[1]["status"]) == ({}, {"code": 2})
    assert len(spans[0]["traceId"]) == 32


def test_the_last_event_of_a_command_leaves_before_it_ends(lake_command, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with receiver() as server:
        done = lake_command(
            "ingest", str(tmp_path / "nothing.csv"), "--into", "shop.sales", env={"LAKE_EVENTS__URL": server.url}
        )
        assert done.returncode != 0
        assert [event["eventType"] for event in server.wait(2)] == ["START", "FAIL"]
