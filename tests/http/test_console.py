"""The pages of the console over HTTP: what they show, as HTML and as JSON, to whom, and with which headers."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.servers.service import Client, Served, ServedPipelines

from lakehouse.console.table import MOST_SNAPSHOTS
from lakehouse.core.files import LOCAL, local_path
from lakehouse.core.metadata_file import write_next
from lakehouse.core.names import TableName
from lakehouse.operations import OPERATIONS, PUBLIC
from lakehouse.orchestrate import note_dagster

#: The address of each page of the lake that `crm` makes.
ADDRESSES = {
    "ui_home": "/ui",
    "ui_sql": "/ui/sql?q=select+1",
    "ui_branches": "/ui/b",
    "ui_branch": "/ui/b/pages_exp?table=pages.leads",
    "ui_runs": "/ui/runs",
    "ui_run": "/ui/runs/{run}",
    "ui_lineage": "/ui/lineage?focus=bronze.minute_aggs",
    "ui_health": "/ui/health",
    "ui_ingest": "/ui/ingest",
    "ui_ask": "/ui/ask?q=how+many+leads",
    "ui_table": "/ui/t/pages.leads",
}


@pytest.fixture(scope="module")
def crm(served: Served) -> Client:
    """Two snapshots of a table, and a branch with a change."""
    admin = served.admin
    admin.insert("pages.leads?key=id", [{"id": 1, "name": "<b>Ann</b>"}, {"id": 2, "name": "Bob"}])
    admin.insert("pages.leads?key=id", [{"id": 2, "name": "Bo"}])
    admin.post("/branches", {"name": "pages_exp"})
    admin.insert("pages.leads?key=id&branch=pages_exp", [{"id": 3, "name": "Cy"}])
    return admin


@pytest.fixture(scope="module")
def run(pipelined: ServedPipelines) -> str:
    """A run that failed, on the service with a pipeline of its own; its id."""
    return str(pipelined.run(pipelined.admin, fails=True)["request"]["id"])


def visited(page: str, crm: Client, request: pytest.FixtureRequest) -> tuple[Client, str]:
    """Who visits a page, and its address."""
    if "{run}" not in ADDRESSES[page]:
        return crm, ADDRESSES[page]
    pipelined: ServedPipelines = request.getfixturevalue("pipelined")
    return pipelined.admin, ADDRESSES[page].format(run=request.getfixturevalue("run"))


def facts(client: Client, path: str) -> Any:
    """The facts of a page."""
    address, _, query = path.partition("?")
    answer = client.get(f"{address}.json?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_every_page_is_tested_here() -> None:
    pages = {
        operation.name
        for operation in OPERATIONS
        if operation.path.startswith("/ui") and operation.method == "GET" and operation.needs != PUBLIC
    }
    assert ADDRESSES.keys() == pages


@pytest.mark.parametrize("page", ADDRESSES)
def test_a_page_is_html_with_a_strict_policy_and_loads_only_files_of_the_console(
    crm: Client, page: str, request: pytest.FixtureRequest
) -> None:
    client, address = visited(page, crm, request)
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]*(src=|application/json))", answer.text), "no inline scripts"
    (nonce, styles), *others = re.findall(r'<style nonce="([^"]+)">([^<]*)</style>', answer.text)
    markup = answer.text.replace(styles, "")
    assert f"style-src 'self' 'nonce-{nonce}'" in policy and not others and markup.count("<style") == 1
    assert not re.search(r"\son[a-z]+=|style=", markup), "no inline handlers or styles"
    assert not re.search(r"""stylesheet|<script(?! type="(?:module|application/json)")""", markup), (
        "no wait for the paint"
    )
    assert not re.search(r"""(?:src|href|action)=["'](?!/|#)""", answer.text), "nothing from elsewhere"


@pytest.mark.parametrize("site", ["", "cross-site", "same-site", "none", "same-origin"])
def test_a_page_is_out_of_reach_of_a_window_from_elsewhere(crm: Client, site: str) -> None:
    headers = crm.get("/ui", headers={"Sec-Fetch-Site": site} if site else {}).headers
    may_be_held = site not in ("none", "same-origin")
    assert headers.get("cross-origin-opener-policy") == ("same-origin" if may_be_held else None)


@pytest.mark.parametrize("page", ADDRESSES)
def test_a_page_answers_as_json(crm: Client, page: str, request: pytest.FixtureRequest) -> None:
    assert isinstance(facts(*visited(page, crm, request)), dict)


