"""The protocol itself, request by request: what any client may count on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support.rest_changes import LEADS, set_property
from tests.support.servers.rest_catalog import SCHEMA, Serve, Served, make_table

from lakehouse.core.names import TableName


def test_config_names_every_endpoint_and_no_secret(serve: Serve) -> None:
    told = serve(files={"s3.endpoint": "http://127.0.0.1:9", "s3.secret-access-key": "hush"}).ask("GET", "config")
    assert "POST /v1/{prefix}/transactions/commit" in told.json()["endpoints"]
    assert "GET /v1/{prefix}/namespaces/{namespace}/views/{view}" in told.json()["endpoints"]
    assert told.json()["defaults"]["s3.endpoint"] == "http://127.0.0.1:9"
    assert "hush" not in told.text


def test_a_new_table_is_made_as_the_lakes_own_are(served: Served, table: dict[str, Any]) -> None:
    assert table["metadata"]["properties"] == {"gc.enabled": "false", "write.parquet.compression-codec": "zstd"}
    other = make_table(served, "other", properties={"write.parquet.compression-codec": "snappy"})
    assert other["metadata"]["properties"] == {"gc.enabled": "false", "write.parquet.compression-codec": "snappy"}


def test_namespaces_are_those_that_jdbc_and_pyiceberg_write(served: Served) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    served.ask("POST", "namespaces", {"namespace": ["crm"], "properties": {"owner": "ada"}})
    served.ask("POST", "namespaces", {"namespace": ["crm", "eu"]})
    beside = SqlCatalog("lake", **served.catalog.pyiceberg_properties())
    assert beside.list_namespaces() == [("crm",)]
    assert beside.list_namespaces("crm") == [("crm", "eu")]
    assert beside.load_namespace_properties("crm")["owner"] == "ada"
    beside.create_namespace("theirs", {"a": "1"})
    beside.close()
    assert ["theirs"] in served.ask("GET", "namespaces").json()["namespaces"]
    removed = served.ask("POST", "namespaces/theirs/properties", {"removals": ["a", "b"], "updates": {"c": "2"}})
    assert removed.json() == {"updated": ["c"], "removed": ["a"], "missing": ["b"]}
    place = f"{served.catalog.warehouse}/theirs"  # told, so that Trino places new tables below it
    assert served.ask("GET", "namespaces/theirs").json()["properties"] == {"c": "2", "location": place}
    assert served.ask("POST", "namespaces/theirs/properties", {"removals": ["c"]}).status_code == 200
    assert served.ask("HEAD", "namespaces/theirs").status_code == 204


def test_a_namespace_is_dropped_only_when_it_is_empty(served: Served) -> None:
    make_table(served, "leads")
    assert served.ask("DELETE", "namespaces/crm").json()["error"]["type"] == "NamespaceNotEmptyException"
    assert served.ask("DELETE", LEADS).status_code == 204
    served.ask("POST", "namespaces", {"namespace": ["crm", "eu"]})
    assert served.ask("DELETE", "namespaces/crm").status_code == 409
    assert served.ask("DELETE", "namespaces/crm%1Feu").status_code == 204
    assert served.ask("DELETE", "namespaces/crm").status_code == 204
    assert served.ask("GET", "namespaces/crm").status_code == 404


def test_lists_come_whole_or_page_by_page(served: Served) -> None:
    for name in "edcba":
        make_table(served, name)
    whole = served.ask("GET", "namespaces/crm/tables").json()
    assert [identifier["name"] for identifier in whole["identifiers"]] == list("abcde")
    seen, token = [], ""
    for size in (2, 2, 1):
        page = served.ask("GET", f"namespaces/crm/tables?pageSize=2&pageToken={token}").json()
        assert len(page["identifiers"]) == size
        seen += [identifier["name"] for identifier in page["identifiers"]]
        token = page["next-page-token"]
    assert (seen, token) == (list("abcde"), None)
    assert served.ask("GET", "namespaces?pageSize=x").status_code == 400


def test_version_3_is_made_and_kept_with_its_defaults(served: Served) -> None:
    fields = [{"id": 1, "name": "n", "type": "int", "required": True, "initial-default": 7, "write-default": 8}]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    made = make_table(served, "new", schema=schema, properties={"format-version": "3"})
    assert made["metadata"]["format-version"] == 3
    assert served.ask("POST", "namespaces/crm/tables/new", set_property("a", "1")).status_code == 200
    now = served.ask("GET", "namespaces/crm/tables/new").json()["metadata"]
    assert (now["next-row-id"], now["schemas"][0]["fields"]) == (0, fields)
    old = served.ask("POST", "namespaces/crm/tables", {"name": "old", "schema": schema})
    assert old.status_code == 400
    assert "format version 3" in old.text


@pytest.mark.usefixtures("table")
def test_a_table_can_be_upgraded_to_version_3_and_not_back(served: Served) -> None:
    def upgrade(version: int) -> requests.Response:
        return served.ask("POST", LEADS, {"updates": [{"action": "upgrade-format-version", "format-version": version}]})

    before = served.ask("GET", LEADS).json()
    after = upgrade(3).json()
    assert (after["metadata"]["format-version"], after["metadata"]["next-row-id"]) == (3, 0)
    assert [entry["metadata-file"] for entry in after["metadata"]["metadata-log"]] == [before["metadata-location"]]
    assert upgrade(2).status_code == 400
    assert upgrade(4).status_code == 400


def test_a_table_is_renamed_within_and_across_namespaces(served: Served) -> None:
    make_table(served, "leads")
    make_table(served, "taken")
    served.ask("POST", "namespaces", {"namespace": ["sales"]})

    def rename(end: list[str]) -> int:
        body = {
            "source": {"namespace": ["crm"], "name": "leads"},
            "destination": {"namespace": end[:1], "name": end[1]},
        }
        return served.ask("POST", "tables/rename", body).status_code

    assert rename(["crm", "taken"]) == 409
    assert rename(["nowhere", "leads"]) == 404
    assert rename(["sales", "leads"]) == 204
    assert rename(["sales", "leads"]) == 404
    assert served.ask("HEAD", "namespaces/sales/tables/leads").status_code == 204


@pytest.mark.parametrize("purge", ["", "?purgeRequested=true"])
def test_a_dropped_table_can_come_back_even_from_a_purge(served: Served, table: dict[str, Any], purge: str) -> None:
    assert served.ask("DELETE", LEADS + purge).status_code == 204
    assert served.ask("GET", LEADS).status_code == 404
    assert Path(table["metadata-location"].removeprefix("file://")).is_file()
    assert served.catalog.undrop(TableName("crm", "leads"))
    assert served.ask("GET", LEADS).json()["metadata-location"] == table["metadata-location"]


def test_a_dropped_table_is_registered_again_by_its_metadata(served: Served, table: dict[str, Any]) -> None:
    where = {"name": "leads", "metadata-location": table["metadata-location"]}
    assert served.ask("POST", "namespaces/crm/register", where).status_code == 409
    served.ask("DELETE", LEADS)
    assert served.ask("POST", "namespaces/crm/register", where).json()["metadata"] == table["metadata"]
    missing = {**where, "name": "other", "metadata-location": table["metadata-location"] + ".not"}
    assert served.ask("POST", "namespaces/crm/register", missing).status_code == 404


def test_only_snapshots_that_a_name_leads_to_are_told_where_that_is_enough(served: Served) -> None:
    uri = make_table(served, "leads")["metadata"]["location"]
    for number in (1, 2):
        snapshot = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": int(datetime.now(UTC).timestamp() * 1000),
            "manifest-list": f"{uri}/metadata/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
            "key-id": "kept although no model knows it",
            **({"parent-snapshot-id": 1} if number == 2 else {}),
        }
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
        body = {"updates": [{"action": "add-snapshot", "snapshot": snapshot}, ref]}
        assert served.ask("POST", LEADS, body).status_code == 200
    known = served.ask("GET", LEADS).json()["metadata"]["snapshots"]
    assert [entry["snapshot-id"] for entry in known] == [1, 2]
    assert {entry["key-id"] for entry in known} == {"kept although no model knows it"}
    named = served.ask("GET", f"{LEADS}?snapshots=refs").json()["metadata"]
    assert [entry["snapshot-id"] for entry in named["snapshots"]] == [2]
    stale = {**known[1], "snapshot-id": 3, "parent-snapshot-id": 2}
    late = served.ask("POST", LEADS, {"updates": [{"action": "add-snapshot", "snapshot": stale}]})
    assert late.json()["error"]["type"] == "CommitFailedException"
    gone = {"updates": [{"action": "remove-snapshots", "snapshot-ids": [1, 99]}]}
    assert [entry["snapshot-id"] for entry in served.ask("POST", LEADS, gone).json()["metadata"]["snapshots"]] == [2]


def test_names_that_could_lead_elsewhere_get_folders_that_cannot(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["a/b"]})
    served.ask("POST", "namespaces", {"namespace": ["a", "b"]})
    places = []
    for space, name in (("a%2Fb", "t"), ("a%1Fb", "t"), ("a%1Fb", ".."), ("a%1Fb", "../../../t"), ("a%1Fb", "t.new")):
        made = served.ask("POST", f"namespaces/{space}/tables", {"name": name, "schema": SCHEMA})
        assert made.status_code == 200, made.text
        places.append(made.json()["metadata"]["location"])
    inside = [place.removeprefix(served.catalog.warehouse + "/") for place in places]
    assert len(set(inside)) == 5
    assert all(".." not in place.split("/") and not place.startswith("/") for place in inside)
    assert inside[1] == "a/b/t"


def test_version_1_keeps_its_own_fields_and_takes_snapshots(served: Served) -> None:
    import pyarrow

    make_table(served, "old", properties={"format-version": "1"})
    table = served.pyiceberg().load_table("crm.old")
    schema = pyarrow.schema(
        [pyarrow.field("id", pyarrow.int64(), nullable=False), pyarrow.field("note", pyarrow.string())]
    )
    table.append(pyarrow.table({"id": [1], "note": ["a"]}, schema=schema))
    with table.update_schema() as change:
        change.delete_column("note")
    now = served.ask("GET", "namespaces/crm/tables/old").json()["metadata"]
    assert (now["format-version"], [field["name"] for field in now["schema"]["fields"]]) == (1, ["id"])
    assert "sequence-number" not in now["snapshots"][0]
    body = {"updates": [{"action": "upgrade-format-version", "format-version": 2}]}
    newer = served.ask("POST", "namespaces/crm/tables/old", body).json()["metadata"]
    assert (newer["format-version"], newer.keys() & {"schema", "partition-spec"}) == (2, set())
    assert served.pyiceberg().load_table("crm.old").scan().to_arrow().num_rows == 1
