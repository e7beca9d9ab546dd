"""Which services there are, and in which order they start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse.config.settings import Settings
from lakehouse.config.stack import StackSettings
from lakehouse.core.errors import NoSuchServiceError
from lakehouse.stack.services import NAMES, find_service, in_order, services


def names(*requested: str, external: tuple[str, ...] = ()) -> list[str]:
    return [service.name for service in in_order(requested, external)]


def test_a_service_starts_after_what_it_needs() -> None:
    assert names("trino") == ["storage", "postgres", "rest", "trino"]
    assert names("trino", "nessie") == ["storage", "postgres", "nessie", "rest", "trino"]
    assert names("postgres") == ["postgres"]


def test_every_service_stands_after_what_it_needs_in_the_list() -> None:
    for service in services():
        assert all(NAMES.index(needed) < NAMES.index(service.name) for needed in service.needs)


def test_what_runs_elsewhere_is_not_started_for_others() -> None:
    assert names("trino", external=("postgres",)) == ["storage", "rest", "trino"]


def test_the_rest_catalog_of_an_embedded_lake_needs_no_other_server() -> None:
    assert [service.name for service in in_order(["rest"], profile="embedded")] == ["rest"]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(NoSuchServiceError) as raised:
        in_order(["trinno"])
    assert "Did you mean trino?" in raised.value.hint
    assert raised.value.is_user_error


def test_the_page_on_the_stack_says_what_the_descriptions_say() -> None:
    page = (Path(__file__).parents[2] / "docs" / "stack.md").read_text()
    for service in services():
        (row,) = re.findall(rf"^\| `{service.name}` \|.*$", page, re.MULTILINE)
        cells = [cell.strip() for cell in row.split("|")]
        assert cells[3] == service.version
        assert cells[4] == ", ".join(service.needs)
        assert str(service.ports[0].number(Settings())) in cells[5]
        assert cells[6] == (str(service.memory_mb) if service.process else "containers only")


def test_every_description_is_complete() -> None:
    known = {*StackSettings.__dataclass_fields__, "serve.port"}
    for service in services():
        assert service.name == find_service(service.name).name
        assert service.about and service.version and service.licence
        assert service.ports and all(port.setting in known and port.inside for port in service.ports)
        assert service.process or service.container
        assert service.process is None or service.memory_mb > 0
