"""Files are what their bytes say, plain or packed; the wrong ones are refused by name."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from lakehouse.core.errors import NotSupportedError
from lakehouse.ingest.files import discover, plan_files
from lakehouse.ingest.files.errors import (
    BinaryFileError,
    DamagedFileError,
    EmptyFileError,
    JsonArrayError,
    NulBytesError,
)

CSV = b"id,name\n1,ann\n2,bob\n"
ROWS = [(1, "ann"), (2, "bob")]
Reader = Callable[..., Any]


def zstd(data: bytes) -> bytes:
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.tsv", CSV.replace(b",", b"\t")),
        ("a.csv.gz", gzip.compress(CSV)),
        ("a.csv.gz", gzip.compress(CSV[:10]) + gzip.compress(CSV[10:])),
        ("a.csv.bz2", bz2.compress(CSV)),
        ("a.csv.zst", zstd(CSV)),
        ("a.jsonl", b'{"id": 1, "name": "ann"}\n{"name": "bob", "id": 2}\n'),
        ("a.ndjson.gz", gzip.compress(b'{"id": 1, "name": "ann"}\n\n{"name": "bob", "id": 2}')),
    ],
    ids=["csv", "tsv", "gzip", "gzip of two parts", "bzip2", "zstd", "json lines", "packed json lines"],
)
def test_a_file_is_read_whatever_it_is_packed_in(read: Reader, name: str, content: bytes) -> None:
    told = read(content, name)
    assert told.rows == ROWS
    assert told.plan.notes == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", gzip.compress(CSV)), ("a.csv.gz", CSV), ("a.csv.gz", bz2.compress(CSV))],
    ids=["gzip named .csv", "plain named .gz", "bzip2 named .gz"],
)
def test_a_wrong_name_does_not_matter_and_is_noted(read: Reader, name: str, content: bytes) -> None:
    told = read(content, name)
    assert told.rows == ROWS
    assert "name says" in told.plan.notes[0]


def test_a_parquet_file_named_csv_is_read_as_parquet_and_noted(read: Reader, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"Id": [1, 2], "Name": ["ann", "bob"]}), tmp_path / "real.parquet")
    told = read((tmp_path / "real.parquet").read_bytes(), "liar.csv")
    assert told.rows == ROWS
    assert told.types == {"id": "bigint", "name": "string"}
    assert "PARQUET" in told.plan.notes[0]


def test_json_lines_named_csv_are_read_as_json(read: Reader) -> None:
    told = read(b'{"id": 1, "name": "ann"}\n{"id": 2, "name": "bob"}\n', "liar.csv")
    assert told.rows == ROWS


def refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    plan_files(discover([str(tmp_path / name)]))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "packed"])
def test_an_empty_file_says_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(EmptyFileError, match="empty"):
        refused(tmp_path, "a.csv", content)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_file_of_blank_lines_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmptyFileError, match="blank"):
        refused(tmp_path, name, b"\n\n  \n" if name == "a.json" else b"\n\n\n")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd], ids=["gzip", "bzip2", "zstd"])
def test_a_cut_off_file_says_so(read: Reader, pack: Callable[[bytes], bytes]) -> None:
    data = b"id,name\n" + b"".join(
        f"{n},{hashlib.sha256(str(n).encode()).hexdigest()}\n".encode() for n in range(30_000)
    )
    packed = pack(data)
    with pytest.raises(DamagedFileError, match="cut off|damaged") as told:
        read(packed[: len(packed) * 2 // 3], "a.csv.gz")
    assert told.value.file.endswith("a.csv.gz")


def test_a_gzip_with_broken_bytes_says_so(read: Reader) -> None:
    packed = bytearray(gzip.compress(CSV * 1000))
    packed[-8] ^= 0xFF  # its checksum
    with pytest.raises(DamagedFileError, match="damaged"):
        read(bytes(packed), "a.csv.gz")


def test_a_broken_parquet_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="cannot be read"):
        refused(tmp_path, "a.parquet", b"PAR1" + b"x" * 100)


def test_an_excel_workbook_is_told_to_become_csv(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as book:
        book.writestr("sheet.xml", "x")
    with pytest.raises(BinaryFileError, match="Excel") as told:
        plan_files(discover([str(tmp_path / "book.xlsx")]))
    assert "CSV" in told.value.hint


def test_binary_garbage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BinaryFileError, match="neither text nor Parquet"):
        refused(tmp_path, "a.csv", random.Random(3).randbytes(5000))


def test_a_header_that_begins_like_a_magic_number_is_still_csv(read: Reader) -> None:
    assert read("ORC,x\n1,2\n").rows == [(1, 2)]


@pytest.mark.parametrize("at", [20, 3_000_000], ids=["early", "late"])
def test_nul_bytes_are_refused_with_their_line(read: Reader, at: int) -> None:
    content = bytearray(b"id,name\n" + b"1,a\n" * 1_000_000)
    content[at] = 0
    with pytest.raises(NulBytesError, match="NUL") as told:
        read(bytes(content))
    assert told.value.line == content[:at].count(b"\n") + 1


def test_a_json_array_says_how_to_make_lines_of_it(tmp_path: Path) -> None:
    with pytest.raises(JsonArrayError, match="one JSON array") as told:
        refused(tmp_path, "a.json", b'[\n{"id": 1}\n]')
    assert "jq" in told.value.hint


def test_a_json_object_over_many_lines_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(JsonArrayError, match="no line that is a JSON object"):
        refused(tmp_path, "a.json", b'{\n"id": 1\n}')


def test_packed_parquet_is_told_to_be_unpacked(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(NotSupportedError, match="inside gzip"):
        refused(tmp_path, "a.parquet.gz", gzip.compress((tmp_path / "a.parquet").read_bytes()))
