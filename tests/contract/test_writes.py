"""Every kind of write leaves exactly the files that metadata names, and everything beside it as it was."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import cache_only
from tests.contract.writes import CASES, WriteBench, WriteCase
from tests.support.audit import ALL, AuditError, audit

from lakehouse.config.load import load_settings
from lakehouse.copies.findings import UNREACHABLE
from lakehouse.core.files import file_uri, local_path
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

#: What only reads, or only opens something.
READS = {
    *("branches", "check", "close", "compare", "describe", "diff", "dropped", "folder", "health", "history"),
    *("inspect", "inspect_file"),
    *(
        "pipelines",
        "plan",
        "reading_with",
        "refs",
        "report",
        "run_log",
        "run_record",
        "runs",
        "table",
        "table_formats",
        "table_names",
    ),
    *("tables", "travel", "verify", "ask", "asker", "dbt_project", "drops", "semantics_file", "snapshot_at", "views"),
    *("refs.branches.changes", "refs.branches.diff", "refs.branches.diff_rows", "refs.branches.list"),
    *("refs.branches.tags", "refs.log.lines", "refs.log.commit_of", "refs.log.recent", "refs.log.preview_revert"),
}


#: What writes and has no case of its own yet, with what stands for it.
NOT_AUDITED = {
    "migrate": "tests/copies/test_migrate.py compares both lakes; its target needs the servers of a profile",
    "resume": "the kills of runs in tests/integration/test_runs_killed.py are audited until they are resumed",
    "spark": "a session of the user's own, which may do anything",
}


def write_operations(lake: Lake) -> set[str]:
    """Every public method of a lake and of its refs that is not known to read only."""
    places = {"": type(lake), "refs.branches.": type(lake.refs.branches), "refs.log.": type(lake.refs.log)}
    names = {
        f"{prefix}{name}"
        for prefix, owner in places.items()
        for name, member in inspect.getmembers(owner)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }
    return names - READS


@pytest.fixture
def plain_lake(home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": home, "spark.master": "local[1]"}, environ=cache_only())) as lake:
        yield lake


def test_every_write_operation_has_a_case(plain_lake: Lake) -> None:
    audited = {operation for case in CASES.values() for operation in case.operations}
    audited |= {
        "clone"
    }  # test_a_clone_adds_only_the_tag_that_holds_its_files, since only an embedded lake can be cloned
    assert write_operations(plain_lake) - audited == set(NOT_AUDITED), "add a case to writes.py, or the name to READS"


def test_a_clone_adds_only_the_tag_that_holds_its_files(plain_lake: Lake, namespace: str, tmp_path: Path) -> None:
    WriteBench(plain_lake, namespace, tmp_path).five()
    with audit(plain_lake, refs={"clone_*"}):
        plain_lake.clone(tmp_path / "clone")


WITHOUT_SPARK = [case for case in CASES.values() if not case.needs_spark]
WITH_SPARK = [(case, kind) for case in CASES.values() if case.needs_spark for kind in case.formats]


@pytest.mark.parametrize("case", WITHOUT_SPARK, ids=lambda case: case.name)
def test_a_write_to_a_folder(plain_lake: Lake, namespace: str, tmp_path: Path, case: WriteCase) -> None:
    case.run(WriteBench(plain_lake, namespace, tmp_path / "files"))


@pytest.mark.spark
@pytest.mark.parametrize(("case", "table_format"), WITH_SPARK, ids=[f"{case.name}-{kind}" for case, kind in WITH_SPARK])
def test_a_write_with_spark(
    shared_lake: Lake, namespace: str, tmp_path: Path, case: WriteCase, table_format: str
) -> None:
    case.run(WriteBench(shared_lake, namespace, tmp_path / "files", table_format))


@pytest.mark.spark
def test_a_file_that_no_instant_of_hudi_wrote_is_found(shared_lake: Lake, namespace: str, tmp_path: Path) -> None:
    table = WriteBench(shared_lake, namespace, tmp_path, "hudi").five()
    folder = local_path(shared_lake.describe(table).location)
    file = next(folder.glob("*.parquet"))
    again = file.with_name(f"again{file.name}")
    with pytest.raises(AuditError, match="1 files that nothing names"), audit(shared_lake, {table: ALL}):
        shutil.copy(file, again)
    (health,) = shared_lake.health(table)
    assert (health.unnamed_files, health.unnamed_bytes) == (1, file.stat().st_size)
    listed = [finding.where for finding in shared_lake.verify(table, deep=True).findings if finding.kind == UNREACHABLE]
    assert listed == [file_uri(again)]
    again.unlink()
    assert shared_lake.health(table)[0].unnamed_files == 0
