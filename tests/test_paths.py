"""ARCHITECTURE.md names the modules that commands really cross, and draws the imports that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from tools.imports import refreshed, without_implied

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.storage.local import LocalHome
from tests.support.call_trace import Trace, trace_lake
from tests.support.servers.rest_catalog import serving
from tests.support.tills_pipeline import PIPELINE

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
MOST_MODULES_OF_SQL = 16
#: The modules behind these are listed as one: the translation of a query, and its parser.
AS_ONE = {
    "query/translate/": "query/translate/statement.py",
    "query/sql/lexer.py": "query/sql/select_parser.py",
    "query/sql/expression_parser.py": "query/sql/select_parser.py",
}


def listed(heading: str) -> list[str]:
    """The modules below a heading of ARCHITECTURE.md that begins so."""
    section = next(part for part in PAGE.split("\n### ") if part.startswith(heading))
    return re.findall(r"^\d+\. `([\w/]+\.py)`:", section, re.MULTILINE)


def _as_one(module: str) -> str:
    return next((listed_as for start, listed_as in AS_ONE.items() if module.startswith(start)), module)


def in_order(expected: list[str], crossed: list[str]) -> bool:
    """Whether all expected modules were crossed, in their order, with others in between."""
    remaining = iter(crossed)
    return all(module in remaining for module in expected)


@pytest.fixture
def lake_with_leads(tmp_path: Path) -> Path:
    """The home of a lake with a table crm.leads, as `lake ingest` would have created it, but without a JVM."""
    home = LocalHome(tmp_path / "lake").ready()
    catalog = SqlCatalog(open_database(home.catalog_file), f"file://{home.warehouse}")
    catalog.tables()  # creates the database
    rows = pyarrow.table({"id": pyarrow.array([7], pyarrow.int64()), "name": ["Eve"]})
    columns = [["id", "bigint", "id", ""], ["name", "string", "name", ""]]
    theirs = PyIceberg("lake", **catalog.pyiceberg_properties())
    theirs.create_namespace("crm")
    theirs.create_table("crm.leads", rows.schema, properties={"lake.columns": json.dumps(columns)}).append(rows)
    theirs.close()
    return home.folder


def test_the_drawing_of_imports_is_current() -> None:
    assert refreshed(PAGE) == PAGE, "ARCHITECTURE.md is stale. Refresh it: python tools/imports.py"


def test_the_drawing_leaves_out_what_follows_from_other_imports() -> None:
    assert without_implied({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_every_module_of_a_path_exists_and_is_listed_once() -> None:
    for heading in ("`lake sql", "`lake ingest", "`lake run", "A commit to the REST"):
        modules = listed(heading)
        assert len(modules) >= 8
        assert len(set(modules)) == len(modules), f"{heading} lists a module twice"
        missing = [module for module in modules if not (ROOT / "src" / "lakehouse" / module).is_file()]
        assert not missing


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("select name, count(*) from crm.leads group by name", id="one-table"),
        pytest.param("select a.id from crm.leads a join crm.leads b on a.id = b.id", id="a-join"),
    ],
)
def test_lake_sql_on_duckdb_crosses_few_modules(lake_with_leads: Path, tmp_path: Path, statement: str) -> None:
    crossed = trace_lake("cli/sql.py:sql", "sql", statement, folder=tmp_path, home=lake_with_leads)
    crossed = list(dict.fromkeys(_as_one(module) for module in crossed))
    assert crossed == listed("`lake sql"), "ARCHITECTURE.md lists other modules"
    assert len(crossed) <= MOST_MODULES_OF_SQL


@pytest.mark.slow
def test_lake_ingest_crosses_its_modules_in_order(lake_with_leads: Path, tmp_path: Path) -> None:
    (tmp_path / "leads.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    arguments = ("ingest", "leads.csv", "--into", "crm.leads")
    crossed = trace_lake("cli/files.py:ingest", *arguments, folder=tmp_path, home=lake_with_leads)
    assert in_order(listed("`lake ingest"), crossed), crossed


@pytest.mark.spark
def test_lake_run_crosses_its_modules_in_order(tmp_path: Path) -> None:
    (tmp_path / "tills.py").write_text(PIPELINE.format(name="tills"))
    (tmp_path / "lake.toml").write_text('pipelines = ["tills"]\n[sources.tills]\npath = "files"\n')
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "2026-01-05.csv").write_text("1,tea,100\n2,mate,200\n")
    crossed = trace_lake("cli/run.py:run", "run", "tills", folder=tmp_path, home=tmp_path / "lake")
    assert in_order(listed("`lake run"), crossed), crossed


def test_a_commit_to_the_rest_catalog_crosses_its_modules_in_order(lake_with_leads: Path) -> None:
    catalog = SqlCatalog(open_database(lake_with_leads / "catalog.db"), f"file://{lake_with_leads}/warehouse")
    updates = [{"action": "set-properties", "updates": {"owner": "Ada"}}]
    with Trace("rest_catalog/app.py:_Server._respond").recording(threads=True) as trace, serving(catalog) as served:
        answer = served.ask("POST", "namespaces/crm/tables/leads", {"requirements": [], "updates": updates})
    assert answer.status_code == 200, answer.text
    assert in_order(listed("A commit to the REST"), trace.modules), trace.modules
