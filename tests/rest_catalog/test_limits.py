"""What the catalog takes from nobody: files elsewhere, properties that delete files, and bodies without end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support.rest_changes import HARMLESS, LEADS, properties, set_property
from tests.support.servers.rest_catalog import SCHEMA, TOKEN, Serve, Served, make_table

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.rest_catalog.errors import RestError
from lakehouse.rest_catalog.locations import Warehouse
from lakehouse.rest_catalog.request_body import MAX_BODY

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def test_a_location_is_below_the_warehouse_or_refused() -> None:
    bucket = Warehouse("s3://bucket/warehouse/")
    for inside in ("s3://bucket/warehouse/crm/leads", "s3a://bucket/warehouse/x/", "s3n://bucket/warehouse/a..b"):
        bucket.check(inside)
    folder = Warehouse("file:///lakes/a b/warehouse")
    for inside in ("file:///lakes/a b/warehouse/x", "file:/lakes/a b/warehouse/x", "/lakes/a b/warehouse/x"):
        folder.check(inside)
    for outside in (
        "",
        "s3://bucket/warehouse",
        "s3://bucket/warehouse/",
        "s3://bucket/warehouse2/x",
        "s3://other/warehouse/x",
        "s3://bucket/warehouse/../x",
        "s3://bucket/warehouse/x/..",
        "s3://bucket/warehouse/./x",
        "s3://bucket/warehouse//x",
        "s3://bucket/warehouse/%2e%2E/x",
        "s3://bucket/warehouse/x%2Fy",
        "s3://bucket/warehouse/a\\..\\x",
        "s3://bucket/warehouse/*",
        "S3://bucket/warehouse/x",
        "gs://bucket/warehouse/x",
        "file:///bucket/warehouse/x",
        "/bucket/warehouse/x",
    ):
        with pytest.raises(RestError, match="not below the warehouse"):
            bucket.check(outside)
    for outside in ("file:///lakes/a b/warehouse/../x", "file:///etc/x", "s3://lakes/a b/warehouse/x", "lakes/x"):
        with pytest.raises(RestError, match="not below the warehouse"):
            folder.check(outside)


def requests_elsewhere(outside: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that would put files at a location, or have engines put them there."""
    create, view = "namespaces/crm/tables", "namespaces/crm/views"
    yield create, {"name": "n", "schema": SCHEMA, "location": outside}
    yield create, {"name": "n", "schema": SCHEMA, "location": outside, "stage-create": True}
    yield "namespaces", {"namespace": ["elsewhere"], "properties": {"location": outside}}
    yield "namespaces/crm/properties", {"updates": {"location": outside}}
    yield LEADS, {"updates": [{"action": "set-location", "location": outside}]}
    version = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["crm"]}
    sql = {"type": "sql", "sql": "select 1", "dialect": "spark"}
    fields = {"schema": SCHEMA, "view-version": {**version, "representations": [sql]}, "properties": {}}
    yield view, {"name": "v", "location": outside, **fields}
    for name in ("data", "metadata", "object-storage", "folder-storage"):
        path = {f"write.{name}.path": outside}
        yield create, {"name": "n", "schema": SCHEMA, "properties": path}
        yield create, {"name": "n", "schema": SCHEMA, "properties": path, "stage-create": True}
        yield LEADS, set_property(f"write.{name}.path", outside)


def test_no_request_puts_files_outside_the_warehouse(serve: Serve, tmp_path: Path) -> None:
    served = serve()
    make_table(served, "leads")
    for outside in (f"file://{tmp_path}/outside", f"{served.catalog.warehouse}/../outside", "s3://bucket/outside"):
        for path, body in requests_elsewhere(outside):
            refused = served.ask("POST", path, body)
            assert (refused.status_code, refused.json()["error"]["type"]) == (400, "BadRequestException"), (path, body)
    assert not (tmp_path / "outside").exists()
    assert served.ask("GET", LEADS).json()["metadata"]["metadata-log"] == []
    inside = f"{served.catalog.warehouse}/elsewhere"
    for path, body in requests_elsewhere(inside):
        assert served.ask("POST", path, body).status_code in (200, 409), (path, body)


