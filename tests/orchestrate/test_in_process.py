"""`lake run` in a process, without Spark: what it gives back, and what it raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.transactions import opened, writing

from lakehouse.core.errors import CatalogUnreachableError
from lakehouse.orchestrate.in_process import Wanted, run_in_process
from lakehouse.pipelines import FilesTable, Pipeline, Table

AWAY = CatalogUnreachableError("The catalog does not answer.", "Start it.")


def disturbed(times: int) -> Pipeline:
    """A pipeline whose server is away in the first so many tries."""
    pipeline = writing("shop", "first", ["shop.one"])
    (table,) = pipeline.tables
    assert isinstance(table, Table) and table.light
    return replace(pipeline, tables=(replace(table, light=_away_first(times, table.light)),))


def _away_first(times: int, work: Callable[[Any, Mapping[str, str]], int]) -> Callable[[Any, Mapping[str, str]], int]:
    left = [times]

    def tried(catalog: Any, settings: Mapping[str, str]) -> int:
        if left[0]:
            left[0] -= 1
            raise AWAY
        return work(catalog, settings)

    return tried


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse.orchestrate.assets._RETRY_AFTER_S", 0)


def test_a_run_that_a_second_try_saved_has_not_failed(home: Path) -> None:
    with opened(home) as lake:
        assert run_in_process(lake, Wanted(disturbed(1), light=True), lambda text: None).state == "published"
        assert lake.sql("select run from shop.one").rows() == [("first",)]


def test_a_server_that_stays_away_is_what_is_told(home: Path) -> None:
    with opened(home) as lake, pytest.raises(CatalogUnreachableError, match="does not answer"):
        run_in_process(lake, Wanted(disturbed(9), light=True), lambda text: None)


def test_spark_is_begun_only_for_tables_that_are_made_with_it() -> None:
    pipeline = writing("shop", "first", ["shop.one", "shop.two"])
    watched = replace(pipeline, tables=(FilesTable("crm.leads", folder="path"), *pipeline.tables))
    assert Wanted(watched).needs_spark
    assert not Wanted(watched, tables=("crm.leads",)).needs_spark
    assert not Wanted(watched, light=True).needs_spark
