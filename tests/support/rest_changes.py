"""Small changes to ask for over the protocol, and what came of them."""

from __future__ import annotations

from typing import Any

from tests.support.servers.rest_catalog import Served

LEADS = "namespaces/crm/tables/leads"
#: To commit nothing, and to change no property of a namespace, is not wrong.
HARMLESS = {LEADS, "namespaces/crm/properties"}


def set_property(key: str, value: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": list(requirements), "updates": [{"action": "set-properties", "updates": {key: value}}]}


def properties(served: Served, table: str = "leads", prefix: str = "") -> dict[str, str]:
    told = served.ask("GET", f"{prefix}namespaces/crm/tables/{table}").json()
    entries: dict[str, str] = told["metadata"]["properties"]
    return entries