def test_a_registration_tells_nothing_about_files_outside_the_warehouse(serve: Serve, tmp_path: Path) -> None:
    served = serve()
    table = make_table(served, "leads")
    outside = tmp_path / "00000-outside.metadata.json"
    shutil.copy(table["metadata-location"].removeprefix("file://"), outside)
    for path in ("namespaces/crm/register", "namespaces/crm/register-view"):
        there, missing = (
            served.ask("POST", path, {"name": "copy", "metadata-location": f"file://{file}"})
            for file in (outside, tmp_path / "00000-missing.metadata.json")
        )
        assert there.status_code == missing.status_code == 400
        assert there.text == missing.text
    # The file is inside, and the table that it describes is not.
    content = {**json.loads(outside.read_text()), "location": f"file://{tmp_path}/outside"}
    inside = Path(table["metadata-location"].removeprefix("file://")).with_name("00009-other.metadata.json")
    inside.write_text(json.dumps(content))
    refused = served.ask("POST", "namespaces/crm/register", {"name": "copy", "metadata-location": f"file://{inside}"})
    assert refused.status_code == 400


@pytest.mark.usefixtures("table")
def test_no_property_with_which_engines_delete_files_is_taken(served: Served) -> None:
    deletes = {"gc.enabled": "TRUE", "write.metadata.delete-after-commit.enabled": "true"}
    for name, value in deletes.items():
        body = {"name": "n", "schema": SCHEMA, "properties": {name: value}}
        for staged in (False, True):
            refused = served.ask("POST", "namespaces/crm/tables", {**body, "stage-create": staged})
            assert (refused.status_code, name in refused.text) == (400, True)
        assert served.ask("POST", LEADS, set_property(name, value)).status_code == 400
    removed = served.ask("POST", LEADS, {"updates": [{"action": "remove-properties", "removals": ["gc.enabled"]}]})
    assert removed.status_code == 400  # Iceberg's default is true
    assert properties(served)["gc.enabled"] == "false"
    assert served.ask("POST", LEADS, set_property("gc.enabled", "false")).status_code == 200


def test_properties_that_delete_files_are_taken_where_the_server_allows_them(serve: Serve) -> None:
    served = serve(allow_file_deletion=True)
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    created = served.ask("POST", "namespaces/crm/tables", {"name": "leads", "schema": SCHEMA})
    assert created.json()["metadata"]["properties"]["gc.enabled"] == "false"  # the default stays safe
    for name in ("gc.enabled", "write.metadata.delete-after-commit.enabled"):
        assert served.ask("POST", LEADS, set_property(name, "true")).status_code == 200
        assert properties(served)[name] == "true"
    outside = set_property("write.data.path", "file:///outside")
    assert served.ask("POST", LEADS, outside).status_code == 400  # locations are still checked


