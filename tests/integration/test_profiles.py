"""Profiles with servers: tables in an object store, their pointers in PostgreSQL or Nessie, the same commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.servers.stack import Stack

from lakehouse.config.profiles import resolve_profile
from lakehouse.lake import Lake
from lakehouse.storage.s3 import S3

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=["sql", pytest.param("stack", marks=pytest.mark.stretch("nessie"))])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lake(stack: Stack, profile: str) -> Lake:
    stack.need("storage", "postgres", *(("nessie",) if profile == "stack" else ()))
    return stack.lake(profile)


@pytest.fixture(scope="module")
def leads(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("files") / "leads.csv"
    file.write_text("id,name,score\n1,Ada,10\n2,Bob,20\n3,Cy,30\n")
    done = lake.ingest(file, into="sales.leads", key=("id",))
    assert done.inserted == 3
    return file


def test_files_go_into_the_bucket(lake: Lake, leads: Path, stack: Stack, profile: str) -> None:
    info = lake.describe("sales.leads")
    assert info.location.startswith(stack.endpoints.warehouse + "/")
    store = S3(resolve_profile(replace(stack.settings, profile=profile)).s3)
    assert any(name.endswith(".parquet") for name in store.list(info.location, deep=True))
    tree = lake.inspect("sales.leads", layer="files")
    (snapshot,) = [node for node in tree.children if node.kind == "snapshot"]
    (file,) = snapshot.children[0].children[0].children
    assert file.path.startswith(info.location) and file.facts["bounds"]["id"] == [1, 3]
    assert json.loads(lake.inspect_file("sales.leads", file.path).text)["rows"] == 3


def test_a_branch_is_isolated_until_it_is_published(lake: Lake, leads: Path) -> None:
    lake.refs.branches.create("exp")
    lake.sql("insert into sales.leads values (9, 'Zed', 90)", branch="exp")
    assert lake.sql("select count(*) from sales.leads", branch="exp").rows() == [(4,)]
    assert lake.sql("select count(*) from sales.leads").rows() == [(3,)]
    lake.refs.branches.merge("exp")
    assert lake.sql("select max(id) from sales.leads").rows() == [(9,)]
    lake.sql("delete from sales.leads where id = 9")


def test_duckdb_and_spark_read_the_same_rows(lake: Lake, leads: Path) -> None:
    query = "select id, name, score from sales.leads order by id"
    ours = lake.sql(query)
    assert ours.engine == "duckdb"
    assert ours.rows() == lake.sql(query, engine="spark").rows() == [(1, "Ada", 10), (2, "Bob", 20), (3, "Cy", 30)]


def test_an_upsert_a_rollback_and_a_look_back(lake: Lake, leads: Path) -> None:
    first = lake.history("sales.leads")[-1].id
    leads.write_text("id,name,score,city\n2,Bob,25,London\n4,Di,40,Austin\n")
    done = lake.ingest(leads, into="sales.leads", key=("id",))
    assert (done.inserted, done.updated) == (1, 1)
    assert lake.sql("select sum(score) from sales.leads").rows() == [(105,)]
    assert sorted(lake.travel("sales.leads", first).rows()) == [(1, "Ada", 10), (2, "Bob", 20), (3, "Cy", 30)]
    lake.rollback("sales.leads", first)
    assert lake.sql("select sum(score) from sales.leads").rows() == [(60,)]
