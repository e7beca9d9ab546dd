"""The content of a file decides its kind, compressed or not; unsupported kinds are refused by name."""

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

from lakehouse.core.errors import (
    BinaryFileError,
    DamagedFileError,
    EmptyFileError,
    JsonArrayError,
    NotSupportedError,
    NulBytesError,
)
from lakehouse.ingest.files import discover, plan_files

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
    ids=["csv", "tsv", "gzip", "gzip of two parts", "bzip2", "zstd", "json lines", "compressed json lines"],
)
def test_a_file_is_read_whatever_its_compression(read: Reader, name: str, content: bytes) -> None:
    result = read(content, name)
    assert result.rows == ROWS
    assert result.plan.notes == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", gzip.compress(CSV)), ("a.csv.gz", CSV), ("a.csv.gz", bz2.compress(CSV))],
    ids=["gzip named .csv", "plain named .gz", "bzip2 named .gz"],
)
def test_a_wrong_name_does_not_matter_and_is_noted(read: Reader, name: str, content: bytes) -> None:
    result = read(content, name)
    assert result.rows == ROWS
    assert "name says" in result.plan.notes[0]


def test_a_parquet_file_named_csv_is_read_as_parquet_and_noted(read: Reader, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"Id": [1, 2], "Name": ["ann", "bob"]}), tmp_path / "real.parquet")
    result = read((tmp_path / "real.parquet").read_bytes(), "misnamed.csv")
    assert result.rows == ROWS
    assert result.types == {"id": "bigint", "name": "string"}
    assert "PARQUET" in result.plan.notes[0]


def test_json_lines_named_csv_are_read_as_json(read: Reader) -> None:
    result = read(b'{"id": 1, "name": "ann"}\n{"id": 2, "name": "bob"}\n', "misnamed.csv")
    assert result.rows == ROWS


def refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    plan_files(discover([str(tmp_path / name)]))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "compressed"])
def test_an_empty_file_says_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(EmptyFileError, match="empty"):
        refused(tmp_path, "a.csv", content)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_file_of_blank_lines_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmptyFileError, match="blank"):
        refused(tmp_path, name, b"\n\n  \n" if name == "a.json" else b"\n\n\n")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd], ids=["gzip", "bzip2", "zstd"])
def test_a_truncated_file_says_so(read: Reader, pack: Callable[[bytes], bytes]) -> None:
    data = b"id,name\n" + b"".join(
        f"{n},{hashlib.sha256(str(n).encode()).hexdigest()}\n".encode() for n in range(30_000)
    )
    compressed = pack(data)
    with pytest.raises(DamagedFileError, match="truncated|damaged") as error:
        read(compressed[: len(compressed) * 2 // 3], "a.csv.gz")
    assert error.value.file.endswith("a.csv.gz")


def test_a_gzip_with_damaged_bytes_says_so(read: Reader) -> None:
    compressed = bytearray(gzip.compress(CSV * 1000))
    compressed[-8] ^= 0xFF  # its checksum
    with pytest.raises(DamagedFileError, match="damaged"):
        read(bytes(compressed), "a.csv.gz")


def test_a_broken_parquet_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="cannot be read"):
        refused(tmp_path, "a.parquet", b"PAR1" + b"x" * 100)


def test_a_zip_archive_is_refused_by_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as book:
        book.writestr("sheet.xml", "x")
    with pytest.raises(BinaryFileError, match="a zip archive"):
        plan_files(discover([str(tmp_path / "book.xlsx")]))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (["orders.csv", "more/", "more/items.json.gz", "notes.pdf"], "zip archive of orders.csv, more/items.json.gz."),
        ([f"{number}.csv" for number in range(7)], "zip archive of 0.csv, 1.csv, 2.csv, 3.csv, 4.csv, …."),
        (["\x1b[31m.csv"], "is a zip archive."),
    ],
    ids=["some", "many", "no name that can be shown"],
)
def test_a_zip_archive_says_what_could_be_read_of_it_and_how(tmp_path: Path, members: list[str], said: str) -> None:
    with zipfile.ZipFile(tmp_path / "May 2026.zip", "w") as archive:
        for name in members:
            archive.writestr(name, "" if name.endswith("/") else "x")
    with pytest.raises(BinaryFileError) as error:
        plan_files(discover([str(tmp_path / "May 2026.zip")]))
    assert error.value.message.endswith(said)
    assert error.value.hint == "Extract it, and ingest the files: unzip 'May 2026.zip' -d 'May 2026'"


