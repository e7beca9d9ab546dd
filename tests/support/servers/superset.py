"""A running Superset for tests: whether it is installed, and its API.

Its tests run where Superset is installed (`lake stack fetch superset`, 1 GB) and with TEST_SUPERSET=1, which installs it (`make test-all`).
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import requests

from lakehouse.config.load import load_settings
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.lake.assemble import assemble
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.services.superset import PACKAGES

_IS_INSTALLED = artifact_path(load_settings(), PACKAGES).is_dir()
NEEDS_SUPERSET = [
    pytest.mark.servers,
    pytest.mark.slow,
    pytest.mark.skipif(
        not _IS_INSTALLED and not os.environ.get("TEST_SUPERSET"),
        reason="Superset is not installed (1 GB): lake stack fetch superset, or make test-all",
    ),
]


def address(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.stack.superset_port}"


class Api:
    """Superset's API for the questions of these tests."""

    def __init__(self, settings: Settings) -> None:
        self.address, self.session = address(settings), requests.Session()
        login = {"username": "admin", "password": secrets_of(settings).superset_admin_password, "provider": "db"}
        token = self.session.post(f"{self.address}/api/v1/security/login", json=login, timeout=60).json()[
            "access_token"
        ]
        self.session.headers["Authorization"] = f"Bearer {token}"
        csrf = self.session.get(f"{self.address}/api/v1/security/csrf_token/", timeout=60).json()["result"]
        self.session.headers.update({"X-CSRFToken": csrf, "Referer": self.address})

    def objects(self, kind: str) -> dict[str, int]:
        listed = self.session.get(f"{self.address}/api/v1/{kind}/?q=(page_size:100)", timeout=60).json()["result"]
        names = ("database_name", "table_name", "slice_name", "dashboard_title")
        return {next(entry[name] for name in names if name in entry): entry["id"] for entry in listed}

    def post(self, path: str, **body: Any) -> requests.Response:
        return self.session.post(f"{self.address}/api/v1/{path}", json=body, timeout=120)

    def sql(self, statement: str, database: str = "Lake") -> requests.Response:
        """Run a statement in SQL Lab."""
        id = self.objects("database")[database]
        return self.post("sqllab/execute/", database_id=id, sql=statement, runAsync=False, queryLimit=100)


def one_number(settings: Settings, statement: str) -> Any:
    with assemble(settings) as lake:
        return lake.sql(statement).rows()[0][0]
