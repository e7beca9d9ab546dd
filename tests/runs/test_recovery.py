"""A run's branch belongs to the process that works on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.transaction_pipelines import opened

from lakehouse.core.errors import RunConflictError
from lakehouse.core.requests import RunRequest
from lakehouse.pipelines import Pipeline, Table

_FIRST = """
import sys
from pathlib import Path
import pyarrow as pa
from tests.support.transaction_pipelines import opened
from lakehouse.core.requests import RunRequest
from lakehouse.pipelines import Pipeline, Table

def build(context):
    rows = context.validate(pa.table({"id": [1]}))
    context.catalog.create_table_if_not_exists("shop.sales", schema=rows.schema).append(rows, dict(context.notes))
    print("building", flush=True)
    input()
    return 1

with opened(Path(sys.argv[1])) as lake:
    print(lake.run_pipeline(Pipeline("shop", (Table("shop.sales", None, light=build),)), RunRequest(light=True, id="42")).state)
"""


def test_a_second_process_with_the_id_of_a_run_leaves_its_branch_alone(home: Path) -> None:
    def never(context: object) -> int:
        raise AssertionError("the other process works on this run")

    table = Table("shop.sales", None, light=never)  # type: ignore[arg-type] # it needs no Spark
    with (
        opened(home) as lake,
        subprocess.Popen(
            [sys.executable, "-c", _FIRST, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as first,
    ):
        assert first.stdin is not None and first.stdout is not None
        assert first.stdout.readline() == "building\n"
        (home / "runs" / "42.json").unlink()  # as from another host, whose home has no record of it
        with pytest.raises(RunConflictError, match="works on run_42"):
            lake.run_pipeline(Pipeline("shop", (table,)), RunRequest(light=True, id="42"))
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.stdout.readline() == "published\n"
        assert lake.sql("select id from shop.sales").rows() == [(1,)]
