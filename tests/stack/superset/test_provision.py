"""Superset for real: started, provisioned twice, and its dashboards in a browser with the numbers of `lake sql`.

It runs where Superset is installed (`lake stack fetch superset`, 1 GB) and with TEST_SUPERSET=1, which installs it (`make test-all`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import requests
from tests.support.agent_lakes import fill_demo
from tests.support.servers.stack import stack_settings
from tests.support.servers.superset import NEEDS_SUPERSET, Api, address, one_number

from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.errors import ServiceFailedError
from lakehouse.engine_config import snippet
from lakehouse.lake.assemble import assemble
from lakehouse.stack import native
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.services.superset import PACKAGES
from lakehouse.stack.superset.provision import SupersetClient

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = NEEDS_SUPERSET
MONEY = pa.decimal128(18, 2)
DAYS = [date(2026, 1, 1) + timedelta(days=n) for n in range(10)]


def fill_taxi(lake: Any) -> None:
    days = [
        {
            "month": "2026-01",
            "pickup_date": day,
            "trips": 100 + n,
            "distance_miles": Decimal(300 + n),
            "revenue": Decimal(2000 + 7 * n),
            "tips": Decimal(n),
        }
        for n, day in enumerate(DAYS)
    ]
    types = {"month": pa.string(), "pickup_date": pa.date32(), "trips": pa.int64(), "distance_miles": MONEY}
    types |= {"revenue": MONEY, "tips": MONEY}
    add(lake, "gold.fct_daily_trips", days, types)
    hours = [
        {
            "month": "2026-01",
            "pickup_date": day,
            "pickup_hour": n,
            "card_revenue": 5,
            "cash_revenue": 3,
            "other_revenue": 1,
        }
        for n, day in enumerate(DAYS)
    ]
    types = {"month": pa.string(), "pickup_date": pa.date32(), "pickup_hour": pa.int32()}
    add(
        lake,
        "gold.fct_hourly_revenue",
        hours,
        types | dict.fromkeys(("card_revenue", "cash_revenue", "other_revenue"), MONEY),
    )
    buckets = [("0-1", 0), ("1-2", 1), ("2-5", 2)]
    distances = [
        {"month": "2026-01", "distance_bucket": name, "from_miles": start, "trips": 10, "revenue": 100, "avg_fare": 5}
        | {"median_duration_seconds": 300, "p90_duration_seconds": 500}
        for name, start in buckets
    ]
    types = {"month": pa.string(), "distance_bucket": pa.string(), "from_miles": pa.int32(), "trips": pa.int64()}
    types |= {
        "revenue": MONEY,
        "avg_fare": MONEY,
        "median_duration_seconds": pa.int64(),
        "p90_duration_seconds": pa.int64(),
    }
    add(lake, "gold.fct_trip_distance_stats", distances, types)


def add(lake: Any, table: str, rows: list[dict[str, Any]], types: dict[str, pa.DataType]) -> None:
    lake.ingest_rows(pa.Table.from_pylist(rows, pa.schema(list(types.items()))), table)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    own = replace(stack_settings(tmp_path_factory.mktemp("superset") / "lake"), profile="embedded")
    with assemble(own) as lake:
        fill_demo(lake)
    lines: list[str] = []
    native.up(own, ["superset"], progress=lines.append)
    assert any("Market: http" in line for line in lines)
    assert any("Yellow taxi: after a run that makes gold.fct_daily_trips" in line for line in lines)
    with assemble(own) as lake:
        fill_taxi(lake)
    lines.clear()
    native.up(own, ["superset"], progress=lines.append)  # the tables are there now
    assert any("Yellow taxi: http" in line for line in lines)
    yield own
    native.down(own)


def everything(api: Api) -> dict[str, dict[str, int]]:
    return {kind: api.objects(kind) for kind in ("database", "dataset", "chart", "dashboard")}


def test_provisioning_again_changes_nothing_and_leaves_other_objects_alone(settings: Settings) -> None:
    api = Api(settings)
    own = api.post("dashboard/", dashboard_title="Mine", slug="mine")
    assert own.status_code == 201, own.text
    before = everything(api)
    assert set(before["database"]) == {"Lake"} and set(before["dashboard"]) == {"Market", "Yellow taxi", "Mine"}
    assert len(before["dataset"]) == 4 and len(before["chart"]) == 18
    mine = api.session.get(f"{api.address}/api/v1/dashboard/mine", timeout=60).json()["result"]
    native.up(settings, ["superset"])
    assert everything(api) == before
    assert (
        api.session.get(f"{api.address}/api/v1/dashboard/mine", timeout=60).json()["result"]["changed_on"]
        == mine["changed_on"]
    )


def test_a_query_sees_a_commit_at_once_and_changes_nothing(settings: Settings) -> None:
    api = Api(settings)
    with assemble(settings) as lake:
        lake.ingest_rows(pa.table({"id": [1]}), "crm.fresh")
        assert api.sql("SELECT count(*) AS n FROM lake.crm.fresh").json()["data"] == [{"n": 1}]
        lake.ingest_rows(pa.table({"id": [2]}), "crm.fresh")
        assert api.sql("SELECT count(*) AS n FROM lake.crm.fresh").json()["data"] == [{"n": 2}]
    for refused in ("DROP TABLE lake.crm.fresh", "SELECT * FROM read_text('/etc/hostname')"):
        assert api.sql(refused).status_code >= 400, refused
    assert api.sql("SELECT count(*) AS n FROM lake.crm.fresh").json()["data"] == [{"n": 2}]


def test_secrets_stay_out_of_the_log_and_nobody_signs_in_without_the_password(settings: Settings) -> None:
    secrets, log = secrets_of(settings), (settings.home / "logs" / "stack" / "superset.log").read_text()
    hidden = (secrets.superset_admin_password, secrets.superset_secret_key, secrets.rest_read_token, secrets.rest_token)
    assert not any(secret in log for secret in hidden)
    with pytest.raises(ServiceFailedError, match="does not accept the password of admin"):
        SupersetClient(address(settings), "wrong").import_assets(b"")
    assert requests.get(f"{address(settings)}/api/v1/chart/", timeout=60).status_code == 401


def test_the_printed_configuration_works_in_another_superset(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "superset_config.py").write_text(snippet("superset", settings))
    (tmp_path / "query.py").write_text(
        "from sqlalchemy import create_engine\n"
        "from sqlalchemy.engine.url import make_url\n"
        "from superset_config import DB_CONNECTION_MUTATOR\n"
        "uri, params = DB_CONNECTION_MUTATOR(make_url('duckdb:///:memory:lakehouse'), {}, 'me', None, None)\n"
        "print(create_engine(uri, **params).raw_connection().execute('SELECT sum(trips) FROM lake.gold.fct_daily_trips').fetchone()[0])\n"
    )
    python = artifact_path(settings, PACKAGES) / "bin" / "python"
    done = subprocess.run([python, "query.py"], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == one_number(settings, "SELECT sum(trips) FROM gold.fct_daily_trips")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("There is no Chromium: apt-get install -y chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason='playwright is not installed: pip install "playwright==1.65.0"'
    )
    arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    with playwright.sync_playwright() as api:
        running = api.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield running
        running.close()


def test_the_dashboards_show_the_numbers_of_the_lake(settings: Settings, browser: Any, tmp_path: Path) -> None:
    page, reached = browser.new_page(viewport={"width": 1400, "height": 1500}), set[str]()
    page.on("response", lambda response: reached.add(urlsplit(response.url).netloc))
    page.goto(f"{address(settings)}/login/")
    page.fill("input#username", "admin")
    page.fill("input#password", secrets_of(settings).superset_admin_password)
    page.keyboard.press("Enter")
    page.wait_for_url("**/superset/welcome/**", timeout=120_000)
    assert numbers(page, settings, "lake-market", tmp_path) == [
        f"{one_number(settings, f'SELECT {figure} FROM gold.daily_bars'):,}"
        for figure in ("count(DISTINCT ticker)", "count(DISTINCT date)", "sum(volume)", "sum(trades)")
    ]
    trips = [
        one_number(settings, f"SELECT sum({name}) FROM gold.fct_daily_trips")
        for name in ("trips", "revenue", "distance_miles")
    ]
    assert numbers(page, settings, "lake-taxi", tmp_path) == [
        f"{trips[0]:,}",
        f"${trips[1]:,.2f}",
        f"${trips[1] / trips[0]:,.2f}",
        f"{trips[2]:,.0f}",
    ]
    own = urlsplit(address(settings)).netloc
    assert reached - {own, ""} == set(), "a page reached another host than Superset"


def numbers(page: Any, settings: Settings, slug: str, folder: Path) -> list[str]:
    """Open a dashboard, wait until all is drawn, and return its big numbers from left to right."""
    page.goto(f"{address(settings)}/superset/dashboard/{slug}/")
    page.wait_for_selector(".header-line", timeout=180_000)
    page.wait_for_selector("table tbody tr", timeout=180_000)
    page.locator("canvas").nth(3).wait_for(timeout=180_000)
    page.locator(".header-line").nth(3).wait_for(timeout=180_000)
    page.screenshot(path=str(folder / f"{slug}.png"), full_page=True)
    assert page.locator(".chart-container [role=alert], .ant-alert-error").count() == 0, "a chart shows an error"
    return [line.inner_text() for line in page.locator(".header-line").all()]