def test_a_table_created_by_a_commit_keeps_its_files_as_well(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    staged = served.ask("POST", "namespaces/crm/tables", {"name": "leads", "schema": SCHEMA, "stage-create": True})
    location = staged.json()["metadata"]["location"]
    updates = [
        {"action": "assign-uuid", "uuid": staged.json()["metadata"]["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    create = [{"type": "assert-create"}]
    outside = [*updates, {"action": "set-location", "location": "file:///outside"}]
    assert served.ask("POST", LEADS, {"requirements": create, "updates": outside}).status_code == 400
    inside = [*updates, {"action": "set-location", "location": location}]
    done = served.ask("POST", LEADS, {"requirements": create, "updates": inside})
    assert done.json()["metadata"]["properties"]["gc.enabled"] == "false"


def test_a_protected_branch_is_read_and_not_changed(serve: Serve) -> None:
    served = serve()
    make_table(served, "leads")
    served.catalog.create_branch("audit")
    guarded = serve(served.catalog, protected=["main"])
    changes: list[tuple[str, str, Any]] = [
        ("POST", LEADS, set_property("a", "1")),
        ("POST", "transactions/commit", {"table-changes": []}),
        ("POST", "namespaces/crm/tables", {"name": "n", "schema": SCHEMA}),
        ("POST", "namespaces/crm/register", {"name": "n", "metadata-location": "file:///x"}),
        ("POST", "tables/rename", {}),
        ("DELETE", LEADS, None),
        ("POST", "namespaces", {"namespace": ["new"]}),
        ("DELETE", "namespaces/crm", None),
    ]
    for prefix in ("", "main/", "lake/"):
        for method, path, body in changes:
            refused = guarded.ask(method, prefix + path, body)
            assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ForbiddenException"), path
    assert "a" not in properties(guarded)
    assert guarded.ask("POST", f"audit/{LEADS}", set_property("a", "1")).status_code == 200


NESTED = 100_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * NESTED + b"1" + b"}" * NESTED,
        b"[" * NESTED + b"]" * NESTED,
        b'{"namespace":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"name":"n","schema":' + b'{"type":"list","element":' * 190 + b'"int"' + b"}" * 190 + b"}",
        b'{"namespace":["\\ud800"],"name":"\\udfff","schema":{}}',
        b'{"namespace":["\xed\xa0\x80"],"name":"n"}',
        b'{"namespace":["n"],"properties":{"a":"\\u0000"}}',
        b'{"namespace":["n"],"properties":{"\\ud800":"a"}}',
        b'{"namespace":[NaN],"name":1e999}',
        b'{"namespace":[' + b"9" * 10_000 + b"]}",
        b"\xff\xfe{\x00}\x00",
    ],
    ids=range(11),
)
def test_odd_json_is_refused_and_not_an_accident(serve: Serve, body: bytes) -> None:
    served = serve()
    make_table(served, "leads")
    for path in ("namespaces", "namespaces/crm/tables", "namespaces/crm/properties", LEADS, "tables/rename"):
        refused = requests.post(f"{served.url}/v1/{path}", data=body, headers=HEADERS, timeout=60)
        harmless = path in HARMLESS and b"namespace" not in body
        assert refused.status_code == 400 or (harmless and refused.status_code == 200), f"{path}: {refused.text[:200]}"


def test_names_in_the_path_that_are_no_text_are_not_found(serve: Serve) -> None:
    served = serve()
    for name in ("%ed%a0%80", "%ff", "%00"):
        for path in (f"namespaces/{name}", f"namespaces/crm/tables/{name}", f"{name}/namespaces"):
            assert served.ask("GET", path).status_code in (400, 404), path
        assert served.ask("GET", f"namespaces?parent={name}").status_code in (400, 404)


def test_a_body_that_is_too_large_is_not_read(serve: Serve) -> None:
    served = serve()
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while read < 20 * MAX_BODY:
            read += 1 << 20
            yield b" " * (1 << 20)

    url = f"{served.url}/v1/namespaces"
    promised = HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    promised.request("POST", "/v1/namespaces", headers={**HEADERS, "Content-Length": str(MAX_BODY + 1)})
    assert promised.getresponse().status == 413
    promised.close()
    for headers, status in ((HEADERS, 413), ({}, 401)):
        read = 0
        with suppress(
            requests.ConnectionError
        ):  # if the server closes the connection while the client is still sending
            assert requests.post(url, data=endless(), headers=headers, timeout=60).status_code == status
        assert read < 10 * MAX_BODY
    assert served.ask("GET", "namespaces").status_code == 200


@pytest.mark.slow
def test_an_unknown_bucket_is_not_an_accident(serve: Serve, tmp_path: Path, s3_server: Any) -> None:
    keys = {"s3.access-key-id": s3_server.access_key, "s3.secret-access-key": s3_server.secret_key}
    files = {"s3.endpoint": s3_server.endpoint, "s3.region": "us-east-1", **keys}
    catalog = SqlCatalog(open_database(tmp_path / "catalog.db"), "s3://no-such-bucket-here/warehouse")
    served = serve(catalog, files=files)
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    create = served.ask("POST", "namespaces/crm/tables", {"name": "n", "schema": SCHEMA})
    assert (create.status_code, "bucket" in create.text) == (400, True), create.text
    file = "s3://no-such-bucket-here/warehouse/x.metadata.json"
    register = served.ask("POST", "namespaces/crm/register", {"name": "n", "metadata-location": file})
    assert register.status_code in (400, 404), register.text
