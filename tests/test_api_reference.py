"""Every public name has a docstring and an example; the page and `help()` show them, and every example runs."""

from __future__ import annotations

import doctest
import pydoc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tools.api_reference import PAGE, PRELUDE, SECTIONS, Entry, entries, entries_of, page, undocumented

import lakehouse
from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.table import Table as TableHandle
from lakehouse.quality import SparkCheckContext
from tests.conftest import cache_only
from tests.support.servers.service import serving

LEADS = [
    {"id": 1, "name": "Ada", "score": 70},
    {"id": 2, "name": "Bo", "score": 40},
    {"id": 3, "name": "Cy", "score": 90},
]
#: Examples that use a Spark session, or `context`, the rows of crm.leads for a check.
WITH_SPARK = {
    "Lake.spark",
    "Lake.run",
    "Lake.run_pipeline",
    "Lake.run_log",
    "Lake.run_record",
    "Lake.rollback",
    "Lake.transact",
    "Batch",
    "Check",
    "CheckContext",
    "SparkCheckContext",
    "keeps_most_of",
    "reconciles",
    "reference",
    "steady_row_count",
    "unique",
}
#: Examples that need a service.
WITH_SERVICE = {"connect"}
#: Two classes are named Table: that of pipelines keeps its name here.
EXAMPLES = {
    entry.name if entry.value is not TableHandle else "Lake.table()": entry for entry in entries() if entry.has_example
}


def add_leads(lake: Lake) -> None:
    """The table that examples use, with two snapshots."""
    lake.ingest_rows(LEADS, into="crm.leads", key=["id"])
    lake.ingest_rows([{"id": 3, "name": "Cy", "score": 95}], into="crm.leads", key=["id"])


def state_of(lake: Lake) -> tuple[Any, ...]:
    """What an example may have changed."""
    catalog = lake.refs.branches.catalog
    tables = [name for name in lake.table_names() if name.startswith("crm.")]
    leads = lake.describe("crm.leads").current if "crm.leads" in tables else None
    return tables, leads, lake.branches(), [tag.name for tag in catalog.tags()]


def reset(lake: Lake, before: tuple[Any, ...]) -> None:
    """Undo what an example changed, so that the next one finds crm.leads alone."""
    if state_of(lake) == before:
        return
    catalog = lake.refs.branches.catalog
    for branch in set(lake.branches()) - set(before[2]):
        catalog.drop_branch(branch)
    for tag in {tag.name for tag in catalog.tags()} - set(before[3]):
        catalog.drop_tag(tag)
    for name in lake.table_names():
        if name.startswith("crm."):
            lake.drop(name)
    add_leads(lake)


def run_example(entry: Entry, names: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the example of a docstring in a folder of its own and compare what it prints."""
    monkeypatch.chdir(folder)
    given: dict[str, Any] = {"__name__": "__main__", **names}
    exec(PRELUDE, given)
    test = doctest.DocTestParser().get_doctest(entry.docstring, given, entry.name, None, 0)
    printed: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=printed.append, clear_globs=False)
    assert result.attempted
    assert not result.failed, "".join(printed)


@pytest.fixture(scope="module")
def leads_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with assemble(load_settings({"home": tmp_path_factory.mktemp("api") / "lake"}, environ=cache_only())) as lake:
        add_leads(lake)
        yield lake


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - WITH_SPARK - WITH_SERVICE))
def test_the_example_prints_what_it_shows(
    name: str, leads_lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state_of(leads_lake)
    run_example(EXAMPLES[name], {"lake": leads_lake}, tmp_path, monkeypatch)
    reset(leads_lake, before)


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(WITH_SPARK))
def test_the_example_on_spark_prints_what_it_shows(
    name: str, local_lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "crm.leads" not in local_lake.table_names():
        add_leads(local_lake)
    before = state_of(local_lake)
    run_example(EXAMPLES[name], {"lake": local_lake, **check_names(local_lake)}, tmp_path, monkeypatch)
    reset(local_lake, before)


def check_names(lake: Lake) -> dict[str, Any]:
    """What the examples of checks use: the rows of crm.leads, which had ten rows before."""
    spark = lake.spark
    return {"context": SparkCheckContext(spark.table("crm.leads"), spark.table, {"rows": 10}, 3, datetime.now(UTC))}


@pytest.mark.slow
def test_the_example_of_a_service_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "lake") as served:
        served.admin.insert("crm.leads", LEADS)
        run_example(EXAMPLES["connect"], {"url": served.url, "key": served.admin.key}, tmp_path, monkeypatch)


# ---- the page ---------------------------------------------------------------------------------------------------


def test_every_public_name_has_a_docstring_and_an_example() -> None:
    assert not undocumented(entries())


def test_a_public_name_without_docstring_or_example_is_found() -> None:
    def bare() -> None: ...

    def described() -> None:
        """Do nothing."""

    listed = [Entry("bare", bare), Entry("described", described)]
    assert undocumented(listed) == ["bare has no docstring", "bare has no example", "described has no example"]


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "docs/api.md is stale. Refresh it: python tools/api_reference.py"


def test_the_page_has_a_heading_for_every_public_name() -> None:
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("### `")]
    for module in (lakehouse, lakehouse.pipelines, lakehouse.quality):
        for name in module.__all__:
            assert any(line.startswith((f"### `{name}(", f"### `class {name}`")) for line in headings), name


def test_help_shows_signature_and_example() -> None:
    shown = pydoc.plain(pydoc.render_doc(lakehouse))
    assert "open_lake(profile: 'str | None' = None" in shown
    assert '>>> with open_lake(home="other") as other:' in shown
    for _, part in SECTIONS:
        for entry in entries_of(part):
            if entry.has_example:
                assert ">>> " in pydoc.plain(pydoc.render_doc(entry.value)), entry.name
