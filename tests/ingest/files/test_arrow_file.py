"""Arrow files (Feather), as `lake export` and other programs write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.core.errors import DamagedFileError, NotSupportedError

Reader = Callable[..., Any]
AT = datetime(2026, 1, 14, 9, 30)
BATCH = pa.record_batch(
    {
        "Id": pa.array([1, 2], "uint32"),
        "City": pa.array(["Rom", None]).dictionary_encode(),
        "at": pa.array([AT, AT], pa.timestamp("ns")),
        "tags": pa.array([[{"k": "a"}], []]),
    }
)


def arrow_file(*batches: pa.RecordBatch, schema: pa.Schema = BATCH.schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("name", ["a.arrow", "a.feather", "a.csv"])
def test_an_arrow_file_is_read_with_its_types_whatever_its_name(read: Reader, name: str) -> None:
    result = read(arrow_file(BATCH, BATCH), name)
    assert result.types == {
        "id": "bigint",
        "city": "string",
        "at": "timestamp_ntz",
        "tags": "array<struct<k:string>>",
    }
    assert result.rows == [(1, "Rom", AT, [{"k": "a"}]), (2, None, AT, [])] * 2


def test_an_arrow_file_without_batches_has_columns_and_no_rows(read: Reader) -> None:
    result = read(arrow_file(), "a.arrow")
    assert (list(result.types), result.rows) == (["id", "city", "at", "tags"], [])


def test_a_truncated_arrow_file_says_so(read: Reader) -> None:
    with pytest.raises(DamagedFileError, match="cannot be read"):
        read(arrow_file(BATCH)[:-200], "a.arrow")


def test_a_type_that_no_table_has_is_refused(read: Reader) -> None:
    schema = pa.schema([("m", pa.month_day_nano_interval())])
    with pytest.raises(DamagedFileError, match="cannot be read"):
        read(arrow_file(schema=schema), "a.arrow")


def test_a_compressed_arrow_file_is_refused(read: Reader) -> None:
    import gzip

    with pytest.raises(NotSupportedError, match="inside gzip"):
        read(gzip.compress(arrow_file(BATCH)), "a.arrow.gz")
