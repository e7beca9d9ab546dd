"""Avro files are read and written exactly, and a damaged one gives one kind of error."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from pyiceberg.avro.file import AvroFile as TheirFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from tests.support.small_lake import opened

from lakehouse.formats.iceberg import avro, relocate
from lakehouse.formats.iceberg.avro import AvroError


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The manifests and manifest lists of a table with three commits."""
    folder = tmp_path_factory.mktemp("avro")
    with opened(folder / "lake") as small:
        small.make("shop.orders")
        for number in range(3):
            small.add("shop.orders", number)
        small.writer().load_table("shop.orders").delete("id = 1")
    return sorted((folder / "lake" / "warehouse" / "shop" / "orders" / "metadata").glob("*.avro"))


def test_what_is_written_is_what_was_read_and_others_read_it(files: list[Path], tmp_path: Path) -> None:
    for file in files:
        content = avro.read(file.read_bytes())
        assert content.records
        copy = tmp_path / file.name
        copy.write_bytes(avro.write(content))
        assert avro.read(copy.read_bytes()) == content
        theirs = [_records(path) for path in (file, copy)]
        assert theirs[0] == theirs[1]


def _records(file: Path) -> list[str]:
    with TheirFile(PyArrowFileIO().new_input(str(file))) as records:
        return [re.sub(r" at 0x\w+", "", repr(record)) for record in records]


def test_a_file_that_is_cut_anywhere_is_refused(files: list[Path]) -> None:
    content = files[0].read_bytes()
    for length in range(0, len(content), 7):
        with pytest.raises(AvroError):
            if len(avro.read(content[:length]).records) == 0:
                raise AvroError("it has lost its records")


def test_changed_bytes_give_no_other_error(files: list[Path]) -> None:
    dice = random.Random(7)
    for _ in range(600):
        content = bytearray(dice.choice(files).read_bytes())
        for _ in range(dice.randrange(1, 4)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        try:
            avro.read(bytes(content))
        except AvroError:
            continue


def test_a_moved_manifest_differs_only_in_its_paths(files: list[Path]) -> None:
    manifest = next(file for file in files if "-m" in file.name)
    before = avro.read(manifest.read_bytes())
    moved = avro.read(relocate.move_manifest(manifest.read_bytes(), lambda uri: f"s3://b/{uri[-9:]}", lambda *_: None))
    for old, new in zip(before.records, moved.records, strict=True):
        path = f"s3://b/{old['data_file']['file_path'][-9:]}"
        assert new == {**old, "data_file": {**old["data_file"], "file_path": path}}
    assert moved.metadata == before.metadata
