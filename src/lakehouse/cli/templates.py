"""The files that `lake init` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import Field
from typing import Any

from lakehouse.config.load import NEVER_IN_FILE, all_settings
from lakehouse.config.show import variable


def lake_toml() -> str:
    """Return a lake.toml with every setting, its meaning and its default, commented out."""
    lines = [
        "# Settings of this lake. A value in .env, in a LAKE_* variable or in a flag overrides the one in this file.",
        "",
    ]
    section = ""
    for setting in all_settings():
        name, part, kind = setting.name, setting.field, setting.type
        head, _, tail = name.rpartition(".")
        if name == "pipelines":  # the module of the sample pipeline
            lines += [f"# {part.metadata['help']}", f'{name} = ["shop"]']
            continue
        if getattr(kind, "__origin__", None) is not None and kind != tuple[str, ...]:
            lines += ["", f"# {part.metadata['help']}", f"# [{name}]"]
            continue
        if head != section:
            section = head
            lines += ["", f"[{section}]"]
        if name in NEVER_IN_FILE:
            lines += [f"# {part.metadata['help']} Set {variable(name)}."]
            continue
        default = _default(part)
        shown = default if isinstance(part.default, int | float) else f'"{default}"'
        shown = json.dumps(part.default) if kind == tuple[str, ...] else shown
        lines += [f"# {part.metadata['help']}", f"# {tail} = {shown}"]
    lines += [
        "",
        "# settings of the sources of a pipeline; `lake pipelines` lists them",
        "[sources.shop]",
        'path = "sales"',
        "# [sources.market]",
        '# path = "bars"',
    ]
    return "\n".join(lines) + "\n"


def env_example() -> str:
    """Return a .env.example with the same settings as environment variables."""
    lines = ["# Copy this file to .env, add .env to .gitignore, and set the values that you need."]
    for setting in all_settings():
        kind = setting.type
        if kind == tuple[str, ...] or getattr(kind, "__origin__", None) is None:
            lines.append(f"# {variable(setting.name)}={_default(setting.field)}")
    return "\n".join(lines) + "\n"


def _default(part: Field[Any]) -> str:
    if isinstance(part.default, tuple):
        return ",".join(part.default)
    return str(part.default).lower() if isinstance(part.default, bool) else str(part.default)


def first_script() -> str:
    """Return a script that uses the Python API."""
    return '''"""A first lake in Python. Run it with: python first.py"""

from lakehouse import open_lake

with open_lake() as lake:
    lake.sql("CREATE OR REPLACE TABLE shop.orders (id INT, item STRING, price DECIMAL(10, 2))")
    lake.sql("INSERT INTO shop.orders VALUES (1, 'tea', 2.50), (2, 'mate', 3.20)")
    print(lake.sql("SELECT item, sum(price) AS total FROM shop.orders GROUP BY item").to_pandas())

    before = lake.history("shop.orders")[-1]
    lake.sql("UPDATE shop.orders SET price = 2.80 WHERE item = 'tea'")
    change = lake.diff("shop.orders", before.id, key=["id"])
    print(f"{change.added} added, {change.removed} removed, {change.changed} changed since {before.at:%H:%M:%S}")
'''


def pipeline_module(name: str, rows: str, try_it: str) -> str:
    """Return the module of a pipeline with a source, rules and checks.

    Args:
        rows: what the files hold, which names the tables: bronze.ROWS and gold.ROWS_by_day.
        try_it: the commands of its docstring.
    """
    return _PIPELINE.replace("TRY_IT", try_it).replace("ROWS", rows).replace("NAME", name)


_PIPELINE = '''r"""A sample pipeline: ROWS by day from CSV files. The setting `pipelines` in lake.toml names this module. Try it:

TRY_IT
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.pipelines import Days, Pipeline, Source, SourceContext, Table
from lakehouse.pipelines import functions as F  # those of PySpark, which is imported when a table is built
from lakehouse.quality import at_least, not_null, unique

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_day(context: SourceContext) -> DataFrame:
    file = Path(context.settings["path"]) / f"{context.partition}.csv"
    rows = context.spark.read.schema("id bigint, item string, cents bigint").csv(str(file))
    # The date is in the name of the file. As a literal, Spark would compile the same code anew for every day.
    return rows.withColumn("date", F.substring("_metadata.file_name", 1, len("YYYY-MM-DD")).cast("date"))


def published(context: SourceContext) -> dict[str, str]:
    folder = Path(context.settings["path"])
    return {file.stem: f"{file.stat().st_size} {file.stat().st_mtime}" for file in folder.glob("*.csv")}