@pytest.mark.parametrize("page", ADDRESSES)
def test_every_file_that_a_page_loads_is_there_and_may_be_kept(
    crm: Client, page: str, request: pytest.FixtureRequest
) -> None:
    client, address = visited(page, crm, request)
    names = re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', client.get(address).text)
    assert names
    for name in names:
        file = Client(crm.url).get(name)
        assert file.status_code == 200, name
        assert "immutable" in file.headers["cache-control"] and "no-store" not in file.headers["cache-control"]


def test_files_outside_of_the_console_are_not_served(crm: Client) -> None:
    for name in ("../render.py", "..%2frender.py", "nothing.js", "vendor"):
        assert crm.get(f"/ui/static/v/{name}").status_code == 404


def test_an_error_is_a_page_for_a_browser_and_json_for_a_program(crm: Client) -> None:
    browser = crm.get("/ui?branch=nowhere", headers={"Accept": "text/html"})
    assert browser.status_code == 404 and browser.headers["content-type"].startswith("text/html")
    assert "There is no branch" in browser.text or "nowhere" in browser.text
    assert crm.get("/ui?branch=nowhere").json()["error"] == "no_such_branch"


def test_a_page_has_the_theme_that_its_reader_chose_before_it_is_painted(crm: Client) -> None:
    def root(cookie: str) -> str:
        return re.findall(r"<html[^>]*>", crm.get("/ui", headers={"Cookie": cookie} if cookie else {}).text)[0]

    assert [root(cookie) for cookie in ("lake-theme=dark", "lake-theme=light", 'lake-theme=x" y', "")] == [
        '<html lang="en" data-theme="dark">',
        '<html lang="en" data-theme="light">',
        '<html lang="en">',
        '<html lang="en">',
    ]


def test_values_are_escaped(crm: Client) -> None:
    text = crm.get("/ui?branch=<script>alert(1)</script>", headers={"Accept": "text/html"}).text
    assert "<script>alert" not in text


# ---- home -------------------------------------------------------------------------------------------------------


def test_home_lists_tables_by_layer_with_rows_health_and_changes(crm: Client) -> None:
    home = facts(crm, "/ui")
    (layer,) = [layer for layer in home["layers"] if layer["name"] == "pages"]
    table = next(table for table in layer["tables"] if table["name"] == "pages.leads")
    assert (table["name"], table["rows"], table["health"]["word"]) == ("pages.leads", 2, "good")
    assert home["commits"][0]["tables"]
    assert "pages_exp" in home["branches"]
    assert 'href="/ui/t/pages.leads"' in crm.get("/ui").text


def test_home_shows_a_branch(crm: Client) -> None:
    layers = facts(crm, "/ui?branch=pages_exp")["layers"]
    assert [table["rows"] for layer in layers for table in layer["tables"] if table["name"] == "pages.leads"] == [3]


def test_a_key_of_a_branch_is_told_where_it_may_go(served: Served, crm: Client) -> None:
    client = served.client("reader", branches=["pages_exp"])
    refused = client.get("/ui", headers={"Accept": "text/html"})
    assert refused.status_code == 403 and 'href="/ui?branch=pages_exp"' in refused.text
    assert client.get("/ui?branch=pages_exp").status_code == 200


# ---- a table ----------------------------------------------------------------------------------------------------


def test_a_table_has_a_timeline_and_is_shown_as_of_a_moment(crm: Client) -> None:
    now = facts(crm, "/ui/t/pages.leads")
    first, last = now["timeline"]["snapshots"][0], now["timeline"]["snapshots"][-1]
    assert now["timeline"]["selected"] == last and last["is_current"]
    then = facts(crm, f"/ui/t/pages.leads?at={first['id']}")
    assert then["timeline"]["selected"] == first
    assert then["timeline"]["later"] == now["timeline"]["snapshots"][1]["id"]
    text = crm.get("/ui/t/pages.leads?tab=schema").text
    assert "<code>name</code>" in text and ">key" in text


