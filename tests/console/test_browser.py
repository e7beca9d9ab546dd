"""The console in a real browser. Where none is installed, tests/http/test_console.py tests the same pages over HTTP."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from tests.support.servers.service import Served, ServedPipelines, serving, wait_for

from lakehouse.http.sessions import SignInLinks
from lakehouse.lake.spark import spark_daemon
from lakehouse.operations import OPERATIONS, PUBLIC

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: .venv/bin/pip install playwright==1.65.0"
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="No Chromium is installed: apt-get install chromium")
#: Set to a file of axe-core to check every page for accessibility (npm install axe-core@4.14.0).
AXE = os.environ.get("LAKE_TEST_AXE", "")
PAGES = ("/ui", "/ui/t/shop.orders", "/ui/t/shop.orders?tab=schema", "/ui/t/shop.orders?tab=history", "/ui/t/shop.orders?tab=metadata", "/ui/t/shop.orders?tab=diff", "/ui/sql?q=select+*+from+shop.orders",
         "/ui/b", "/ui/b/prices?table=shop.orders", "/ui/runs", "/ui/runs/{run}", "/ui/lineage", "/ui/health", "/ui/ingest", "/ui/ask?q=how+many+orders")  # fmt: skip
#: A folder that keeps a picture of every page, in both themes and on a phone (default: that of the test).
PICTURES = os.environ.get("LAKE_TEST_PICTURES", "")
_TIMEOUT_MS = 30_000
#: How long the first write may take, which starts Spark.
_SPARK_MS = 180_000
#: The first whole number that a double does not hold.
LONG = 2**53 + 1
#: How far a name ends from the right side of its box in the picture of lineage, at the least.
LEAST_MARGIN = """Math.min(...[...document.querySelectorAll('.lineage .node')].map((node) => {
    const name = node.querySelector('.name'), text = document.createRange()
    text.selectNodeContents(name)
    const cut = name.getBoundingClientRect().right - parseFloat(getComputedStyle(name).paddingRight)
    return node.querySelector('rect').getBoundingClientRect().right - Math.min(text.getBoundingClientRect().right, cut)
}))"""
#: The texts of a column of the grid, from the first row to the last.
COLUMN = """(position) => [...document.querySelectorAll('#grid .ag-row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
    .map((row) => row.querySelector(`[col-id="${position}"]`).textContent)"""
SCROLL_TO_END = """[...document.querySelectorAll('#grid *')].filter((part) => part.scrollHeight > part.clientHeight + 1000)
    .forEach((part) => (part.scrollTop = part.scrollHeight))"""


@pytest.fixture(scope="module")
def shop(served: Served) -> Served:
    """A table with three snapshots, a branch that changes it, and a commit with a long word of a table with a long number."""
    admin = served.admin
    for item in ("tea", "oat milk", "tea, green"):
        admin.insert("shop.orders?key=id", [{"id": 1, "item": item, "price": 2.5}, {"id": len(item), "item": item}])
    admin.post("/branches", {"name": "prices"})
    admin.insert("shop.orders?key=id&branch=prices", [{"id": 1, "item": "tea, green", "price": 3.0}])
    admin.post("/branches", {"name": "long"})
    admin.insert("shop.long?key=id&branch=long", [{"id": LONG}])
    assert admin.post("/branches/long/merge", {"message": "named_struct(" * 20}).status_code == 200
    admin.ask("DELETE", "/branches/long")
    return served


@pytest.fixture(scope="module")
def failed_run(pipelined: ServedPipelines) -> str:
    return str(pipelined.run(pipelined.admin, fails=True)["request"]["id"])


@pytest.fixture(scope="module")
def places(shop: Served, pipelined: ServedPipelines, failed_run: str) -> list[tuple[Served, list[str]]]:
    """Every page with the service that has something to show on it."""
    runs = [path.format(run=failed_run) for path in PAGES if "{run}" in path]
    return [(shop, [path for path in PAGES if "{run}" not in path]), (pipelined, runs)]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Person:
    """Somebody at a browser of their own, signed in."""

    def __init__(self, chromium: Any, served: Served, key: str = "", **options: Any) -> None:
        self.served, self.problems, self.is_typing = served, [], False
        self.context = chromium.new_context(base_url=served.url, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(_TIMEOUT_MS)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._check_address)
        if key:
            self.page.goto("/ui")
            self.page.fill("#key", key)
            self.page.click("button")
        else:
            self.page.goto(f"/ui/link?token={SignInLinks(served.service.lake.folder).create()}")
        self.page.wait_for_url("**/ui")

    def _note(self, line: Any) -> None:
        # Chromium gives text that replaces a coloured word the style of the word, which the policy blocks.
        is_own = self.is_typing and line.text.startswith("Applying inline style")
        if line.type in ("error", "warning") and not is_own:
            self.problems.append(line.text)

    def _check_address(self, request: Any) -> None:
        if not request.url.startswith((self.served.url, "blob:", "data:")):
            self.problems.append(f"a request to {request.url}")

    def type(self, sql: str) -> None:
        """Replace the text of the editor."""
        self.page.wait_for_selector(".cm-content")
        self.page.locator(".cm-content").click()
        self.is_typing = True
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(sql)

    def run(self, sql: str) -> None:
        self.page.goto(f"/ui/sql?{'' if not sql else 'q=' + sql.replace(' ', '+')}")
        self.page.wait_for_selector("#grid .ag-row, #grid .empty, #problem > *")


@pytest.fixture
def ann(chromium: Any, shop: Served) -> Iterator[Person]:
    person = Person(chromium, shop)
    yield person
    assert person.problems == []
    person.context.close()


def test_every_page_of_the_console_is_visited_here() -> None:
    pages = {
        operation.path
        for operation in OPERATIONS
        if operation.path.startswith("/ui") and operation.method == "GET" and operation.needs != PUBLIC
    }
    visited = {path.partition("?")[0] for path in PAGES}
    for page in pages:
        pattern = re.sub(r"{\w+}", "[^/]+", page)
        assert any(re.fullmatch(pattern, path) for path in visited), page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_loads_without_errors_foreign_requests_or_barriers(
    chromium: Any, places: list[tuple[Served, list[str]]], theme: str, tmp_path: Path
) -> None:
    for served, paths in places:
        person = Person(chromium, served, color_scheme=theme, viewport={"width": 1280, "height": 800})
        for path in paths:
            person.page.goto(path, wait_until="networkidle")
            take_picture(person.page, tmp_path, theme, path)
            assert barriers(person.page) == [], path
        assert person.problems == []
        person.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_a_stranger_and_of_an_error_have_no_barriers(
    chromium: Any, shop: Served, theme: str, tmp_path: Path
) -> None:
    stranger = chromium.new_context(base_url=shop.url, color_scheme=theme).new_page()
    signed_in = Person(chromium, shop, color_scheme=theme)
    for page, path in ((stranger, "/ui/sign-in"), (signed_in.page, "/ui/t/shop.none")):
        page.goto(path, wait_until="networkidle")
        take_picture(page, tmp_path, theme, path)
        assert barriers(page) == [], path
    assert "There is no table shop.none" in signed_in.page.inner_text("main")
    signed_in.page.click("#sign-out")
    signed_in.page.wait_for_url("**/ui/sign-in")
    stranger.context.close()
    signed_in.context.close()


def test_no_page_is_wider_than_a_phone(chromium: Any, places: list[tuple[Served, list[str]]], tmp_path: Path) -> None:
    for served, paths in places:
        person = Person(chromium, served, viewport={"width": 390, "height": 800})
        for path in paths:
            person.page.goto(path, wait_until="networkidle")
            take_picture(person.page, tmp_path, "phone", path)
            assert person.page.evaluate("document.documentElement.scrollWidth") <= 390, path
            place = person.page.locator(".side nav [aria-current]").bounding_box()
            assert place and place["x"] >= 0 and place["x"] + place["width"] <= 390, f"{path}: its own entry is seen"
            sign_out, content = (person.page.locator(part).bounding_box() for part in ("#sign-out", "h1"))
            assert sign_out and content
            assert sign_out["x"] + sign_out["width"] <= 390 - content["x"], (
                f"{path}: as far from the edge as the content"
            )
        person.context.close()


def test_names_of_any_length_stay_in_their_boxes(chromium: Any, shop: Served) -> None:
    person = Person(chromium, shop)
    person.page.goto("/ui/lineage")
    assert person.page.locator(".lineage .node").count() > 10
    assert person.page.evaluate(LEAST_MARGIN) >= 8
    assert person.page.evaluate("getComputedStyle(document.querySelector('.lineage .name')).overflow") == "hidden"
    person.context.close()


def test_the_slider_shows_a_snapshot_and_the_address_holds_it(ann: Person, chromium: Any) -> None:
    page = ann.page
    page.goto("/ui/t/shop.orders")
    page.wait_for_selector("#rows td")
    assert page.locator("#rows tbody tr").count() == 4
    page.keyboard.press("[")
    page.keyboard.press("[")
    eventually(page, "document.querySelectorAll('#rows tbody tr').length === 2")
    assert "at=" in page.url
    bob = Person(chromium, ann.served)
    bob.page.goto(page.url)
    eventually(bob.page, "document.querySelectorAll('#rows tbody tr').length === 2")
    bob.context.close()


def test_a_move_of_the_slider_cancels_the_request_of_the_one_before(ann: Person) -> None:
    page = ann.page
    held: list[Any] = []
    canceled: list[str] = []
    page.goto("/ui/t/shop.orders")
    page.wait_for_selector("#rows td")
    page.on("requestfailed", lambda request: canceled.append(request.url))
    page.route("**/travel?*", lambda route: held.append(route))  # answered only below
    page.keyboard.press("[")
    wait_for(lambda: page.evaluate("1") and len(held) == 1, 60)
    page.keyboard.press("[")
    wait_for(lambda: page.evaluate("1") and len(held) == 2 and canceled, 60)
    assert canceled == [held[0].request.url] != [held[1].request.url]
    held[1].continue_()
    eventually(page, "document.querySelectorAll('#rows tbody tr').length > 0")


def test_a_difference_is_shown_in_its_direction(ann: Person) -> None:
    snapshots = ann.served.admin.get("/tables/shop.orders/history").json()["snapshots"]
    first, last = snapshots[0]["id"], snapshots[2]["id"]
    for start, end, words in ((first, last, "2 added, 1 changed"), (last, first, "2 removed, 1 changed")):
        ann.page.goto(f"/ui/t/shop.orders?tab=diff&vs={start}&at={end}")
        note = ann.page.inner_text("#difference ~ .note")
        assert f"From snapshot {start} to {end}: {words}" in note


def test_every_view_of_a_table_follows_the_slider_and_a_branch_has_moments_of_its_own(ann: Person) -> None:
    admin, page = ann.served.admin, ann.page
    admin.insert("shop.wider?key=id", [{"id": 1}])
    admin.insert("shop.wider?key=id", [{"id": 2, "colour": "red"}])
    first = admin.get("/tables/shop.wider/history").json()["snapshots"][0]["id"]
    page.goto(f"/ui/t/shop.wider?tab=schema&at={first}")
    assert page.locator("tr[data-column]").count() == 1
    page.click("#profile")
    eventually(page, "document.querySelectorAll('tr[data-column=id] td').length === 5")
    page.keyboard.press("]")
    page.wait_for_selector("tr[data-column=colour]")
    page.click("#profile")
    eventually(page, "document.querySelector('tr[data-column=colour]').textContent.endsWith('redred')")
    page.goto(f"/ui/t/shop.wider?tab=diff&vs={first}")
    assert "1 added" in page.inner_text("#view .note")
    page.keyboard.press("[")
    eventually(page, "document.querySelector('#view .note').textContent.includes('no row was added')")
    assert page.input_value("#view input[name=at]") == first
    page.click(".tabs a:has-text('History')")
    page.wait_for_url(lambda url: "tab=history" in url and f"at={first}" in url)
    on_branch = admin.get("/tables/shop.orders/history?branch=prices").json()["snapshots"][-1]["id"]
    page.goto(f"/ui/t/shop.orders?branch=prices&at={on_branch}")
    page.select_option(".picker select", "")
    page.wait_for_url("**/ui/t/shop.orders")
    assert page.inner_text("h1") == "shop.orders"
    page.goto("/ui/b/main")
    assert page.url.endswith("/ui/b") and "main is what the branches are compared with" in page.inner_text("main")


def test_a_view_is_listed_and_shown_by_its_query(ann: Person) -> None:
    # As another engine creates one.
    columns = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    sql = {"type": "sql", "sql": "select id from shop.orders where price < 3", "dialect": "spark"}
    version = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["shop"]}
    view = {"name": "cheap", "schema": columns, "view-version": {**version, "representations": [sql]}, "properties": {}}
    created = ann.served.admin.post("/catalog/v1/namespaces/shop/views", view)
    assert created.status_code == 200, created.text
    ann.page.goto("/ui")
    address = ann.page.get_attribute("[aria-labelledby=views] a", "href")
    assert address == "/ui/sql?q=select+%2A+from+shop.cheap+limit+100"
    answer = ann.context.request.get("/ui/t/shop.cheap", max_redirects=0)
    assert (answer.status, answer.headers["location"]) == (303, address)


def test_each_layer_of_the_metadata_is_one_click_away(ann: Person) -> None:
    page = ann.page
    page.goto("/ui/t/shop.orders?tab=metadata")
    scope = "#tree > details"
    for kind in ("metadata", "snapshot", "manifest-list", "manifest", "data"):
        node = page.locator(f"{scope}[data-kind={kind}]").first
        node.locator("> summary").click()
        node.locator("> .node > dl").wait_for()
        if kind != "snapshot":
            assert "/shop/orders/" in node.locator("> .node > .row code").inner_text()
            node.locator("> .node > .row button").click()
            node.locator("> .node > pre:not([hidden])").wait_for()
        scope = f"{scope}[data-kind={kind}] > .node > details"
    assert page.locator("details[data-kind=data] table tbody tr", has_text="item").count() == 1
    assert '"row_groups"' in page.locator("details[data-kind=data] pre").inner_text()
    assert barriers(page) == []


def test_a_branch_and_a_tag_are_made_from_a_snapshot_after_a_look_at_what_they_change(ann: Person) -> None:
    admin, page = ann.served.admin, ann.page
    first = admin.get("/tables/shop.orders/history").json()["snapshots"][0]["id"]
    for action, name in (("branch", "from_first"), ("tag", "first_tag")):
        page.goto(f"/ui/t/shop.orders?at={first}")
        page.click(f"[data-act={action}]")
        page.wait_for_selector("#act[open] .note")
        assert "rows now, 2 rows then" in page.inner_text("#act-preview")
        assert barriers(page) == []
        page.fill("#act input[name=name]", name)
        page.click("#act-yes")
        page.wait_for_url("**/ui/b/from_first" if action == "branch" else "**at=first_tag*")
    count = "select count(*) as n from shop.orders"
    assert admin.rows(count, branch="from_first") == admin.rows(count, as_of="first_tag") == [{"n": 2}]
    assert admin.ask("DELETE", "/branches/from_first").status_code == 200
    assert admin.ask("DELETE", "/tags/first_tag").status_code == 200


def test_a_commit_is_reverted_and_a_rollback_previewed_from_the_timeline(ann: Person) -> None:
    admin, page = ann.served.admin, ann.page
    for number in (1, 2):
        admin.insert("shop.undone?key=id", [{"id": number}])
    page.goto("/ui/t/shop.undone")
    page.keyboard.press("[")
    page.click("[data-act=rollback]")
    page.wait_for_selector("#act[open] .note")
    assert "2 rows now, 1 rows then" in page.inner_text("#act-preview") and "1 removed" in page.inner_text(
        "#act-preview"
    )
    page.keyboard.press("Escape")
    page.click("[data-act=revert]")
    page.wait_for_selector("#act[open] .note")
    assert "it has changed since" in page.inner_text("#act-preview") and page.locator("#act-yes").is_disabled()
    page.keyboard.press("Escape")
    page.keyboard.press("]")
    page.click("[data-act=revert]")
    page.wait_for_selector("#act-yes:not([disabled])")
    assert "2 rows now, 1 rows after" in page.inner_text("#act-preview")
    page.click("#act-yes")
    page.locator("[data-fact=rows_total]", has_text=re.compile("^1$")).wait_for()
    assert admin.rows("select count(*) as n from shop.undone") == [{"n": 1}]


def test_a_statement_its_grid_and_its_chart_are_shared_by_their_address(ann: Person, chromium: Any) -> None:
    ann.run("select item, count(*) as orders from shop.orders group by item order by item")
    ann.page.select_option("#chart-options select[name=kind]", "bar")
    ann.page.wait_for_selector("#chart canvas")
    assert "chart=bar%2Citem%2Corders" in ann.page.url
    bob = Person(chromium, ann.served, ann.served.client("reader", name="bob").key)
    bob.page.goto(ann.page.url)
    bob.page.wait_for_selector("#chart canvas")
    assert bob.page.locator("#grid .ag-row").count() == 3
    assert bob.page.locator("#grid .ag-root-wrapper").bounding_box()["height"] > 90, "the rows are seen"
    assert bob.problems == []
    bob.context.close()


def test_a_million_rows_are_scrolled_with_few_of_them_in_the_page(ann: Person) -> None:
    ann.run("select id, id * 2 as twice from range(1000000)")
    page = ann.page
    page.wait_for_selector("#grid .ag-cell")
    assert "1,000,000 rows" in page.inner_text("#facts")
    page.evaluate(SCROLL_TO_END)
    eventually(page, "[...document.querySelectorAll('#grid .ag-cell')].some((cell) => cell.textContent === '999999')")
    assert page.locator("#grid .ag-row").count() < 200


def test_a_new_run_cancels_the_one_before_and_escape_cancels(ann: Person) -> None:
    page, running = ann.page, ann.served.service.queries.running
    slow = "select+sum(a.id*b.id)+as+s+from+range(10000000)+a(id),+range(100000)+b(id)"
    page.goto(f"/ui/sql?q={slow}")
    page.wait_for_selector("#cancel:not([hidden])")
    ann.type("select 7 as seven")
    page.keyboard.press("Control+Enter")
    eventually(page, "document.querySelector('#grid')?.textContent.includes('7')")
    assert [
        query.shown()["statement"] for query in running.all(_owner(ann.served)) if "range" in query.shown()["statement"]
    ] == []


@pytest.fixture
def spark_of_service(served: Served) -> Iterator[None]:
    """The service's own warm Spark, which the first write starts, ends with the test."""
    yield
    spark_daemon(served.service.settings).shut_down()


@pytest.mark.spark
@pytest.mark.usefixtures("spark_of_service")
def test_a_write_runs_once_and_says_how_it_ended(ann: Person) -> None:
    page, admin = ann.page, ann.served.admin
    admin.insert("shop.written", [{"id": 0}])
    ids = "select id from shop.written order by id"
    page.goto("/ui/sql?q=insert+into+shop.written+values+(5)")
    page.wait_for_selector(".cm-content")
    page.locator(".cm-content").click()
    assert admin.rows(ids) == [{"id": 0}], "an address runs no write"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#cancel:not([hidden])")
    page.keyboard.press("Control+Enter")
    page.get_by_text(re.compile(r"^Still running")).wait_for()
    page.wait_for_selector("#cancel", state="hidden", timeout=_SPARK_MS)
    assert admin.rows(ids) == [{"id": 0}, {"id": 5}], page.inner_text("main")
    assert page.locator("#result [data-download]:visible").count() == 0 and page.locator("#copy").is_visible()
    # 400,000 tasks take minutes.
    slow = "insert into shop.written select count(*) from range(0, 400000, 1, 400000)"
    page.goto(f"/ui/sql?{urlencode({'q': slow})}")
    page.wait_for_selector(".cm-content")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#cancel:not([hidden])")
    page.keyboard.press("Escape")
    page.wait_for_selector("#cancel", state="hidden", timeout=_SPARK_MS)
    assert page.inner_text("#state") == "Canceled."
    assert admin.rows(ids) == [{"id": 0}, {"id": 5}]


def test_a_download_has_the_rows_that_are_shown(ann: Person) -> None:
    page = ann.page
    page.goto("/ui/sql?q=select+price+from+shop.orders+where+id+%3D+1&branch=prices")
    page.wait_for_selector("#grid .ag-row")
    page.select_option("#options select[name=branch]", "")
    with page.expect_download() as download:
        page.click("[data-export=csv]")
    assert Path(download.value.path()).read_text().split() == ["price", "3.0"]


def test_numbers_keep_their_digits_and_are_sorted_and_filtered_as_numbers(ann: Person) -> None:
    page = ann.page
    rows = (
        f"select {LONG} as m, 2.80 as d, 'null' as t union all select null, 10.00, null union all select -3, 9.50, 'a'"
    )
    ann.run(rows)

    def column(position: int) -> list[str]:
        values: list[str] = page.evaluate(COLUMN, position)
        return values

    assert str(LONG) in column(0)
    assert sorted(page.locator("#grid .ag-cell.null").all_inner_texts()) == ["null", "null"], "not the text"
    page.click("#grid .ag-header-cell[col-id='0'] .ag-header-cell-label")
    wait_for(lambda: column(0) == ["null", "-3", str(LONG)], 60)
    page.click("#grid .ag-header-cell[col-id='1'] .ag-header-cell-label")
    wait_for(lambda: column(1) == ["2.80", "9.50", "10.00"], 60)
    page.click("#grid .ag-header-cell[col-id='1'] .ag-header-cell-filter-button")
    page.locator(".ag-filter input:visible").first.fill("2.8")
    wait_for(lambda: column(1) == ["2.80"], 60)
    page.goto("/ui/t/shop.long")
    page.wait_for_selector("#rows td")
    assert page.inner_text("#rows td") == str(LONG)
    exact, fallback = (
        page.evaluate(
            """async (source) => {
            const parse = JSON.parse
            if (!source) JSON.parse = (text, reviver) => parse(text, reviver && ((name, value) => reviver(name, value)))
            const url = document.querySelector('script[src$="console.js"]').src.replace(/$/, source ? '' : '?other')
            const values = (await import(url)).parseExactly('[9007199254740993, 0.1250000000000000000, "1234567890123456789", 7]')
            JSON.parse = parse
            return values.map(String)
        }""",
            has_source,
        )
        for has_source in (True, False)
    )
    assert exact == fallback == [str(LONG), "0.125", "1234567890123456789", "7"]


def test_names_below_a_namespace_are_completed_without_keywords_and_may_have_commas(ann: Person) -> None:
    page = ann.page
    ann.run("select 'x' as `a,b`, 2 as v")
    page.select_option("#chart-options select[name=kind]", "bar")
    page.wait_for_selector("#chart canvas")
    page.goto(page.url)
    page.wait_for_selector("#chart canvas")
    assert page.input_value("#chart-options select[name=x]") == "a,b"
    page.goto("/ui/sql")
    page.wait_for_selector(".cm-focused")
    page.keyboard.type("select * from shop.o", delay=20)
    page.locator(".cm-tooltip-autocomplete li", has_text="orders").wait_for()
    assert not {"or", "on", "order"} & set(page.inner_text(".cm-tooltip-autocomplete").split())


def test_statements_are_formatted_explained_saved_and_run_in_part(ann: Person) -> None:
    page = ann.page
    page.goto("/ui/sql?q=with+t+as+(select+9+as+id)+insert+into+shop.orders+(id)+select+id+from+t")
    page.wait_for_selector(".cm-content")
    page.click("#explain")
    page.wait_for_selector("#problem .note")
    assert "it was not run" in page.inner_text("#problem")
    assert ann.served.admin.rows("select id from shop.orders where id = 9") == []
    page.goto("/ui/sql")
    ann.type("select id, item -- both\nfrom shop.orders where id = 1")
    page.keyboard.press("Shift+Alt+F")
    eventually(page, "document.querySelectorAll('.cm-line').length === 5")
    assert "item -- both" in page.inner_text(".cm-content")
    page.click("#explain")
    page.wait_for_selector("#problem .note")
    assert "Files: 1 of 1 read." in page.inner_text("#problem")
    page.click("#save")
    page.fill("#save-form input", "first order")
    page.keyboard.press("Enter")
    page.click("#saved [data-close]")
    ann.type("select 'half' as part -- select nothing")
    page.keyboard.press("Home")
    for _ in range(len("select 'half'")):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Control+Enter")
    eventually(page, "document.querySelector('#grid')?.textContent.includes('half')")
    assert "part" not in page.inner_text("#grid")
    page.select_option("#recent", label="first order")
    assert "both" in page.inner_text(".cm-content")
    page.click("#save")
    page.click("[aria-label='Remove first order']")
    assert "Nothing is saved yet." in page.inner_text("#saved-list")


def test_unsaved_sql_survives_a_restart_of_the_service_and_is_not_for_others(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path / "lake", concurrency=0) as first:
        ann = Person(chromium, first)
        page = ann.page
        page.goto("/ui/sql")
        ann.type("select 'unsaved'")
    with serving(tmp_path / "lake", urlsplit(first.url).port or 0, concurrency=0) as again:
        page.reload()
        page.wait_for_selector(".cm-content")
        assert "unsaved" in page.inner_text(".cm-content")
        page.click("#sign-out")
        page.wait_for_url("**/ui/sign-in")
        page.fill("#key", again.client("reader", name="cy").key)
        page.click("button")
        page.wait_for_url("**/ui")
        page.goto("/ui/sql")
        page.wait_for_selector(".cm-content")
        assert "unsaved" not in page.inner_text(".cm-content")
        ann.context.close()


def test_a_chosen_theme_stays(ann: Person) -> None:
    page = ann.page
    page.goto("/ui/health")
    assert page.evaluate("document.documentElement.dataset.theme") is None, "that of the system"
    page.click("#theme")
    page.goto("/ui/ask")
    assert page.locator("html[data-theme=dark]").count() == 1
    page.click("#theme")
    page.goto("/ui/health")
    assert page.locator("html[data-theme=light]").count() == 1


def test_a_run_is_shown_before_its_log_is_read(chromium: Any, pipelined: ServedPipelines, failed_run: str) -> None:
    person, held = Person(chromium, pipelined), list[Any]()
    page = person.page
    page.route(f"**/runs/{failed_run}/log", lambda route: held.append(route))  # answered only below
    page.goto(f"/ui/runs/{failed_run}", wait_until="domcontentloaded")
    wait_for(lambda: page.evaluate("1") and held, 60)
    assert "raise OSError" in page.inner_text(".error pre") and page.locator("[data-log] tr").count() == 0
    held[0].continue_()
    page.wait_for_selector("[data-log] tr.error")
    assert "run_started" in page.inner_text("[data-log] tbody tr:first-child")
    assert barriers(page) == [] and person.problems == []
    person.context.close()


def test_keys_lead_to_every_page_and_are_listed(ann: Person) -> None:
    page = ann.page
    page.goto("/ui")
    letters = page.eval_on_selector_all(".side nav a", "links => links.map((link) => [link.dataset.go, link.pathname])")
    assert len(letters) == 8
    for letter, path in letters[::3]:
        page.goto("/ui/health")
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.wait_for_url(f"**{path}")
    page.locator("h1").click()
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys:not([open])", state="attached")


def test_a_query_is_written_and_run_with_the_keyboard_alone(ann: Person) -> None:
    page = ann.page
    page.goto("/ui")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/ui/sql")
    page.wait_for_selector(".cm-focused")
    ann.is_typing = True
    page.keyboard.insert_text("select 6 * 7 as answer")
    page.keyboard.press("Control+Enter")
    eventually(page, "document.querySelector('#grid')?.textContent.includes('42')")


def test_a_branch_is_reviewed_and_published_with_the_keyboard_alone(ann: Person) -> None:
    admin, page = ann.served.admin, ann.page
    admin.post("/branches", {"name": "keyboard"})
    admin.insert("shop.orders?key=id&branch=keyboard", [{"id": 77, "item": "cup"}])
    page.goto("/ui")
    page.keyboard.press("Control+k")
    page.keyboard.type("keyboard")
    eventually(page, "document.querySelectorAll('#palette-list li').length === 1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/b/keyboard")
    page.locator("button.primary[data-send]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#confirm[open]")
    assert "shop.orders" in page.inner_text("#confirm")
    page.locator("#confirm-yes").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui")
    assert admin.rows("select item from shop.orders where id = 77") == [{"item": "cup"}]


def test_a_dropped_file_becomes_a_published_table(ann: Person, tmp_path: Path) -> None:
    file, page = tmp_path / "leads.csv", ann.page
    file.write_text("Id,Full Name\n1,Ann\n2,Bo\n")
    page.goto("/ui/ingest")
    page.set_input_files("#file", file)
    page.fill("input[name=into]", "shop.dropped")
    page.fill("input[name=key]", "id")
    page.click("#plan")
    page.wait_for_selector("#planned:not([hidden])")
    assert "2 inserted, 0 updated" in page.inner_text("#planned")
    assert "full_name" in page.inner_text("#planned table")
    assert ann.served.admin.get("/tables/shop.dropped").status_code == 404
    page.click("#start")
    page.click("#outcome a")
    page.wait_for_selector("tr.added")
    assert page.locator("tr.added").count() == 2
    page.click("button.primary[data-send]")
    page.click("#confirm-yes")
    page.wait_for_url("**/ui")
    assert len(ann.served.admin.rows("select full_name from shop.dropped")) == 2


def test_a_file_without_rows_is_not_reviewed_and_one_without_valid_rows_is_told_so(ann: Person, tmp_path: Path) -> None:
    file, page = tmp_path / "leads.csv", ann.page
    for table, text, words in (
        ("shop.ragged", "id,n\n1,a,extra\n2\n", ["2 rejected", "the ingest would fail", "A new table"]),
        ("shop.long", "id\n", ["0 inserted", "The columns of the table stay as they are."]),
    ):
        file.write_text(text)
        page.goto("/ui/ingest")
        page.set_input_files("#file", file)
        page.fill("input[name=into]", table)
        page.click("#plan")
        page.wait_for_selector("#planned:not([hidden])")
        assert [word for word in words if word not in page.inner_text("#planned")] == []
    page.click("#start")
    page.get_by_text("Nothing was ingested").wait_for()
    assert page.locator("#outcome a").count() == 0
    assert not any(ref["name"].startswith("upload_") for ref in ann.served.admin.get("/branches").json()["branches"])


def test_a_window_that_a_foreign_page_opens_is_out_of_its_reach(ann: Person) -> None:
    foreign = ann.context.new_page()
    with foreign.expect_popup() as opened:
        foreign.evaluate(f"window.held = window.open('{ann.served.url}/ui/b')")
    opened.value.wait_for_url("**/ui/b")
    assert opened.value.evaluate("window.opener") is None
    assert foreign.evaluate("window.held.closed") is True


def test_a_reader_is_refused_in_the_words_of_the_service(chromium: Any, shop: Served) -> None:
    person = Person(chromium, shop, shop.client("reader", name="eve").key)
    person.page.goto("/ui/b/prices")
    assert person.page.locator("[data-send]").count() == 0
    answer = person.page.evaluate(
        "fetch('/branches/prices', {method: 'DELETE', headers: {'X-CSRF-Token': document.querySelector('meta[name=csrf]').content}}).then((answer) => answer.json())"
    )
    assert "has the scope reader, and this needs write" in answer["message"]
    person.context.close()


def take_picture(page: Any, folder: Path, kind: str, path: str) -> None:
    path = re.sub(r"/runs/.+", "/runs/one", path)
    name = re.sub(r"[^a-z0-9]+", "-", path.removeprefix("/ui").lower()).strip("-") or "home"
    page.screenshot(path=Path(PICTURES or folder) / f"{kind}-{name}.png", full_page=True)


def barriers(page: Any) -> list[tuple[str, str]]:
    """The serious violations of accessibility on a page, each with an example; none without axe-core."""
    if not AXE:
        return []
    page.evaluate(Path(AXE).read_text())
    violations = page.evaluate("axe.run().then((result) => result.violations)")
    return [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]


def eventually(page: Any, expression: str) -> None:
    """Wait until an expression holds; Playwright's own way needs a policy that allows eval."""
    wait_for(lambda: page.evaluate(expression), _TIMEOUT_MS / 1000)


def _owner(served: Served) -> Any:
    return next(key.principal for key in served.service.keys.all() if key.scope == "admin")