def ROWS(raw: DataFrame) -> DataFrame:
    """Every row as its file has it."""
    return raw.select("id", "item", "cents", "date")


def ROWS_by_day(ROWS: DataFrame) -> DataFrame:
    """Number and amount per day."""
    return ROWS.groupBy("date").agg(F.count("id").alias("ROWS"), F.sum("cents").alias("cents"))


files = Source("NAME_files", read_day, published, settings={"path": "folder with a file for each day"})

pipeline = Pipeline(
    name="NAME",
    description="ROWS by day.",
    partitions=Days("date"),
    tables=(
        Table(
            "bronze.ROWS",
            ROWS,
            inputs=(files,),
            partition_by="date",
            rules=(not_null("id"), at_least("cents", 0)),  # rows that break one go to bronze.ROWS__rejected
            checks=(unique("id"),),  # a failed check publishes nothing
        ),
        Table(
            "gold.ROWS_by_day",
            ROWS_by_day,
            inputs=("bronze.ROWS",),
            partition_by="date",
            checks=(unique("date"),),
        ),
    ),
)
'''


def first_pipeline() -> str:
    """Return the module of the sample pipeline of `lake init`."""
    steps = (
        r"mkdir sales && printf '1,tea,250\n2,mate,320\n' > sales/2026-01-14.csv",
        "lake run shop",
        'lake sql "select * from gold.sales_by_day"',
    )
    return pipeline_module("shop", "sales", "\n".join(f"    {step}" for step in steps))


#: A day of the files that a new pipeline reads; the last row breaks a rule.
SAMPLE_DAY = "2026-01-14"
SAMPLE_ROWS = "1,tea,250\n2,mate,320\n3,chai,-1\n"


def new_pipeline(name: str) -> dict[str, str]:
    """Return the files of `lake new pipeline NAME`, by their paths."""
    steps = (f"lake run {name}", f'lake sql "select * from gold.{name}_by_day"', f"python -m pytest test_{name}.py")
    return {
        f"{name}.py": pipeline_module(name, name, "\n".join(f"    {step}" for step in steps)),
        f"test_{name}.py": _PIPELINE_TEST.replace("NAME", name).replace("VARIABLE", name.upper()),
        f"data/{name}/{SAMPLE_DAY}.csv": SAMPLE_ROWS,
    }


_PIPELINE_TEST = '''"""Tests of the pipeline NAME, in a lake of their own: python -m pytest test_NAME.py"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import NAME as module
import pytest

from lakehouse import open_lake

if TYPE_CHECKING:
    from lakehouse.lake import Lake


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "2026-01-14.csv").write_text("1,tea,250\\n2,mate,320\\n3,chai,-1\\n")
    return folder


@pytest.fixture(scope="module")
def lake(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LAKE_SOURCES__VARIABLE__PATH", str(files))
        environment.setenv("LAKE_SPARK__MASTER", "local[2]")
        with open_lake(home=tmp_path_factory.mktemp("lake")) as lake:
            yield lake


def test_rows_are_counted_and_summed_per_day(lake: Lake) -> None:
    rows = lake.spark.createDataFrame([(1, 250, "2026-01-14"), (2, 320, "2026-01-14")], "id long, cents long, date string")
    assert [tuple(row) for row in module.NAME_by_day(rows).collect()] == [("2026-01-14", 2, 570)]


def test_a_row_that_breaks_a_rule_is_rejected_and_the_others_are_published(lake: Lake) -> None:
    assert lake.run(module.pipeline).state == "published"
    assert lake.sql("select NAME, cents from gold.NAME_by_day").rows() == [(2, 570)]
    (rejected,) = lake.sql("select * from bronze.NAME__rejected").dicts()
    assert rejected["reason"] == "cents_at_least_0"


def test_a_second_run_has_nothing_to_do(lake: Lake) -> None:
    lake.run(module.pipeline)
    assert lake.run(module.pipeline).state == "nothing"


def test_a_day_with_one_id_twice_is_not_published(lake: Lake, files: Path) -> None:
    (files / "2026-01-15.csv").write_text("7,tea,250\\n7,tea,250\\n")
    with pytest.raises(Exception, match="unique_id"):
        lake.run(module.pipeline)
'''


FILES: Mapping[str, Callable[[], str]] = {
    "lake.toml": lake_toml,
    ".env.example": env_example,
    "first.py": first_script,
    "shop.py": first_pipeline,
}
