"""The files that `lake init` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import Field
from typing import Any

from lakehouse.config.load import all_settings
from lakehouse.config.show import variable


def lake_toml() -> str:
    """Return a lake.toml with every setting, its meaning and its default, commented out."""
    lines = [
        "# Settings of this lake. A value in .env, in a LAKE_* variable or in a flag overrides the one in this file.",
        "",
    ]
    section = ""
    for name, part, kind in all_settings():
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
    for name, part, kind in all_settings():
        if kind == tuple[str, ...] or getattr(kind, "__origin__", None) is None:
            lines.append(f"# {variable(name)}={_default(part)}")
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


def first_pipeline() -> str:
    """Return the module of a sample pipeline."""
    return '''r"""A sample pipeline: sales by day from CSV files. The setting `pipelines` in lake.toml names this module. Try it:

    mkdir sales && printf '1,tea,250\\n2,mate,320\\n' > sales/2026-01-14.csv
    lake run shop
    lake sql "select * from gold.sales_by_day"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.pipelines import Days, Pipeline, Source, SourceContext, Table
from lakehouse.pipelines import functions as F  # those of PySpark, which is imported when a table is built
from lakehouse.quality import at_least, not_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_day(context: SourceContext) -> DataFrame:
    file = Path(context.settings["path"]) / f"{context.partition}.csv"
    rows = context.spark.read.schema("id bigint, item string, cents bigint").csv(str(file))
    return rows.withColumn("date", F.lit(context.partition).cast("date"))


def published(context: SourceContext) -> dict[str, str]:
    folder = Path(context.settings["path"])
    return {file.stem: f"{file.stat().st_size} {file.stat().st_mtime}" for file in folder.glob("*.csv")}


def sales(raw: DataFrame) -> DataFrame:
    """Sales as the tills recorded them."""
    return raw.select("id", "item", "cents", "date")


def sales_by_day(sales: DataFrame) -> DataFrame:
    """Sales per day."""
    return sales.groupBy("date").agg(F.count("id").alias("sales"), F.sum("cents").alias("cents"))


tills = Source("tills", read_day, published, settings={"path": "folder with the files of the tills"})

shop = Pipeline(
    name="shop",
    description="Sales by day.",
    partitions=Days("date"),
    tables=(
        Table("bronze.sales", sales, inputs=(tills,), partition_by="date", rules=(not_null("id"), at_least("cents", 0))),
        Table("gold.sales_by_day", sales_by_day, inputs=("bronze.sales",), partition_by="date"),
    ),
)
'''


FILES: Mapping[str, Callable[[], str]] = {
    "lake.toml": lake_toml,
    ".env.example": env_example,
    "first.py": first_script,
    "shop.py": first_pipeline,
}
