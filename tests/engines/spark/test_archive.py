"""The class archive of Spark: one file for all profiles, retained as long as it is used."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lakehouse.engines.spark.archive import archive_file, unused_archives
from lakehouse.engines.spark.jars import EMBEDDED, ICEBERG_AWS, S3A
from lakehouse.engines.spark.java import Java
from lakehouse.engines.spark.launch import archived_class_path, class_path

JAVA = Java(Path("/java"), "17.0.1")
OF_EVERY_LAKE = [Path("/cache") / jar.file for jar in EMBEDDED]
IN_A_BUCKET = [*OF_EVERY_LAKE, *(Path("/cache") / jar.file for jar in (*S3A, *ICEBERG_AWS))]


def test_a_lake_in_a_bucket_uses_the_archive_of_the_embedded_one(tmp_path: Path) -> None:
    assert archive_file(tmp_path, JAVA, IN_A_BUCKET) == archive_file(tmp_path, JAVA, OF_EVERY_LAKE)


def test_what_the_archive_was_built_for_begins_every_class_path() -> None:
    # Java ignores an archive whose class path is not how the one in use begins.
    archived = archived_class_path(OF_EVERY_LAKE) + ":"
    assert class_path(OF_EVERY_LAKE).startswith(archived)
    assert class_path(IN_A_BUCKET).startswith(archived)
    assert {str(jar) for jar in IN_A_BUCKET} <= set(class_path(IN_A_BUCKET).split(":"))


def test_archives_of_many_checkouts_stay_while_they_are_used(tmp_path: Path) -> None:
    assert unused_archives(tmp_path) == []
    (tmp_path / "classes").mkdir()
    for days in range(20):
        file = tmp_path / "classes" / f"{days:02}.jsa"
        file.touch()
        os.utime(file, (time.time() - days * 86_400,) * 2)
    assert [file.stem for file in unused_archives(tmp_path)] == ["14", "15", "16", "17", "18", "19"]


def test_the_newest_archives_stay_whatever_their_age(tmp_path: Path) -> None:
    (tmp_path / "classes").mkdir()
    for days in (100, 200, 300, 400):
        file = tmp_path / "classes" / f"{days}.jsa"
        file.touch()
        os.utime(file, (time.time() - days * 86_400,) * 2)
    assert [file.stem for file in unused_archives(tmp_path)] == ["400"]
