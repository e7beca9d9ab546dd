"""The shape of a statement in `lake log`: names, and no values."""

from __future__ import annotations

import pytest

from lakehouse.query.statement_log import statement_shape


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        pytest.param("INSERT INTO crm.t VALUES (4711, 'Ann')", "INSERT INTO crm.t VALUES (…, '…')", id="values"),
        pytest.param("delete from t2 where a1 = -3.5e7", "delete from t2 where a1 = -…", id="digits in names stay"),
        pytest.param("update `2020`.`t 1` set a=.5, b=10L", "update `2020`.`t 1` set a=…, b=…", id="quoted names"),
        pytest.param("delete from t -- of 4711\nwhere a=1", "delete from t where a=…", id="comments"),
        pytest.param("delete /* it's 4711 */ from t", "delete from t", id="a quote in a comment"),
        pytest.param("delete from t where a = 'x -- 1' and b=2", "delete from t where a = '…' and b=…", id="a comment in text"),
        pytest.param("delete from t where a = X'4711'", "delete from t where a = X'…'", id="binary"),
        pytest.param("delete from t where a = 'it\\'s 4711'", "delete from t where a = '…'", id="escaped quote"),
        pytest.param("delete from t where a = 0x4711", "delete from t where a = …", id="hexadecimal"),
    ],
)  # fmt: skip
def test_values_and_comments_are_not_in_the_shape(sql: str, shape: str) -> None:
    assert statement_shape(sql) == shape


def test_a_long_statement_is_cut() -> None:
    assert len(statement_shape("select " + "a, " * 500)) == 301
