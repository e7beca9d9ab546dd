"""A lake that moves to a Hive Metastore, which has tables of others and no branches."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.servers.stack import Stack
from tests.support.small_lake import killed_right_before_its_end, opened

from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import TableName

pytestmark = [pytest.mark.slow, pytest.mark.stretch("hive")]


def test_a_lake_moves_to_a_metastore_with_its_branches_beside_it(stack: Stack, namespace: str, tmp_path: Path) -> None:
    facts = stack.need("hive")
    own = stack.settings.stack
    settings = {
        "stack__storage_port": own.storage_port,
        "stack__hive_port": own.hive_port,
        "stack__access_key": facts.s3_access_key,
        "stack__secret_key": facts.s3_secret_key,
    }
    orders, gone = TableName(namespace, "orders"), TableName(namespace, "gone")
    with opened(tmp_path / "lake", **settings) as small:
        for table in (orders, gone):
            small.make(str(table))
            small.add(str(table), 1, 2)
        small.lake.drop(str(gone))
        small.catalog.create_tag("v1")
        small.catalog.create_branch("exp")
        small.add(str(orders), 3, branch="exp")
        assert small.lake.migrate("hive").notes == ()
        assert small.lake.migrate("hive").written == 0
        killed_right_before_its_end(tmp_path / "lake", "hive")
        assert small.lake.migrate("hive").notes == ()
    with opened(tmp_path / "lake", profile="hive", **settings) as there:
        assert there.ids(str(orders)) == [1, 2]
        assert there.ids(str(orders), "exp") == [1, 2, 3]
        assert [tag.name for tag in there.catalog.tags()] == ["v1"]
        assert there.catalog.publish("exp")
        assert there.ids(str(orders)) == [1, 2, 3]
        there.lake.undrop(str(gone))
        assert there.ids(str(gone)) == [1, 2]
    with opened(tmp_path / "other", **settings) as other:
        other.make(str(orders))
        with pytest.raises(TableExistsError, match="orders"):
            other.lake.migrate("hive")
