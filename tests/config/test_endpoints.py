"""The endpoints of a stack: passwords are generated once, only their owner reads them, and each has a setting."""

from __future__ import annotations

import json
import stat
from dataclasses import fields
from pathlib import Path

import pytest

from lakehouse.config.endpoints import endpoints_of
from lakehouse.config.load import load_settings
from lakehouse.config.secrets import FILE, Secrets
from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError


def settings(home: Path, **changed: object) -> Settings:
    return load_settings({"home": home, **{f"stack.{name}": value for name, value in changed.items()}}, environ={})


def test_passwords_are_generated_once_and_only_their_owner_reads_them(home: Path) -> None:
    first = endpoints_of(settings(home))
    assert endpoints_of(settings(home)) == first
    stored = json.loads((home / FILE).read_text())
    assert len(set(stored.values())) == len(fields(Secrets)) and all(len(value) >= 20 for value in stored.values())
    assert stat.S_IMODE((home / FILE).stat().st_mode) == 0o600


def test_two_lakes_have_different_passwords(tmp_path: Path) -> None:
    one, other = (endpoints_of(settings(tmp_path / name)) for name in ("one", "other"))
    assert one.databases["lake"].password != other.databases["lake"].password


def test_a_password_that_is_set_replaces_the_generated_one(home: Path) -> None:
    endpoints_of(settings(home))
    assert endpoints_of(settings(home, lake_password="mine")).databases["lake"].password == "mine"


def test_what_is_in_a_password_does_not_break_an_address(home: Path) -> None:
    from urllib.parse import unquote, urlsplit

    address = urlsplit(endpoints_of(settings(home, lake_password="p@ss/w:rd?")).databases["lake"].url)
    assert (unquote(address.password or ""), address.hostname, address.port) == ("p@ss/w:rd?", "127.0.0.1", 5433)


def test_no_secret_is_printed(home: Path) -> None:
    endpoints = endpoints_of(settings(home))
    for secret in (endpoints.s3_secret_key, *(database.password for database in endpoints.databases.values())):
        assert secret not in repr(endpoints)
        assert secret not in repr(settings(home, oltp_password=secret))


def test_a_broken_file_of_passwords_is_not_replaced(home: Path) -> None:
    endpoints_of(settings(home))
    (home / FILE).write_text("{half")
    with pytest.raises(BadSettingError, match=r"secrets\.json"):
        endpoints_of(settings(home))
    assert (home / FILE).read_text() == "{half"


def test_a_server_of_ones_own_is_found_where_the_settings_say(home: Path) -> None:
    endpoints = endpoints_of(settings(home, postgres_host="db.example", storage_host="s3.example", storage_port=9999))
    assert endpoints.databases["lake"].jdbc_url == "jdbc:postgresql://db.example:5433/lake"
    assert endpoints.s3_endpoint == "http://s3.example:9999"
    assert endpoints.trino_url == "http://127.0.0.1:8085"
    assert settings(home, postgres_host="db.example").stack.external_services() == {"postgres"}


def test_servers_that_listen_everywhere_are_found_on_this_machine(home: Path) -> None:
    assert endpoints_of(settings(home, host="0.0.0.0")).nessie_uri == "http://127.0.0.1:19120/api/v2"
