"""The cases of writes.py on the servers of the stack, with Spark: PostgreSQL, Nessie and a Hive Metastore, each beside a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.writes import CASES, WriteBench
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.spark]

#: The stretch in which the servers of a profile run.
STRETCHES = {"sql": "sql", "stack": "nessie", "hive": "hive"}
#: The profile whose tables may be in a bucket and in Hudi.
METASTORE = "hive"


def _choose(profile: str) -> list[tuple[str, str]]:
    """The cases of a profile, each with the format of its tables; those without Spark are in test_writes_served.py, except for Hive."""
    cases = [
        (case.name, table_format)
        for case in CASES.values()
        for table_format in case.formats
        if (case.needs_spark and table_format == "iceberg") or profile == METASTORE
    ]
    smoke = [("statements_change_their_rows", "iceberg")]
    if profile == METASTORE:
        smoke += [
            ("statements_change_their_rows", "hudi"),
            ("rows_are_created_appended_upserted_and_replaced", "iceberg"),
        ]
    return repetitions(smoke=smoke, full=cases)


CHOSEN = [
    pytest.param(
        profile,
        name,
        table_format,
        id=f"{profile}-{name}-{table_format}",
        marks=pytest.mark.stretch(STRETCHES[profile]),
    )
    for profile in STRETCHES
    for name, table_format in _choose(profile)
]


@pytest.mark.parametrize(("profile", "name", "table_format"), CHOSEN)
def test_a_write_is_audited_on_the_stack(
    stack: Stack, tmp_path: Path, profile: str, name: str, table_format: str
) -> None:
    stack.need("storage", "postgres", *{"nessie", "hive"} & {STRETCHES[profile]})
    lake = stack.lake(profile)
    if CASES[name].several_tables and not lake.refs.branches.catalog.capabilities.multi_table_publish:
        pytest.skip("this catalog publishes one table at a time")
    number = list(CASES).index(name)  # other tests of the stretch use the same catalog, and names have a limit
    CASES[name].run(WriteBench(lake, f"audited_{number}_{table_format}", tmp_path / "files", table_format))