def test_a_snapshot_before_those_on_the_timeline_is_shown_too(served: Served, crm: Client) -> None:
    crm.insert("pages.long", [{"id": 1}])
    name, catalog = TableName.parse("pages.long"), served.service.lake.refs.branches.catalog
    pointer = catalog.pointer(name)
    assert pointer is not None
    metadata = json.loads(local_path(pointer).read_text())
    (only,) = metadata["snapshots"]
    older = [
        {**only, "snapshot-id": 1000 + number, "timestamp-ms": only["timestamp-ms"] - 1000 + number}
        for number in range(MOST_SNAPSHOTS + 20)
    ]
    metadata["snapshots"] = [*older, only]
    assert catalog.swap_pointer(name, pointer, write_next(pointer, metadata, LOCAL))
    line = facts(crm, "/ui/t/pages.long?at=1003")["timeline"]
    assert (line["total"], len(line["snapshots"])) == (MOST_SNAPSHOTS + 21, MOST_SNAPSHOTS + 1)
    assert (line["selected"]["id"], line["position"]) == ("1003", 0)
    newest = facts(crm, "/ui/t/pages.long")["timeline"]
    assert newest["selected"]["is_current"] and len(newest["snapshots"]) == MOST_SNAPSHOTS


def test_a_difference_says_its_direction(crm: Client) -> None:
    snapshots = facts(crm, "/ui/t/pages.leads")["timeline"]["snapshots"]
    first, last = snapshots[0]["id"], snapshots[-1]["id"]
    there = facts(crm, f"/ui/t/pages.leads?tab=diff&vs={first}")
    back = facts(crm, f"/ui/t/pages.leads?tab=diff&vs={last}&at={first}")
    assert (
        (there["diff"]["start"], there["diff"]["end"]) == (first, last) == (back["diff"]["end"], back["diff"]["start"])
    )
    assert there["diff"]["words"] == back["diff"]["words"] == "1 changed"
    names = [[(row["change"], row["name"]) for row in page["diff"]["rows"]] for page in (there, back)]
    assert names == [[("before", "Bob"), ("after", "Bo")], [("before", "Bo"), ("after", "Bob")]]
    on_branch = facts(crm, f"/ui/t/pages.leads?tab=diff&vs={last}&branch=pages_exp")
    assert on_branch["diff"]["words"] == "1 added"
    shown = crm.get(f"/ui/t/pages.leads?tab=diff&vs={first}").text
    assert f"From snapshot <code>{first}</code> to <code>{last}</code>" in shown
    assert "<strong>Bob</strong>" in shown and "<strong>Bo</strong>" in shown, "the changed values stand out"
    assert "<strong>2</strong>" not in shown, "the key is the same"


def test_what_is_offered_from_a_snapshot_follows_the_scope_and_the_limits_of_the_key(
    served: Served, crm: Client
) -> None:
    first = facts(crm, "/ui/t/pages.leads")["timeline"]["snapshots"][0]["id"]

    def offered(client: Client, branch: str = "") -> list[str]:
        text = client.get(f"/ui/t/pages.leads?at={first}{branch}").text
        return re.findall(r'data-act="(\w+)"', text)

    assert offered(served.client("reader")) == []
    assert offered(served.client("writer")) == ["branch", "tag", "rollback", "revert"]
    assert offered(served.client("agent")) == ["branch", "tag"]
    assert offered(served.client("agent"), "&branch=pages_exp") == ["branch", "tag", "rollback"]
    assert offered(served.client("writer", namespaces=["pages"])) == ["branch", "tag", "rollback"]
    assert offered(served.client("writer", branches=["pages_exp"]), "&branch=pages_exp") == ["rollback"]


def test_a_branch_and_a_tag_start_from_a_snapshot_with_the_session_of_a_page(served: Served, crm: Client) -> None:
    first, last = [snapshot["id"] for snapshot in facts(crm, "/ui/t/pages.leads")["timeline"]["snapshots"]]
    sessions = served.service.sessions
    cookie = {sessions.cookie: sessions.of_link()}
    token = {"X-CSRF-Token": sessions.csrf(cookie[sessions.cookie])}
    page, start = Client(crm.url), {"from": "main", "table": "pages.leads", "at": first}
    preview = crm.get("/tables/pages.leads/diff", params={"start": last, "end": first, "limit": 0}).json()
    assert (preview["added"], preview["removed"], preview["changed"], preview["rows"]) == (0, 0, 1, [])
    for path, name in (("/branches", "pages_back"), ("/tags", "pages_before")):
        assert page.post(path, {**start, "name": name}, cookies=cookie).status_code == 403
        assert page.post(path, {**start, "name": name}, cookies=cookie, headers=token).status_code == 201
    names = "select name from pages.leads where id = 2"
    assert crm.rows(names, branch="pages_back") == crm.rows(names, as_of="pages_before") == [{"name": "Bob"}]
    assert crm.rows(names) == [{"name": "Bo"}]
    assert [change["table"] for change in facts(crm, "/ui/b/pages_back")["changes"]] == ["pages.leads"]
    assert crm.post("/branches", {"name": "pages_bad", "table": "pages.leads"}).json()["error"] == "bad_request"
    of_other = served.client("writer", namespaces=["other"])
    assert of_other.post("/branches", {**start, "name": "pages_bad"}).status_code == 403
    for path in ("/branches/pages_back", "/tags/pages_before"):
        assert crm.ask("DELETE", path).status_code == 200