def test_binary_garbage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BinaryFileError, match="neither text nor Parquet"):
        refused(tmp_path, "a.csv", random.Random(3).randbytes(5000))


def test_a_header_that_begins_like_a_magic_number_is_still_csv(read: Reader) -> None:
    assert read("ORC,x\n1,2\n").rows == [(1, 2)]


@pytest.mark.parametrize("at", [20, 3_000_000], ids=["early", "late"])
def test_nul_bytes_are_refused_with_their_line(read: Reader, at: int) -> None:
    content = bytearray(b"id,name\n" + b"1,a\n" * 1_000_000)
    content[at] = 0
    with pytest.raises(NulBytesError, match="NUL") as error:
        read(bytes(content))
    assert error.value.line == content[:at].count(b"\n") + 1


@pytest.mark.parametrize(
    "content",
    [
        b'[{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]',
        b'\xef\xbb\xbf[\n  {\n    "id": 1,\n    "name": "ann"\n  },\n  {"id": 2, "name": "bob"}\n]\n',
        gzip.compress(b' [ {"id": 1, "name": "ann"}\n,\n{"id": 2, "name": "bob"}]'),
        '[{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]'.encode("utf-16"),
        b'{\n  "id": 1,\n  "name": "ann"\n}\n{"id": 2, "name": "bob"}\n',
    ],
    ids=["one line", "indented", "compressed", "UTF-16", "indented objects without an array"],
)
@pytest.mark.parametrize("name", ["a.json", "a.csv", "export"])
def test_a_json_array_is_read_as_its_elements_whatever_its_name(read: Reader, name: str, content: bytes) -> None:
    result = read(content, name)
    assert result.rows == ROWS
    assert result.rejects == []


def test_an_element_of_an_array_that_is_no_object_is_rejected_with_its_number(read: Reader) -> None:
    result = read('[{"id": 1},\n\n 5, {"id": 2}]', "a.json")
    assert result.rows == [(1,), (2,)]
    assert [(reject.line, reject.raw) for reject in result.rejects] == [(2, "5")]


def test_a_broken_array_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="Malformed JSON"):
        refused(tmp_path, "a.json", b'[{"id": 1}, {"id"')


def test_json_without_an_object_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(JsonArrayError, match="no JSON object"):
        refused(tmp_path, "a.json", b"[1, 2]\n")


@pytest.mark.parametrize("packed", [CSV, gzip.compress(CSV)], ids=["plain", "gzip"])
def test_csv_named_json_is_read_as_csv_and_noted(read: Reader, packed: bytes) -> None:
    result = read(packed, "misnamed.json")
    assert result.rows == ROWS
    assert "its content is CSV, although its name says JSON" in result.plan.notes[-1]


def test_compressed_parquet_is_refused(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(NotSupportedError, match="inside gzip"):
        refused(tmp_path, "a.parquet.gz", gzip.compress((tmp_path / "a.parquet").read_bytes()))


@pytest.mark.parametrize(
    "text",
    ['{;";"\n', '{"a;b\n1;2\n', "{}\tb\n1\t2\n", '{"a": 1};b\n1;2\n', "{'x': 1}\n" + "{'y': 2}\n" * 1000],
    ids=[
        "brace and delimiter",
        "open quote",
        "empty object in a cell",
        "object in a cell",
        "not JSON, longer than the head",
    ],
)
def test_a_csv_file_that_starts_with_a_brace_is_csv(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert plan_files(discover([str(tmp_path / "a.csv")])).files[0].kind == "csv"


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}\n', '{}\n{"a": 1}\n', '\ufeff {"a": "' + "x" * 10_000 + '"}\n', '{"a": {"b": "}"}}'],
    ids=["one line", "empty object first", "longer than the head", "nested"],
)
def test_json_objects_are_json_whatever_the_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert plan_files(discover([str(tmp_path / "a.txt")])).files[0].kind == "json"
