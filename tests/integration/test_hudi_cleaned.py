"""Travel to a Hudi instant whose files a cleaner has deleted."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import WhenError
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


def test_a_cleaned_instant_is_an_error_and_not_an_empty_table(local_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.people"
    local_lake.sql(f"create table {table} (id int, name string) using hudi tblproperties (primaryKey = 'id')")
    local_lake.sql(f"insert into {table} values (1, 'Ada')")
    local_lake.sql(f"update {table} set name = 'Eve' where id = 1")
    *_, first, second = local_lake.history(table)
    assert local_lake.sql(f"select name from {table}", as_of=first.id).rows() == [("Ada",)]

    folder = local_lake.folder / "warehouse" / namespace / "people"
    clean = (
        f"call run_clean(table => '{table}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)"
    )
    local_lake.spark.sql("use spark_catalog")
    local_lake.spark.sql(clean).collect()
    local_lake.spark.sql("use lake")
    assert not [file for file in folder.glob("*.parquet") if f"_{first.id}." in file.name]

    for engine in ("duckdb", "spark"):
        with pytest.raises(WhenError, match="were cleaned"):
            local_lake.sql(f"select name from {table}", as_of=first.id, engine=engine)
        assert local_lake.sql(f"select name from {table}", as_of=second.id, engine=engine).rows() == [("Eve",)]
        assert local_lake.sql(f"select name from {table}", engine=engine).rows() == [("Eve",)]
