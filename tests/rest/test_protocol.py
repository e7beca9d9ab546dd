"""The protocol itself, request by request: what any client may count on."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.rest.conftest import SCHEMA, Serve, Served, make_table

from lakehouse.core.names import CATALOG, TableName
from lakehouse.rest.pointers import Pointers, Swap

LEADS = "namespaces/crm/tables/leads"


def set_property(key: str, value: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": list(requirements), "updates": [{"action": "set-properties", "updates": {key: value}}]}


def properties(served: Served, table: str = "leads", prefix: str = "") -> dict[str, str]:
    told = served.ask("GET", f"{prefix}namespaces/crm/tables/{table}").json()
    found: dict[str, str] = told["metadata"]["properties"]
    return found


def test_config_names_every_endpoint_and_no_secret(serve: Serve) -> None:
    told = serve(files={"s3.endpoint": "http://127.0.0.1:9", "s3.secret-access-key": "hush"}).ask("GET", "config")
    assert "POST /v1/{prefix}/transactions/commit" in told.json()["endpoints"]
    assert "GET /v1/{prefix}/namespaces/{namespace}/views/{view}" in told.json()["endpoints"]
    assert told.json()["defaults"]["s3.endpoint"] == "http://127.0.0.1:9"
    assert "hush" not in told.text


def test_a_missing_table_is_refused_in_the_protocols_words(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    refused = served.ask("GET", LEADS)
    error = {"message": "Table does not exist: crm.leads", "type": "NoSuchTableException", "code": 404}
    assert (refused.status_code, refused.json()) == (404, {"error": error})
    assert served.ask("HEAD", LEADS).status_code == 404


def test_what_is_no_json_or_no_address_is_refused_and_not_an_accident(serve: Serve) -> None:
    served = serve()
    broken = requests.post(f"{served.url}/v1/namespaces", data=b"{", timeout=10)
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "BadRequestException")
    assert served.ask("POST", "namespaces", {"namespace": "crm"}).status_code == 400
    assert served.ask("POST", "namespaces", {"namespace": ["crm"], "properties": {"a": {}}}).status_code == 400
    assert served.ask("GET", "nothing/here").status_code == 404
    assert requests.get(f"{served.url}/", timeout=10).status_code == 404


@pytest.mark.usefixtures("table")
def test_updates_that_are_not_known_are_refused_and_change_nothing(served: Served) -> None:
    refused = served.ask("POST", LEADS, {"updates": [{"action": "add-encryption-key", "encryption-key": {}}]})
    assert refused.status_code == 400
    assert "add-encryption-key" in refused.text
    mixed = {"updates": [*set_property("a", "1")["updates"], {"action": "set-current-schema", "schema-id": 7}]}
    assert served.ask("POST", LEADS, mixed).status_code == 400
    assert "a" not in properties(served)


def test_a_new_table_is_made_as_the_lakes_own_are(served: Served, table: dict[str, Any]) -> None:
    assert table["metadata"]["properties"] == {"gc.enabled": "false", "write.parquet.compression-codec": "zstd"}
    other = make_table(served, "other", properties={"gc.enabled": "true"})
    assert other["metadata"]["properties"]["gc.enabled"] == "true"


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
    assert [each["name"] for each in whole["identifiers"]] == list("abcde")
    seen, token = [], ""
    for size in (2, 2, 1):
        page = served.ask("GET", f"namespaces/crm/tables?pageSize=2&pageToken={token}").json()
        assert len(page["identifiers"]) == size
        seen += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]
    assert (seen, token) == (list("abcde"), None)
    assert served.ask("GET", "namespaces?pageSize=x").status_code == 400


def test_a_table_that_did_not_change_is_not_sent_again(served: Served, table: dict[str, Any]) -> None:
    first = served.ask("GET", LEADS)
    assert first.json()["metadata"] == table["metadata"]
    again = served.ask("GET", LEADS, If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    served.ask("POST", LEADS, set_property("a", "1"))
    assert served.ask("GET", LEADS, If_None_Match=first.headers["ETag"]).status_code == 200


def test_a_staged_table_is_there_only_when_it_is_committed(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    staged = served.ask("POST", "namespaces/crm/tables", {"name": "leads", "schema": SCHEMA, "stage-create": True})
    metadata = staged.json()["metadata"]
    assert served.ask("HEAD", LEADS).status_code == 404
    commit = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "id"}]}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ],
    }
    made = served.ask("POST", LEADS, commit).json()["metadata"]
    assert made["table-uuid"] == metadata["table-uuid"]
    assert made["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert served.ask("POST", LEADS, commit).json()["error"]["type"] == "AlreadyExistsException"


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


def test_a_transaction_moves_all_tables_or_none(served: Served) -> None:
    tables = {name: make_table(served, name)["metadata"] for name in ("a", "b")}

    def transaction(value: str, uuid_of_b: str) -> requests.Response:
        changes = [
            {
                "identifier": {"namespace": ["crm"], "name": name},
                **set_property("p", value, {"type": "assert-table-uuid", "uuid": told}),
            }
            for name, told in (("a", tables["a"]["table-uuid"]), ("b", uuid_of_b))
        ]
        return served.ask("POST", "transactions/commit", {"table-changes": changes})

    def files() -> int:
        return len(list(Path(served.catalog.warehouse.removeprefix("file://")).rglob("*.metadata.json")))

    assert transaction("1", tables["b"]["table-uuid"]).status_code == 204
    assert files() == 4
    refused = transaction("2", str(uuid.uuid4()))
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "CommitFailedException")
    assert [properties(served, name)["p"] for name in "ab"] == ["1", "1"]
    assert files() == 4


def test_commits_that_still_fit_are_applied_again_until_all_are_in(served: Served) -> None:
    """Two tables in each transaction, eight clients, no retry of theirs: the server's own must suffice."""
    for name in "ab":
        make_table(served, name)
    refused: list[str] = []

    def work(number: int) -> None:
        for turn in range(3):
            key = f"{number}-{turn}"
            changes = [{"identifier": {"namespace": ["crm"], "name": name}, **set_property(key, "x")} for name in "ab"]
            answer = served.ask("POST", "transactions/commit", {"table-changes": changes})
            if answer.status_code != 204:
                refused.append(f"{answer.status_code} {answer.text}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = [{key for key, value in properties(served, name).items() if value == "x"} for name in "ab"]
    assert there[0] == there[1]
    assert len(there[0]) + len(refused) == 24
    assert all("times in the meantime" in told for told in refused)
    assert len(refused) <= 4, refused


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


@pytest.mark.usefixtures("table")
def test_a_prefix_is_a_branch(served: Served) -> None:
    served.catalog.create_branch("audit")
    assert served.ask("POST", f"audit/{LEADS}", set_property("seen", "yes")).status_code == 200
    assert properties(served, prefix="audit/")["seen"] == "yes"
    assert "seen" not in properties(served)
    assert served.ask("GET", f"main/{LEADS}").status_code == 200
    assert served.ask("GET", f"lost/{LEADS}").status_code == 404
    assert served.ask("GET", f"lake__dropped/{LEADS}").status_code == 404
    assert served.ask("GET", "config?warehouse=lake@audit").json()["overrides"] == {"prefix": "audit"}
    assert served.ask("GET", "config?warehouse=lake@lost").status_code == 404
    served.catalog.publish("audit")
    assert properties(served)["seen"] == "yes"


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
    assert [each["snapshot-id"] for each in known] == [1, 2]
    assert {each["key-id"] for each in known} == {"kept although no model knows it"}
    named = served.ask("GET", f"{LEADS}?snapshots=refs").json()["metadata"]
    assert [each["snapshot-id"] for each in named["snapshots"]] == [2]
    stale = {**known[1], "snapshot-id": 3, "parent-snapshot-id": 2}
    late = served.ask("POST", LEADS, {"updates": [{"action": "add-snapshot", "snapshot": stale}]})
    assert late.json()["error"]["type"] == "CommitFailedException"
    gone = {"updates": [{"action": "remove-snapshots", "snapshot-ids": [1, 99]}]}
    assert [each["snapshot-id"] for each in served.ask("POST", LEADS, gone).json()["metadata"]["snapshots"]] == [2]


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


def test_a_table_that_is_only_asked_about_holds_still_while_others_move(served: Served) -> None:
    asked, moved = (make_table(served, name) for name in ("asked", "moved"))
    told = {"type": "assert-table-uuid", "uuid": asked["metadata"]["table-uuid"]}
    changes = [
        {"identifier": {"namespace": ["crm"], "name": "asked"}, "requirements": [told], "updates": []},
        {"identifier": {"namespace": ["crm"], "name": "moved"}, **set_property("a", "1")},
    ]
    assert served.ask("POST", "transactions/commit", {"table-changes": changes}).status_code == 204
    pointers = Pointers(served.catalog.database)
    end = pointers.get(CATALOG, TableName("crm", "moved"))
    assert end != moved["metadata-location"]
    served.ask("POST", "namespaces/crm/tables/asked", set_property("b", "2"))
    held = Swap(TableName("crm", "asked"), asked["metadata-location"], asked["metadata-location"])
    assert not pointers.swap(CATALOG, [held, Swap(TableName("crm", "moved"), end, moved["metadata-location"])])
    assert pointers.get(CATALOG, TableName("crm", "moved")) == end


BROKEN: list[Any] = [
    {},
    {"name": "n"},
    {"name": "n", "schema": 5},
    {"name": "n", "schema": {"type": "struct", "fields": [{"id": 1}]}},
    {
        "name": "n",
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "variant", "required": True}]},
    },
    {"name": "n", "schema": SCHEMA, "partition-spec": {"fields": ["x"]}},
    {"name": "n", "schema": SCHEMA, "partition-spec": {"fields": [{"source-id": 9, "transform": "day", "name": "d"}]}},
    {"name": "n", "schema": SCHEMA, "write-order": {"order-id": 1, "fields": 3}},
    {"name": "n", "schema": SCHEMA, "properties": []},
    {"name": "n", "schema": SCHEMA, "properties": {"format-version": "nine"}},
    {"name": 5, "schema": SCHEMA},
    {"name": "n", "metadata-location": "file:///nowhere/at/all.metadata.json"},
    {"name": "n", "metadata-location": "nonsense://x"},
    {"updates": "x"},
    {"updates": [5]},
    {"updates": [{}]},
    {"updates": [{"action": "add-spec", "spec": {"fields": ["x"]}}]},
    {"updates": [{"action": "add-snapshot", "snapshot": {}}]},
    {"updates": [{"action": "set-statistics"}]},
    {"updates": [{"action": "remove-properties", "removals": None}]},
    {"updates": [{"action": "set-default-spec", "spec-id": -1}]},
    {"updates": [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}]},
    {"requirements": [{"type": "assert-nothing"}]},
    {"table-changes": [5]},
    {"table-changes": [{"identifier": {"namespace": "crm", "name": "leads"}}]},
    {"source": 1, "destination": 2},
    {"namespace": [1]},
    {"namespace": ["a\u0000b"]},
    {"namespace": ["x"], "properties": {"exists": "no"}},
    {"removals": "a"},
    {"removals": ["a"], "updates": {"a": "1"}},
]
ADDRESSES = [
    "namespaces",
    "namespaces/crm/properties",
    "namespaces/crm/tables",
    "namespaces/crm/register",
    "namespaces/crm/views",
    "namespaces/crm/register-view",
    LEADS,
    "tables/rename",
    "views/rename",
    "transactions/commit",
]
#: To commit nothing, and to change no property of a namespace, is not wrong.
HARMLESS = {LEADS, "namespaces/crm/properties"}


def test_whatever_is_wrong_with_a_request_is_its_senders_fault(serve: Serve) -> None:
    served = serve()
    make_table(served, "leads")
    for address in ADDRESSES:
        for body in BROKEN:
            answer = served.ask("POST", address, body)
            fine = address in HARMLESS and answer.status_code == 200
            assert fine or 400 <= answer.status_code < 500, f"{address} {body}: {answer.status_code} {answer.text}"
    assert served.ask("GET", LEADS).json()["metadata"]["metadata-log"] == []
