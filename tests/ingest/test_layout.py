"""Partitioning and sort order: validation, and what happens when one of their columns changes its type."""

from __future__ import annotations

import re

import pytest

from lakehouse.core.errors import BadSettingError, LakeError, NoSuchColumnError, NotSupportedError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.tables import TableInfo
from lakehouse.ingest.layout import (
    LayoutField,
    check_layout,
    drop_statements,
    incompatible_fields,
    quoted_layout,
    restore_statements,
)

LEADS = TableName("crm", "leads")


def info(partitioning: tuple[str, ...] = (), sorting: tuple[str, ...] = (), distribution: str = "range") -> TableInfo:
    properties = {"write.distribution-mode": distribution}
    return TableInfo(LEADS, "iceberg", "", (), partitioning, sorting, properties=properties)


@pytest.mark.parametrize(
    ("text", "field", "written"),
    [
        ("k", LayoutField("k"), "`k`"),
        ("days(ts)", LayoutField("ts", "days"), "days(`ts`)"),
        ("bucket(16, id)", LayoutField("id", "bucket", "16"), "bucket(16, `id`)"),
        ("k DESC NULLS LAST", LayoutField("k", order=" DESC NULLS LAST"), "`k` DESC NULLS LAST"),
        ("truncate(4, k) ASC NULLS FIRST", LayoutField("k", "truncate", "4", " ASC NULLS FIRST"), None),
    ],
)
def test_a_field_is_parsed_as_describe_prints_it(text: str, field: LayoutField, written: str | None) -> None:
    assert LayoutField.parse(text) == field
    assert str(field) == written or written is None


@pytest.mark.parametrize(
    ("text", "kind", "stays"),
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
def test_a_field_stays_where_the_new_type_allows_it(text: str, kind: str, stays: bool) -> None:
    assert incompatible_fields([text], {"k": kind}) == (() if stays else (text,))


def test_only_affected_fields_are_dropped_and_restored() -> None:
    table = info(("days(ts)", "bucket(4, k)"), ("id ASC NULLS FIRST", "k DESC NULLS LAST"))
    assert list(drop_statements(LEADS, table, {"k": "string"})) == [
        "ALTER TABLE `crm`.`leads` DROP PARTITION FIELD bucket(4, `k`)",
        "ALTER TABLE `crm`.`leads` WRITE UNORDERED",
    ]
    assert list(restore_statements(LEADS, table, {"k": "string"})) == [
        "ALTER TABLE `crm`.`leads` ADD PARTITION FIELD bucket(4, `k`)",
        "ALTER TABLE `crm`.`leads` WRITE ORDERED BY `id` ASC NULLS FIRST, `k` DESC NULLS LAST",
    ]
    assert not list(drop_statements(LEADS, table, {"note": "string"})) and not list(
        restore_statements(LEADS, table, {"note": "string"})
    )


@pytest.mark.parametrize(
    ("distribution", "word"),
    [("range", "WRITE ORDERED"), ("hash", "BY PARTITION ORDERED"), ("none", "LOCALLY ORDERED")],
)
def test_rows_are_distributed_as_before(distribution: str, word: str) -> None:
    (statement,) = restore_statements(
        LEADS, info(sorting=("k ASC NULLS FIRST",), distribution=distribution), {"k": "string"}
    )
    assert word in statement


@pytest.mark.parametrize(
    "fields",
    ["", "k", "days(ts), bucket(16, id)", "Days( `ts` )", "truncate(k, 3)", "id DESC NULLS LAST, bucket(4, k) asc"],
)
def test_a_layout_of_known_columns_and_transforms_is_valid(fields: str) -> None:
    check_layout("--partition-by", fields, ["id", "k", "ts"])


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ("days(nope)", NoSuchColumnError, "There is no column nope"),
        ("k, nope", NoSuchColumnError, "There is no column nope"),
        ("weeks(ts)", UnknownChoiceError, "'weeks'"),
        ("days(ts", BadSettingError, "Invalid field in --partition-by: 'days(ts'"),
        ("k desk", BadSettingError, "Invalid field in --partition-by: 'k desk'"),
    ],
)
def test_a_layout_of_something_else_is_a_user_error(fields: str, error: type[LakeError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        check_layout("--partition-by", fields, ["id", "k", "ts"])
    assert caught.value.is_user_error


def test_columns_of_a_requested_layout_are_quoted() -> None:
    assert (
        quoted_layout("bucket(16, id), größe DESC NULLS LAST,`k`") == "bucket(16, `id`), `größe` DESC NULLS LAST, `k`"
    )


def test_a_partition_whose_name_duckdb_cannot_read_is_refused() -> None:
    check_layout("--sort-by", "größe", ["größe"])
    with pytest.raises(NotSupportedError, match="größe"):
        check_layout("--partition-by", "bucket(4, größe)", ["größe"])