def test_a_snapshot_leads_to_its_commit_and_what_a_revert_would_change(crm: Client) -> None:
    crm.insert("pages.undone?key=id", [{"id": 1}])
    crm.insert("pages.undone?key=id", [{"id": 2}])
    first, last = [snapshot["id"] for snapshot in facts(crm, "/ui/t/pages.undone")["timeline"]["snapshots"]]
    (commit,) = crm.get("/log", params={"table": "pages.undone", "snapshot": last}).json()["commits"]
    (change,) = crm.get(f"/log/{commit['commit']}/revert").json()["changes"]
    assert (change["rows_before"], change["rows_after"], change["conflict"]) == (2, 1, False)
    (earlier,) = crm.get("/log", params={"table": "pages.undone", "snapshot": first}).json()["commits"]
    assert crm.get(f"/log/{earlier['commit']}/revert").json()["changes"][0]["conflict"]
    assert crm.post(f"/log/{commit['commit']}/revert", {}).status_code == 200
    assert crm.rows("select count(*) as n from pages.undone") == [{"n": 1}]


def test_the_metadata_is_opened_layer_by_layer(served: Served, crm: Client) -> None:
    root = facts(crm, "/ui/t/pages.leads?tab=metadata")["metadata"]
    snapshot = next(node for node in root["children"] if node["kind"] == "snapshot")
    assert snapshot["children"] == [] and snapshot["left_out"] == 1
    path = "/tables/pages.leads/inspect"
    opened = crm.get(path, params={"when": snapshot["name"]}).json()["children"][0]
    manifest = opened["children"][0]["children"][0]
    below = crm.get(path, params={"when": snapshot["name"], "manifest": manifest["path"], "layer": "files"}).json()
    (file, *_) = below["children"][0]["children"][0]["children"][0]["children"]
    assert (file["kind"], file["facts"]["bounds"]["id"]) == ("data", [1, 2])
    reader = served.client("reader")
    for node in (root, opened["children"][0], manifest, file):
        shown = reader.get(f"{path}/file", params={"path": node["path"], "when": snapshot["name"]})
        assert shown.json()["kind"] == node["kind"], shown.text
    other = reader.get(f"{path}/file", params={"path": "/etc/passwd"})
    assert (other.status_code, other.json()["error"]) == (404, "not_found")
    text = crm.get("/ui/t/pages.leads?tab=metadata").text
    assert 'id="tree"' in text and "<b>Ann" not in text


def test_the_schema_has_its_changes_with_the_snapshot_of_each(crm: Client) -> None:
    crm.insert("pages.evolved?key=id", [{"id": 1}])
    crm.insert("pages.evolved?key=id", [{"id": 2, "city": "Bonn"}])
    page = facts(crm, "/ui/t/pages.evolved?tab=schema")
    newest, first = page["evolution"]
    assert (newest["words"], first["words"]) == (["+ city string"], [])
    assert newest["first_snapshot"] == page["timeline"]["snapshots"][-1]["id"]
    assert "+ city string" in crm.get("/ui/t/pages.evolved?tab=schema").text


def test_values_of_a_table_are_escaped_in_its_page(crm: Client) -> None:
    crm.post("/ingest/pages.marked?key=id", [{"id": 1, "name": "</script><img src=x>"}])
    crm.post("/ingest/pages.marked?key=id", [{"id": 1, "name": "plain"}])
    started = facts(crm, "/ui/t/pages.marked")["timeline"]["snapshots"][0]["id"]
    text = crm.get(f"/ui/t/pages.marked?tab=diff&vs={started}").text
    assert "&lt;/script&gt;&lt;img src=x&gt;" in text and "<img" not in text


# ---- SQL --------------------------------------------------------------------------------------------------------


def test_the_address_of_the_sql_page_holds_its_statement_and_options(crm: Client) -> None:
    path = "/ui/sql?q=select+%3Cb%3E&branch=pages_exp&at=yesterday&engine=duckdb&chart=bar,a,b"
    shown = facts(crm, path)
    assert (shown["q"], shown["branch"], shown["at"], shown["engine"]) == (
        "select <b>",
        "pages_exp",
        "yesterday",
        "duckdb",
    )
    text = crm.get(path).text
    assert "select &lt;b&gt;</textarea>" in text
    assert shown["chart"] == "bar,a,b"


