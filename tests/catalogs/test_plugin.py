"""The catalog of examples/plugin, installed from its wheel: its file, its settings, and writers at once."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from tests.support.catalog_bench import IDS
from tests.support.threads import at_once

from lakehouse.config.settings import Settings
from lakehouse.core.catalog import Catalog, CatalogContext
from lakehouse.core.errors import BadSettingError, CatalogBusyError, NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.core.registry import require
from lakehouse.engine_config import snippet
from lakehouse.lake.backend import open_backend

pytestmark = pytest.mark.usefixtures("plugin")
LEADS = TableName("crm", "leads")


def open_json(folder: Path, **properties: str) -> Catalog:
    context = CatalogContext(f"file://{folder}/warehouse", folder, properties=properties)
    opened: Catalog = require("lakehouse.catalogs", "json")(context)
    return opened


def test_acknowledged_appends_of_writers_at_once_are_all_there(tmp_path: Path) -> None:
    catalog = open_json(tmp_path)
    catalog.ensure_namespace("crm")
    with load_catalog("lake", **catalog.pyiceberg_properties()) as client:
        client.create_table("crm.leads", schema=IDS)

    def write(number: int) -> None:
        with load_catalog("lake", **catalog.pyiceberg_properties()) as own:
            for again in range(5):
                own.load_table("crm.leads").append(pyarrow.table({"id": [10 * number + again]}, schema=IDS))

    answers = at_once(write, 4)
    assert all(answer is None or isinstance(answer, CommitFailedException) for answer in answers), answers
    with load_catalog("lake", **catalog.pyiceberg_properties()) as client:
        ids = client.load_table("crm.leads").scan().to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids))
    for number, answer in enumerate(answers):
        if answer is None:
            assert {10 * number + again for again in range(5)} <= set(ids)
    assert any(answer is None for answer in answers)


def test_a_pointer_is_replaced_only_if_it_is_the_expected_one(tmp_path: Path) -> None:
    catalog = open_json(tmp_path)
    (tmp_path / "catalog.json").write_text(
        json.dumps({"namespaces": {"crm": {}}, "tables": {"crm.leads": "a"}, "dropped": []})
    )
    assert not catalog.swap_pointer(LEADS, "b", "c")
    assert catalog.swap_pointer(LEADS, "a", "c")
    assert (catalog.pointer(LEADS), list(catalog.tables())) == ("c", [LEADS])


def test_a_lock_that_stays_held_is_an_error_after_the_configured_time(tmp_path: Path) -> None:
    catalog = open_json(tmp_path, wait_s="0.05")
    with (tmp_path / "catalog.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CatalogBusyError, match=r"for 0\.05 s"):
            catalog.ensure_namespace("crm")
    catalog.ensure_namespace("crm")


def test_settings_that_it_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettingError, match=r"catalog\.properties\.wait is not a setting") as refused:
        open_json(tmp_path, wait="3")
    assert "wait_s" in refused.value.hint
    with pytest.raises(BadSettingError, match="is not a number"):
        open_json(tmp_path, wait_s="soon")


def test_it_says_which_engines_have_a_client_for_it(tmp_path: Path) -> None:
    catalog = open_json(tmp_path)
    assert (dict(catalog.spark_conf()), list(catalog.spark_jars()), catalog.duckdb_attach()) == ({}, [], "")
    with pytest.raises(NotSupportedError, match="Trino has no client"):
        catalog.trino_catalogs("lake")
    with pytest.raises(NotSupportedError, match="Spark has no client"):
        snippet("spark", Settings(profile="json", home=tmp_path / "lake"))
    catalog.create_branch("exp")
    assert "spark.sql.catalog.exp" in catalog.on("exp").spark_conf()


def test_what_lake_connect_prints_for_duckdb_reads_its_tables(tmp_path: Path) -> None:
    settings = Settings(profile="json", home=tmp_path / "lake")
    catalog = open_backend(settings).catalog
    catalog.ensure_namespace("crm")
    with load_catalog("lake", **catalog.pyiceberg_properties()) as client:
        client.create_table("crm.leads", schema=IDS).append(pyarrow.table({"id": [1, 2]}, schema=IDS))
    names: dict[str, Any] = {}
    exec(snippet("duckdb", settings), names)  # noqa: S102 - a test of what is printed
    assert names["table"]("crm.leads").order("id").fetchall() == [(1,), (2,)]
    names["connection"].close()
