"""What happens to partitioning and sort order when a column they are made of changes its type."""

from __future__ import annotations

import pytest

from lakehouse.core.names import TableName
from lakehouse.core.tables import TableInfo
from lakehouse.ingest.layout import Field, lost, put_back, taken_off

LEADS = TableName("crm", "leads")


def info(partitioning: tuple[str, ...] = (), sorting: tuple[str, ...] = (), distribution: str = "range") -> TableInfo:
    properties = {"write.distribution-mode": distribution}
    return TableInfo(LEADS, "iceberg", "", (), partitioning, sorting, properties=properties)


@pytest.mark.parametrize(
    ("told", "field", "written"),
    [
        ("k", Field("k"), "`k`"),
        ("days(ts)", Field("ts", "days"), "days(`ts`)"),
        ("bucket(16, id)", Field("id", "bucket", "16"), "bucket(16, `id`)"),
        ("k DESC NULLS LAST", Field("k", order=" DESC NULLS LAST"), "`k` DESC NULLS LAST"),
        ("truncate(4, k) ASC NULLS FIRST", Field("k", "truncate", "4", " ASC NULLS FIRST"), None),
    ],
)
def test_a_field_is_read_from_the_words_of_describe(told: str, field: Field, written: str | None) -> None:
    assert Field.read(told) == field
    assert str(field) == written or written is None


@pytest.mark.parametrize(
    ("told", "kind", "stays"),
    [
        ("k", "string", True),
        ("bucket(4, k)", "string", True),
        ("truncate(4, k)", "string", True),
        ("truncate(4, k)", "decimal(12,3)", True),
        ("bucket(4, k)", "double", False),
        ("days(k)", "string", False),
        ("hours(k)", "date", False),
        ("days(k)", "timestamp", True),
        ("days(other)", "string", True),
    ],
)
def test_a_field_stays_where_the_new_type_allows_it(told: str, kind: str, stays: bool) -> None:
    assert lost([told], {"k": kind}) == (() if stays else (told,))


def test_only_what_is_touched_is_taken_off_and_put_back() -> None:
    table = info(("days(ts)", "bucket(4, k)"), ("id ASC NULLS FIRST", "k DESC NULLS LAST"))
    assert list(taken_off(LEADS, table, {"k": "string"})) == [
        "ALTER TABLE crm.leads DROP PARTITION FIELD bucket(4, `k`)",
        "ALTER TABLE crm.leads WRITE UNORDERED",
    ]
    assert list(put_back(LEADS, table, {"k": "string"})) == [
        "ALTER TABLE crm.leads ADD PARTITION FIELD bucket(4, `k`)",
        "ALTER TABLE crm.leads WRITE ORDERED BY `id` ASC NULLS FIRST, `k` DESC NULLS LAST",
    ]
    assert not list(taken_off(LEADS, table, {"note": "string"})) and not list(
        put_back(LEADS, table, {"note": "string"})
    )


@pytest.mark.parametrize(
    ("distribution", "word"),
    [("range", "WRITE ORDERED"), ("hash", "BY PARTITION ORDERED"), ("none", "LOCALLY ORDERED")],
)
def test_rows_are_distributed_as_before(distribution: str, word: str) -> None:
    (told,) = put_back(LEADS, info(sorting=("k ASC NULLS FIRST",), distribution=distribution), {"k": "string"})
    assert word in told
