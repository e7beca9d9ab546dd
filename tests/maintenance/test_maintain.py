"""A maintenance leaves what is not its own alone, and goes on after a table that it cannot read."""

from __future__ import annotations

import json

import pytest
from tests.support.damaged_tables import FUTURE_DAYS, T, append, catalog_of, create, damaged, data_files, maintainer

from lakehouse.core.errors import BadNameError
from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake


def test_a_branch_that_a_user_named_like_those_of_maintenance_stays(lake: Lake) -> None:
    catalog = catalog_of(lake)
    catalog.create_branch("maintain_mine")
    maintainer(lake, FUTURE_DAYS).run(MaintainRequest())
    assert [ref.name for ref in catalog.branch_refs()] == ["maintain_mine"]


@pytest.mark.parametrize("name", ["maintain_mine", "Ingest_mine", "run_mine"])
def test_users_cannot_take_the_names_of_the_lakes_own_branches(lake: Lake, name: str) -> None:
    with pytest.raises(BadNameError, match="reserved"):
        lake.refs.branches.create(name)


def test_one_damaged_table_does_not_end_the_maintenance_of_the_others(lake: Lake) -> None:
    damaged(lake)
    create(lake, "shop.broken")
    append(lake, [1], table="shop.broken")
    catalog = catalog_of(lake)
    pointer = local_path(catalog.pointer(TableName("shop", "broken")) or "")
    metadata = json.loads(pointer.read_text())
    metadata["partition-specs"] = "damaged"
    pointer.write_text(json.dumps(metadata))
    before = len(data_files(lake))
    actions = lake.maintain().actions
    assert "failed" in {action.state for action in actions if action.table == "shop.broken"}
    assert "done" in {action.state for action in actions if action.table == T}
    assert len(data_files(lake)) < before
