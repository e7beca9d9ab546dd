"""Requests that are wrong: told so in the protocol's words, and nothing changes."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from tests.support.rest_changes import HARMLESS, LEADS, properties, set_property
from tests.support.servers.rest_catalog import SCHEMA, Serve, Served, make_table


def test_a_missing_table_is_refused_in_the_protocols_words(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    refused = served.ask("GET", LEADS)
    error = {"message": "Table does not exist: crm.leads", "type": "NoSuchTableException", "code": 404}
    assert (refused.status_code, refused.json()) == (404, {"error": error})
    assert served.ask("HEAD", LEADS).status_code == 404


def test_what_is_no_json_or_no_address_is_refused_and_not_an_accident(serve: Serve) -> None:
    served = serve()
    headers = {"Authorization": f"Bearer {served.token}"}
    broken = requests.post(f"{served.url}/v1/namespaces", data=b"{", headers=headers, timeout=60)
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "BadRequestException")
    assert served.ask("POST", "namespaces", {"namespace": "crm"}).status_code == 400
    assert served.ask("POST", "namespaces", {"namespace": ["crm"], "properties": {"a": {}}}).status_code == 400
    assert served.ask("GET", "nothing/here").status_code == 404
    assert requests.get(f"{served.url}/", headers=headers, timeout=60).status_code == 404


@pytest.mark.usefixtures("table")
def test_updates_that_are_not_known_are_refused_and_change_nothing(served: Served) -> None:
    refused = served.ask("POST", LEADS, {"updates": [{"action": "add-encryption-key", "encryption-key": {}}]})
    assert refused.status_code == 400
    assert "add-encryption-key" in refused.text
    mixed = {"updates": [*set_property("a", "1")["updates"], {"action": "set-current-schema", "schema-id": 7}]}
    assert served.ask("POST", LEADS, mixed).status_code == 400
    assert "a" not in properties(served)


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


def test_whatever_is_wrong_with_a_request_is_its_senders_fault(serve: Serve) -> None:
    served = serve()
    make_table(served, "leads")
    for address in ADDRESSES:
        for body in BROKEN:
            answer = served.ask("POST", address, body)
            fine = address in HARMLESS and answer.status_code == 200
            assert fine or 400 <= answer.status_code < 500, f"{address} {body}: {answer.status_code} {answer.text}"
    assert served.ask("GET", LEADS).json()["metadata"]["metadata-log"] == []
