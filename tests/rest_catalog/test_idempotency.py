"""`Idempotency-Key`: sent twice, done once."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from tests.support.servers.rest_catalog import SCHEMA, Served, make_table

from lakehouse.core.idempotency import IdempotencyStore, KeyedRequest, store_answer
from lakehouse.core.names import CATALOG
from lakehouse.rest_catalog.backend import CatalogBackend
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse, TransactionHook
from lakehouse.rest_catalog.metadata_files import MetadataFiles
from lakehouse.rest_catalog.pointers import Namespaces, Pointers
from lakehouse.rest_catalog.routes import find, routes

LEADS = "namespaces/crm/tables/leads"


def creation(name: str = "leads") -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA}


def test_the_same_request_gets_the_same_answer(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    key = str(uuid.uuid4())
    first = served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key)
    again = served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert served.ask("POST", "namespaces/crm/tables", creation()).status_code == 409


def test_a_refusal_is_an_answer_too(served: Served) -> None:
    key = str(uuid.uuid4())
    first = served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key)
    assert first.status_code == 404
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    again = served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key)
    assert (again.status_code, again.json()) == (404, first.json())


def test_another_request_under_the_same_key_is_refused(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    key = str(uuid.uuid4())
    served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key)
    other = served.ask("POST", "namespaces/crm/tables", creation("other"), Idempotency_Key=key)
    assert (other.status_code, other.json()["error"]["type"]) == (422, "UnprocessableEntityException")
    assert served.ask("HEAD", "namespaces/crm/tables/other").status_code == 404


def test_a_drop_sent_twice_does_not_drop_what_was_made_in_between(served: Served) -> None:
    make_table(served, "leads")
    key = str(uuid.uuid4())
    assert served.ask("DELETE", LEADS, Idempotency_Key=key).status_code == 204
    make_table(served, "leads")
    assert served.ask("DELETE", LEADS, Idempotency_Key=key).status_code == 204
    assert served.ask("HEAD", LEADS).status_code == 204


def test_those_that_come_at_once_are_one(served: Served) -> None:
    served.ask("POST", "namespaces", {"namespace": ["crm"]})
    key, responses = str(uuid.uuid4()), []

    def send() -> None:
        responses.append(served.ask("POST", "namespaces/crm/tables", creation(), Idempotency_Key=key))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["metadata-location"] for response in responses}) == 1


def test_every_change_writes_its_response_itself(served: Served) -> None:
    """Done without the server around it, as if that died right after the change."""
    database = served.catalog.database
    backend = CatalogBackend(served.catalog, Pointers(database), Namespaces(database), MetadataFiles({}))
    known = routes(backend, lambda call: CatalogResponse())
    store = IdempotencyStore(database)

    def done(method: str, path: str, body: dict[str, Any]) -> CatalogResponse:
        match = find(known, method, path.split("/"))
        assert match is not None
        key = f"{method} {path} {sorted(body)}"
        assert store.claim(key, "f", never) is None

        def stored(response: CatalogResponse) -> TransactionHook:
            return lambda db: store_answer(db, key, "f", response.status, response.to_json())

        response = match[0].handler(CatalogRequest(CATALOG, match[1], {}, body, stored))
        earlier = store.claim(key, "f", never)
        assert earlier is not None
        assert (earlier.status, earlier.answer) == (response.status, response.to_json())
        return response

    leads = {"namespace": ["crm"], "name": "leads"}
    prospects = {"namespace": ["crm"], "name": "prospects"}
    change = {"updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    again = {"updates": [{"action": "set-properties", "updates": {"a": "2"}}]}
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["crm"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    done("POST", "namespaces", {"namespace": ["crm"]})
    done("POST", "namespaces/crm/properties", {"updates": {"a": "1"}})
    made = done("POST", "namespaces/crm/tables", creation())
    done("POST", LEADS, change)
    done("POST", "transactions/commit", {"table-changes": [{"identifier": leads, **again}]})
    done("POST", "tables/rename", {"source": leads, "destination": prospects})
    done("POST", "namespaces/crm/register", {"name": "copy", "metadata-location": made.metadata})
    view = done("POST", "namespaces/crm/views", {"name": "v", "schema": SCHEMA, "view-version": version})
    done("POST", "namespaces/crm/views/v", change)
    done("POST", "namespaces/crm/register-view", {"name": "w", "metadata-location": view.metadata})
    done("POST", "views/rename", {"source": {**leads, "name": "w"}, "destination": {**leads, "name": "x"}})
    done("DELETE", "namespaces/crm/views/x", {})
    done("POST", "namespaces", {"namespace": ["empty"], "properties": {}})
    done("DELETE", "namespaces/empty", {})


def never(request: KeyedRequest) -> bool:
    return False
