"""Commits over the protocol: of one table, of several at once, on a branch; all of it or nothing."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support.rest_changes import LEADS, properties, set_property
from tests.support.servers.rest_catalog import SCHEMA, Served, make_table

from lakehouse.core.names import CATALOG, TableName
from lakehouse.rest_catalog.pointers import Pointers, Swap


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
    assert all("times meanwhile" in told for told in refused)
    assert len(refused) <= 4, refused


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
