"""`lake export`: what went in comes out, whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.ipc
import pytest
from tests.conftest import Command, command_for

from lakehouse.config.settings import Settings
from lakehouse.core.errors import LakeError, NoSuchTableError
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

LEADS = (
    "id,name,zip,score,joined,seen,active,note\n"
    '1,Ada,01234,1.5,2026-01-31,2026-01-31 10:00:00,true,"a, ""quoted"" note"\n'
    '2,Bob,99999,,2026-02-01,2026-02-01 23:59:59.123456,false,"two\nlines"\n'
    "3,Zoë,00000,-3,,,true,\n"
)
ENDINGS = [".csv", ".tsv", ".csv.gz", ".csv.zst", ".jsonl", ".ndjson", ".parquet"]


@pytest.fixture(scope="module")
def leads(shared_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of every type that a CSV can have, with two snapshots."""
    folder = tmp_path_factory.mktemp("leads")
    (folder / "leads.csv").write_text(LEADS)
    (folder / "more.csv").write_text("id,name\n4,Later\n")
    for name in ("leads.csv", "more.csv"):
        shared_lake.ingest(folder / name, into="exports.leads", key=("id",))
    return "exports.leads"


def content(lake: Lake, table: str) -> tuple[list[tuple[str, str]], list[tuple[object, ...]]]:
    columns = [(column.name, column.type) for column in lake.describe(table).columns]
    return columns, lake.sql(f"SELECT * FROM {table} ORDER BY id", engine="duckdb").rows()


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_went_in_comes_out_and_goes_in_again(shared_lake: Lake, leads: str, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out{ending}"
    assert shared_lake.export(leads, file) == 4
    copy = "exports.copy_" + ending.replace(".", "_")
    assert shared_lake.ingest(file, into=copy, key=("id",)).inserted == 4
    assert content(shared_lake, copy) == content(shared_lake, leads)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("ending", [".arrow", ".feather"])
def test_arrow_holds_the_same_rows_and_types(shared_lake: Lake, leads: str, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out{ending}"
    assert shared_lake.export(leads, file) == 4
    with pyarrow.OSFile(str(file)) as source:
        table = pyarrow.ipc.open_file(source).read_all().sort_by("id")
    assert [tuple(row.values()) for row in table.to_pylist()] == content(shared_lake, leads)[1]
    assert table.schema.field("joined").type == pyarrow.date32()


def test_the_command_writes_the_table_as_it_was(
    shared_lake: Lake, shared_settings: Settings, leads: str, tmp_path: Path
) -> None:
    command: Command = command_for(shared_settings.home)
    first = shared_lake.history(leads)[0]
    told = command("export", leads, "then.jsonl", "--as-of", first.id, cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "3 rows written to then.jsonl.\n")
    rows = [json.loads(line) for line in (tmp_path / "then.jsonl").read_text().splitlines()]
    assert sorted(row["name"] for row in rows) == ["Ada", "Bob", "Zoë"]
    told = command("export", leads, "now.csv.gz", cwd=tmp_path)
    assert told.stderr == "4 rows written to now.csv.gz.\n"
    lines = gzip.decompress((tmp_path / "now.csv.gz").read_bytes()).decode().splitlines()
    assert lines[0] == "id,name,zip,score,joined,seen,active,note"


def test_a_hudi_table_is_exported_like_any_other(shared_lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v\n1,a\n2,\n")
    shared_lake.ingest(tmp_path / "in.csv", into="exports.hudi", key=("id",), format="hudi")
    assert shared_lake.export("exports.hudi", tmp_path / "out.csv") == 2
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert (lines[0], sorted(lines[1:])) == ("id,v", ["1,a", "2,"]), "Hudi's own columns stay inside"


def test_an_empty_text_is_not_taken_for_no_value(shared_lake: Lake, tmp_path: Path) -> None:
    shared_lake.sql("CREATE TABLE exports.texts AS SELECT 1 AS id, '' AS v UNION ALL SELECT 2, NULL")
    shared_lake.export("exports.texts", tmp_path / "texts.csv")
    assert sorted((tmp_path / "texts.csv").read_text().splitlines()[1:]) == ['1,""', "2,"]


def test_an_unknown_ending_lists_those_there_are(shared_lake: Lake, leads: str, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"\.xlsx") as caught:
        shared_lake.export(leads, tmp_path / "out.xlsx")
    assert ".parquet" in caught.value.hint
    assert caught.value.is_user_error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["gone/out.csv", "gone/out.arrow", "taken.csv"])
def test_a_place_that_cannot_be_written_is_named(shared_lake: Lake, leads: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(LakeError, match="cannot be written") as caught:
        shared_lake.export(leads, tmp_path / name)
    assert name in caught.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]


def test_an_earlier_export_stays_until_the_new_one_is_whole(shared_lake: Lake, leads: str, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("before")
    with pytest.raises(NoSuchTableError):
        shared_lake.export("exports.nowhere", file)
    assert file.read_text() == "before"
    shared_lake.export(leads, file)
    assert file.read_text().startswith("id,name")
