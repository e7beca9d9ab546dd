"""Import connections, datasets, charts and dashboards into a running Superset, through its API.

An import replaces our objects, which Superset marks as managed elsewhere, and no others: running it twice changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from http import HTTPStatus
from uuid import uuid4

from lakehouse.config.load import load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ServiceFailedError
from lakehouse.lake.backend import open_backend
from lakehouse.process.daemons import run_main
from lakehouse.process.http_client import HttpRequest, HttpResponse, NoAnswerError, send
from lakehouse.stack.model import StackContext
from lakehouse.stack.superset.assets import bundle, zipped
from lakehouse.stack.superset.connections import duckdb_statements, trino_address, trino_answers
from lakehouse.stack.superset.dashboards import DASHBOARDS

ADMIN = "admin"
_TIMEOUT_S = 120.0
_MAX_REASON = 600


def provision_stack(context: StackContext, progress: Callable[[str], object]) -> None:
    """Import what this lake has: DuckDB where it has a client for the catalog, Trino if it answers, dashboards whose tables exist."""
    address = f"http://{context.endpoints.host}:{context.settings.stack.superset_port}"
    client = SupersetClient(address, context.secrets.superset_admin_password)
    backend = open_backend(context.settings)
    # Trino reads tables in object stores, and no local files.
    is_readable = backend.is_remote and trino_answers(context.endpoints.trino_url)
    trino = trino_address(backend.settings) if is_readable else ""
    provision(client, context.settings, bool(duckdb_statements(context)), trino, progress)
    progress(f"superset  Sign in as {ADMIN}; the password: lake connect superset --show-secrets")


def provision(
    client: SupersetClient, settings: Settings, duckdb: bool, trino: str, progress: Callable[[str], object]
) -> None:
    """Import the connections that work, and the dashboards whose tables the lake has.

    Args:
        duckdb: whether Superset's DuckDB reads this lake.
        trino: the address of a Trino that answers; empty if none does.
    """
    existing = {str(table) for table in open_backend(settings).catalog.tables()} if duckdb else set()
    possible = [dashboard for dashboard in DASHBOARDS if existing.issuperset(dashboard.tables)]
    client.import_assets(zipped(bundle(possible, duckdb, trino)))
    for dashboard in possible:
        progress(f"superset  {dashboard.title}: {client.address}/superset/dashboard/{dashboard.slug}/")
    for dashboard in DASHBOARDS:
        if missing := [table for table in dashboard.tables if table not in existing and duckdb]:
            progress(f"superset  {dashboard.title}: after a run that makes {', '.join(missing)}, lake up superset")


@dataclass(frozen=True)
class SupersetClient:
    """The API of a Superset, as its user admin."""

    address: str
    password: str = field(repr=False)

    def import_assets(self, archive: bytes) -> None:
        """Import an archive of objects: all of them or none."""
        headers = self._sign_in()
        boundary = uuid4().hex
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="bundle"; filename="lakehouse.zip"\r\n\r\n'
        body = head.encode() + archive + f"\r\n--{boundary}--\r\n".encode()
        self._send("assets/import/", body, {**headers, "Content-Type": f"multipart/form-data; boundary={boundary}"})

    def _sign_in(self) -> dict[str, str]:
        """The headers of a session."""
        login = {"username": ADMIN, "password": self.password, "provider": "db"}
        answer = self._send("security/login", json.dumps(login).encode(), {"Content-Type": "application/json"})
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        answer = self._send("security/csrf_token/", None, headers)
        # The token against forged requests is good only with the session that it was made for.
        session = answer.headers.get("set-cookie", "").partition(";")[0]
        return {**headers, "X-CSRFToken": str(answer.json()["result"]), "Cookie": session, "Referer": self.address}

    def _send(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpResponse:
        method = "GET" if body is None else "POST"
        request = HttpRequest(f"{self.address}/api/v1/{path}", method, body, headers, _TIMEOUT_S, proxies=False)
        try:
            response = send(request)
        except NoAnswerError as exc:
            raise ServiceFailedError(f"Superset does not answer: {exc.reason}.", "lake logs superset") from exc
        if response.status == HTTPStatus.UNAUTHORIZED:
            raise ServiceFailedError(
                f"Superset does not accept the password of {ADMIN}.",
                "If you changed it there, name it: LAKE_STACK__SUPERSET_ADMIN_PASSWORD=… (stack.superset_admin_password)",
            )
        if response.status != HTTPStatus.OK:
            reason = response.body.decode(errors="replace")[:_MAX_REASON]
            raise ServiceFailedError(f"Superset refused {path} ({response.status}): {reason}", "lake logs superset")
        return response


def main() -> None:
    """Provision the Superset of the containers: its address and that of Trino are the arguments."""
    address, trino_url = sys.argv[1:]
    settings = load_settings({"trino.url": trino_url})
    client = SupersetClient(address, secrets_of(settings).superset_admin_password)
    trino = trino_address(resolve_profile(settings)) if trino_answers(trino_url) else ""
    sys.exit(run_main(lambda: provision(client, settings, True, trino, lambda line: sys.stdout.write(f"{line}\n"))))


if __name__ == "__main__":
    main()