def test_a_statement_of_a_page_runs_and_is_canceled_by_the_routes_with_its_session(served: Served, crm: Client) -> None:
    cookie = {served.service.sessions.cookie: served.service.sessions.of_link()}
    token = {"X-CSRF-Token": served.service.sessions.csrf(next(iter(cookie.values())))}
    body = {"statement": "select count(*) as n from pages.leads", "wait_timeout": "10s"}
    page = Client(crm.url)
    assert page.post("/statements", body, cookies=cookie).status_code == 403
    answer = page.post("/statements", body, cookies=cookie, headers=token).json()
    assert answer["result"]["data_array"] == [[2]]
    cancel = page.post(f"/statements/{answer['statement_id']}/cancel", {}, cookies=cookie, headers=token)
    assert cancel.json()["status"]["state"] == "SUCCEEDED"


# ---- branches ---------------------------------------------------------------------------------------------------


def test_a_branch_is_reviewed_as_a_pull_request(served: Served, crm: Client) -> None:
    review = facts(crm, "/ui/b/pages_exp?table=pages.leads")
    assert [(change["table"], change["rows_before"], change["rows_after"]) for change in review["changes"]] == [
        ("pages.leads", 2, 3)
    ]
    assert [row["change"] for row in review["rows"]["rows"]] == ["added"]
    assert "pages_exp" in [branch["name"] for branch in facts(crm, "/ui/b")["branches"]]
    publish = 'data-send="POST /branches/pages_exp/merge"'
    drop = 'data-send="DELETE /branches/pages_exp"'
    offered = {
        scope: tuple(button in served.client(scope).get("/ui/b/pages_exp").text for button in (publish, drop))
        for scope in ("reader", "writer", "agent")
    }
    assert offered == {"reader": (False, False), "writer": (True, True), "agent": (False, True)}


def test_a_branch_says_which_tables_main_has_changed_since(crm: Client) -> None:
    crm.insert("pages.both", [{"id": 1}])
    crm.post("/branches", {"name": "pages_conflict"})
    crm.insert("pages.both?branch=pages_conflict", [{"id": 2}])
    assert facts(crm, "/ui/b/pages_conflict")["conflicts"] == []
    crm.insert("pages.both", [{"id": 3}])
    assert "main has changed pages.both since, too." in crm.get("/ui/b/pages_conflict").text
    refused = crm.post("/branches/pages_conflict/merge", {})
    assert (refused.status_code, refused.json()["error"]) == (409, "branch_conflict")
    assert crm.ask("DELETE", "/branches/pages_conflict").status_code == 200


# ---- SQL --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "runs"),
    [
        ("select 1", True),
        ("show tables", True),
        ("with t as (select 9 as id) insert into pages.leads select id, 'x' from t", False),
        ("explain select 1; drop table pages.leads", False),
        ("", False),
    ],
)
def test_a_shared_address_runs_its_statement_only_if_that_reads(crm: Client, sql: str, runs: bool) -> None:
    assert facts(crm, f"/ui/sql?q={quote(sql)}")["runs_at_once"] is runs
    assert ("data-runs-at-once" in crm.get(f"/ui/sql?q={quote(sql)}").text) is runs
    assert crm.post("/format", {"sql": sql}).json()["reads"] is runs


def test_statements_are_set_out_in_lines_and_an_open_quote_is_an_error(crm: Client) -> None:
    assert crm.post("/format", {"sql": "select a from t"}).json()["sql"] == "select a\nfrom t"
    refused = crm.post("/format", {"sql": "select 'a"})
    assert (refused.status_code, refused.json()["error"]) == (400, "bad_sql")


# ---- runs and lineage -------------------------------------------------------------------------------------------


def test_a_failed_run_is_shown_with_its_error_and_can_be_resumed_by_who_may(
    pipelined: ServedPipelines, run: str
) -> None:
    text = pipelined.admin.get(f"/ui/runs/{run}").text
    assert "the source is gone" in text and f"POST /runs/{run}/resume" in text
    lines = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert lines and f"steps.t: build in {pipelined.folder / 'served_pipelines.py'}, line " in lines[1]
    assert "raise OSError" in next(line for line in lines[1].splitlines() if line.startswith("&gt;"))
    (log,) = re.findall(r'data-log="([^"]+)"', text)
    words = [line["source"] for line in pipelined.admin.get(log).json()["lines"]]
    assert words[0] == "run_started" and "run_failed" in words
    reader = pipelined.client("reader").get(f"/ui/runs/{run}").text
    assert "the source is gone" in reader and "data-send" not in reader
    listed = facts(pipelined.admin, "/ui/runs?pipeline=steps")
    assert run in [record["id"] for record in listed["runs"]] and listed["may_start"]
    home = facts(pipelined.admin, "/ui")
    assert [item["kind"] for item in home["attention"]] == ["failed"]


