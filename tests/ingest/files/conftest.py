"""ReadResult small files as `lake ingest` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files import (
    ReadPlan,
    RecordedColumn,
    Reject,
    StagedFiles,
    StageOptions,
    discover,
    plan_files,
    read_rejects,
    stage_files,
)

SMALL = StageOptions(memory_limit=400 << 20, threads=2)


@dataclass(frozen=True)
class ReadResult:
    """The staged rows and rejects of some files."""

    staged: StagedFiles
    rows: list[tuple[Any, ...]]
    rejects: list[Reject]

    @property
    def plan(self) -> ReadPlan:
        return self.staged.plan

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.plan.columns}

    def values(self, name: str) -> list[Any]:
        index = [column.name for column in self.plan.columns].index(name)
        return [row[index] for row in self.rows]


def read_back(staged: StagedFiles) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for file in staged.files:
        table = pyarrow.parquet.read_table(file.path)
        rows += zip(*(column.to_pylist() for column in table.columns), strict=True) if table.num_columns else []
    return rows


def read_paths(
    paths: Sequence[Path | str],
    into: Path,
    recorded: Sequence[RecordedColumn] | None = None,
    widen: bool = False,
    options: StageOptions = SMALL,
    **settings: Any,
) -> ReadResult:
    plan = plan_files(discover([str(path) for path in paths]), ReadOptions(**settings), recorded, widen)
    staged = stage_files(plan, into, options)
    return ReadResult(staged, read_back(staged), list(read_rejects(staged)))


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., ReadResult]:
    """Write bytes or text under a name and read them."""

    def write_and_read(content: bytes | str, name: str = "in.csv", **more: Any) -> ReadResult:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_paths([path], tmp_path / "staged", **more)

    return write_and_read


@pytest.fixture
def column(read: Callable[..., ReadResult]) -> Callable[..., tuple[str, list[Any]]]:
    """The type and values of a column; a second column prevents blank lines for blank values."""

    def typed(*values: str) -> tuple[str, list[Any]]:
        result = read("v;other\n" + "".join(f"{value};x\n" for value in values), delimiter=";")
        assert result.rejects == []
        return result.types["v"], result.values("v")

    return typed


@pytest.fixture
def tiny_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infer types from ten rows, so that a small file has later rows too."""
    monkeypatch.setattr("lakehouse.ingest.files.inference._SAMPLED_CELLS", 0)
