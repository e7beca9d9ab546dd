"""The cases of writes.py on catalogs and storage that need a server: PostgreSQL, Nessie, somebody else's REST catalog, a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import cache_only
from tests.contract.writes import CASES, WriteBench
from tests.support.catalog_bench import served_beside
from tests.support.repetitions import repetitions
from tests.support.servers.nessie import nessie_server
from tests.support.servers.rest_catalog import Served
from tests.support.servers.s3 import S3Server

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

__all__ = ["nessie_server", "served_beside"]

pytestmark = [pytest.mark.faults, pytest.mark.slow]

#: Cases that show the most, for every kind of catalog and storage in every run; all of them in `make test-faults`.
ELSEWHERE = repetitions(
    smoke=["rows_are_created_appended_upserted_and_replaced", "what_a_branch_wrote_goes_with_it"],
    full=[case.name for case in CASES.values() if not case.needs_spark],
)
#: Merges and cherry-picks read commits and old states of a branch, which Nessie keeps in its own way.
ON_NESSIE = repetitions(smoke=[("nessie", "rows_of_other_keys_are_combined")], full=[])
PLACES = [*product(("bucket", "postgres", "nessie", "rest"), ELSEWHERE), *ON_NESSIE]


@pytest.fixture
def served_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A lake on a kind of catalog and storage that needs a server."""
    flags, environment = {"home": tmp_path / "home", "spark.master": "local[1]"}, cache_only()
    if request.param == "bucket":
        s3: S3Server = request.getfixturevalue("s3_server")
        flags["warehouse"], environment = f"s3://{s3.make_bucket()}/lake", {**environment, **s3.environment}
    elif request.param == "nessie":  # its tables are in a bucket as well
        environment |= request.getfixturevalue("nessie_server").emptied().settings
    elif request.param == "postgres":
        environment |= {"LAKE_CATALOG__URI": request.getfixturevalue("postgres").url}
    else:
        served: Served = request.getfixturevalue("served_beside")
        environment |= {"LAKE_CATALOG__URI": served.url, "LAKE_CATALOG__TOKEN": served.token}
        environment |= {"LAKE_CATALOG__KIND": "rest", "LAKE_WAREHOUSE": f"file://{tmp_path}/warehouse"}
    with assemble(load_settings(flags, environ=environment)) as lake:
        yield lake


@pytest.mark.parametrize(("served_lake", "name"), PLACES, indirect=["served_lake"])
def test_a_write_is_audited_on_every_kind_of_catalog_and_storage(
    served_lake: Lake, namespace: str, tmp_path: Path, name: str
) -> None:
    several = served_lake.refs.branches.catalog.capabilities.multi_table_publish
    if CASES[name].several_tables and not several:
        pytest.skip("this catalog publishes one table at a time")
    CASES[name].run(WriteBench(served_lake, namespace[-40:], tmp_path / "files"))