def test_runs_lead_to_the_dagster_of_the_lake_where_it_runs(served: Served) -> None:
    assert "<code>lake dagster</code>" in served.admin.get("/ui/runs").text
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        note_dagster(served.service.lake.folder, url)
        assert f'href="{url}"' in served.admin.get("/ui/runs").text
    assert facts(served.admin, "/ui/runs")["dagster"] == ""


def test_lineage_is_of_one_table_and_its_neighbours(crm: Client) -> None:
    whole = facts(crm, "/ui/lineage")["graph"]
    near = facts(crm, "/ui/lineage?focus=silver.minute_aggs&depth=1")["graph"]
    assert {"raw.minute_aggs", "gold.daily_bars"} <= {node["name"] for node in whole["nodes"]}
    assert {node["name"] for node in near["nodes"]} == {
        "silver.minute_aggs",
        "bronze.minute_aggs",
        "gold.daily_bars",
        "gold.volatility",
    }


# ---- health, ingest, ask ----------------------------------------------------------------------------------------


def test_health_has_scores_in_words_and_offers_maintenance_to_who_may(served: Served, crm: Client) -> None:
    scored = {table["table"]: table["word"] for table in facts(crm, "/ui/health")["tables"]}
    assert scored["pages.leads"] == "good"
    offered = {
        name: "data-plan" in client.get("/ui/health").text
        for name, client in (
            ("reader", served.client("reader")),
            ("writer", served.client("writer")),
            ("of a namespace", served.client("writer", namespaces=["pages"])),
        )
    }
    assert offered == {"reader": False, "writer": True, "of a namespace": False}


def test_a_dropped_file_goes_to_a_branch_is_reviewed_and_published(served: Served, crm: Client) -> None:
    """The requests that the page sends, with the session of a browser."""
    assert 'id="ingest"' in crm.get("/ui/ingest").text
    assert 'id="ingest"' not in served.client("reader").get("/ui/ingest").text
    sessions = served.service.sessions
    cookie = {sessions.cookie: sessions.of_link()}
    options: Any = {"cookies": cookie, "headers": {"X-CSRF-Token": sessions.csrf(cookie[sessions.cookie])}}
    page = Client(crm.url)
    assert page.post("/branches", {"name": "upload_pages"}, **options).status_code == 201
    sent = {**options, "headers": {**options["headers"], "Content-Type": "text/csv"}}
    csv = b"Id,Full Name\n1,Ann\n1,Anna\n,Bo\n"
    plan = page.ask("POST", "/ingest/pages.dropped?dry_run=true&key=id", data=csv, **sent).json()
    assert [plan[name] for name in ("rows_read", "inserted", "superseded", "rejected")] == [3, 1, 1, 1]
    assert plan["dry_run"] and crm.get("/tables/pages.dropped").status_code == 404
    agent = served.client("agent").ask("POST", "/ingest/pages.leads?dry_run=true", json=[{"id": 9, "score": 1.5}])
    assert agent.json()["changes"] == ["column added: score double"]
    report = page.ask("POST", "/ingest/pages.dropped?branch=upload_pages&key=id", data=b"Id,Full Name\n1,Ann\n", **sent)
    assert [column["name"] for column in report.json()["columns"]] == ["id", "full_name"]
    review = facts(crm, "/ui/b/upload_pages?table=pages.dropped")
    assert [(change["table"], change["change"]) for change in review["changes"]] == [("pages.dropped", "added")]
    assert [row["full_name"] for row in review["rows"]["rows"]] == ["Ann"]
    assert page.post("/branches/upload_pages/merge", {}, **options).status_code == 200
    assert crm.rows("select full_name from pages.dropped") == [{"full_name": "Ann"}]


def test_a_question_stands_in_the_address(crm: Client) -> None:
    assert facts(crm, "/ui/ask?q=how+many+leads")["q"] == "how many leads"
    assert 'value="how many &#34;leads&#34;"' in crm.get('/ui/ask?q=how+many+"leads"').text
