"""DuckDB in process: its limits, its extensions, and its complaints in our words."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from lakehouse.core.errors import EngineError, QueryRejectedError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB, duckdb_type

ONE = TableName("shop", "one")


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDB]:
    yield DuckDB(200 * 2**20, tmp_path_factory.mktemp("spill") / "it's here")


def setting(duckdb: DuckDB, name: str) -> str:
    return str(duckdb.query(f"SELECT current_setting('{name}')", {}, "test").rows()[0][0])


def test_the_memory_limit_and_the_spill_folder_are_applied(duckdb: DuckDB) -> None:
    assert setting(duckdb, "memory_limit") == "200.0 MiB"
    assert setting(duckdb, "temp_directory").endswith("it's here")


def test_nothing_is_fetched_from_the_network(duckdb: DuckDB) -> None:
    assert setting(duckdb, "autoinstall_known_extensions") == "False"
    assert setting(duckdb, "autoload_known_extensions") == "False"


def test_many_threads_may_be_the_first(tmp_path: Path) -> None:
    fresh = DuckDB(200 * 2**20, tmp_path)
    answers: list[object] = []
    barrier = threading.Barrier(8)

    def ask(number: int) -> None:
        barrier.wait()
        try:
            answers.append(fresh.query(f"SELECT {number}", {}, "test").rows()[0][0])
        except Exception as exc:  # noqa: BLE001 - whatever it is, the test tells
            answers.append(repr(exc))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, answers)) == [str(number) for number in range(8)]


def test_more_than_the_memory_limit_says_what_to_raise(tmp_path: Path) -> None:
    small = DuckDB(10 * 2**20, tmp_path)
    # One list cannot be spilled, so it has to fit.
    result = small.query("SELECT len(list(repeat('x', 100) || range)) FROM range(3000000)", {}, "test")
    with pytest.raises(EngineError, match="out of memory") as refused:
        result.rows()
    assert "query.memory_limit" in refused.value.hint


def test_an_error_while_reading_is_ours_too(duckdb: DuckDB) -> None:
    for read in ("rows", "to_arrow"):
        result = duckdb.query("SELECT CAST(v AS INTEGER) FROM (VALUES ('1'), ('x')) t(v)", {}, "test")
        with pytest.raises(QueryRejectedError, match="x"):
            getattr(result, read)()


def test_files_are_read_by_column_name_and_the_missing_are_null(duckdb: DuckDB, tmp_path: Path) -> None:
    old, new = tmp_path / "it's old.parquet", tmp_path / "new.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [1], "gone": [9]}), old)
    pyarrow.parquet.write_table(pyarrow.table({"note": ["n"], "id": [2]}), new)
    scan = Scan((Column("id", "bigint"), Column("note", "string")), files=(str(old), str(new)))
    result = duckdb.query("SELECT * FROM shop.one ORDER BY id", {ONE: scan}, "test")
    assert (result.names, result.rows()) == (["id", "note"], [(1, None), (2, "n")])


def test_a_column_that_no_file_has_yet_is_null(duckdb: DuckDB, tmp_path: Path) -> None:
    for number, name in enumerate(("a.parquet", "b.parquet")):
        ids = pyarrow.array(range(number * 10, number * 10 + 10), pyarrow.int32())
        pyarrow.parquet.write_table(pyarrow.table({"id": ids, "gone": ids}), tmp_path / name)
    columns = (Column("id", "int"), Column("price", "decimal(10,2)"), Column("tags", "array<struct<a:int>>"))
    scan = Scan(columns, files=(str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")), total_files=2)
    result = duckdb.query("SELECT * FROM shop.one WHERE id = 12", {ONE: scan}, "test", explain=True)
    assert [(column.name, column.type) for column in result.columns] == [
        (column.name, column.type) for column in columns
    ]
    assert result.rows() == [(12, None, None)]
    assert "Filters: id=12" in result.explain.plan
    assert "gone" not in result.explain.plan
    assert duckdb.query("SELECT count(*), count(price) FROM shop.one", {ONE: scan}, "test").rows() == [(20, 0)]


def test_a_file_that_cannot_be_read_is_an_error(duckdb: DuckDB, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("not parquet")
    with pytest.raises(EngineError):
        duckdb.query(
            "SELECT * FROM shop.one", {ONE: Scan((Column("id", "int"),), files=(str(tmp_path / "a.parquet"),))}, "test"
        )


def test_a_partition_in_a_path_is_not_a_column(duckdb: DuckDB, tmp_path: Path) -> None:
    folder = tmp_path / "day=2026-01-01"
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), folder / "a.parquet")
    scan = Scan((Column("id", "bigint"),), files=(str(folder / "a.parquet"),))
    assert duckdb.query("SELECT * FROM shop.one", {ONE: scan}, "test").names == ["id"]


def test_a_table_without_files_has_columns_and_no_rows(duckdb: DuckDB) -> None:
    kinds = ["int", "bigint", "string", "timestamp", "timestamp_ntz", "date", "decimal(10,2)", "boolean", "binary"]
    kinds += ["array<int>", "struct<a:int>", "float", "double"]
    scan = Scan(tuple(Column(f"c{number}", kind) for number, kind in enumerate(kinds)))
    result = duckdb.query("SELECT * FROM shop.one", {ONE: scan}, "test")
    assert len(result.names) == len(kinds)
    assert result.rows() == []


@pytest.mark.parametrize(
    ("spark", "duck"),
    [
        ("string", "VARCHAR"),
        ("timestamp", "TIMESTAMPTZ"),
        ("timestamp_ntz", "TIMESTAMP"),
        ("binary", "BLOB"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
        ("array<int>", "INT[]"),
        ("map<string,int>", "MAP(VARCHAR, INT)"),
        ("struct<a:decimal(10,2),b c:array<timestamp>>", 'STRUCT("a" DECIMAL(10,2), "b c" TIMESTAMPTZ[])'),
        ("map<string,struct<a:map<int,string>,b:int>>", 'MAP(VARCHAR, STRUCT("a" MAP(INT, VARCHAR), "b" INT))'),
        ("STRUCT(Name VARCHAR)[]", "STRUCT(Name VARCHAR)[]"),
    ],
)
def test_a_type_is_carried_over(spark: str, duck: str) -> None:
    assert duckdb_type(spark) == duck


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        ("1::TINYINT", "tinyint"),
        ("1::INTEGER", "int"),
        ("1::BIGINT", "bigint"),
        ("1::HUGEINT", "decimal(38,0)"),
        ("[1::HUGEINT]", "array<decimal(38,0)>"),
        ("1::UINTEGER", "bigint"),
        ("1::FLOAT", "float"),
        ("1::DOUBLE", "double"),
        ("1.50", "decimal(3,2)"),
        ("'a'", "string"),
        ("true", "boolean"),
        ("'a'::BLOB", "binary"),
        ("DATE '2026-01-01'", "date"),
        ("TIMESTAMP '2026-01-01'", "timestamp_ntz"),
        ("TIMESTAMPTZ '2026-01-01'", "timestamp"),
        ("{'a': 1, 'b': [DATE '2026-01-01']}", "struct<a:int,b:array<date>>"),
        ("MAP {'a': {'b': 1.5}}", "map<string,struct<b:decimal(2,1)>>"),
        ("[1, 2]::INTEGER[2]", "array<int>"),
    ],
)
def test_a_result_has_sparks_types(duckdb: DuckDB, sql: str, spark: str) -> None:
    assert [column.type for column in duckdb.query(f"SELECT {sql}", {}, "test").columns] == [spark]


def test_a_name_with_quotes_is_only_a_name(duckdb: DuckDB) -> None:
    scan = Scan((Column('a"b', "int"),))
    assert duckdb.query('SELECT * FROM "x""y"', {'x"y': scan}, "test").names == ['a"b']


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        pytest.param("SELECT nope", 1, 8, id="column"),
        pytest.param("SELECT\n\n  nope(1)", 3, 3, id="function"),
        pytest.param("SELECT * FROM nope", 1, 15, id="table"),
        pytest.param("SELECT 1 +", None, None, id="end-of-text"),
    ],
)
def test_a_mistake_is_pointed_at(duckdb: DuckDB, sql: str, line: int | None, column: int | None) -> None:
    with pytest.raises(QueryRejectedError) as refused:
        duckdb.query(sql, {}, "test")
    if line:
        assert (refused.value.line, refused.value.column) == (line, column)
    assert "LINE" not in refused.value.message
    assert "\n" not in refused.value.message


ASK = """
from pathlib import Path
from lakehouse.core.errors import LakeError
from lakehouse.engines.duckdb import DuckDB
try:
    DuckDB(2**28, Path("/tmp")).query("SELECT 1", {}, "test")
except LakeError as exc:
    print(type(exc).__name__, "|", exc.message, "|", exc.hint)
"""


SITE = Path(pyarrow.__file__).parent.parent
SOURCE = Path(__file__).parents[3] / "src"


def ask_with(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Ask for a query in a Python that finds packages in these folders only."""
    places = [str(path) for path in (*paths, SOURCE)]
    program = f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + {places!r}\n"
    return subprocess.run([sys.executable, "-I", "-S", "-c", program + ASK], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        pytest.param(
            "duckdb_extension_iceberg",
            "NotInstalledError | This needs duckdb-extension-iceberg, which is not installed."
            " | pip install 'lakehouse[duckdb]'",
            id="extension",
        ),
        pytest.param(
            "duckdb",
            "NotInstalledError | This needs duckdb, which is not installed. | pip install 'lakehouse[duckdb]'",
            id="duckdb-itself",
        ),
    ],
)
def test_a_missing_part_says_what_to_install(tmp_path: Path, package: str, expected: str) -> None:
    for entry in SITE.iterdir():
        if entry.name != package and not entry.name.endswith(".pth"):
            (tmp_path / entry.name).symlink_to(entry)
    asked = ask_with(tmp_path)
    assert asked.stdout.strip() == expected, asked.stderr


def test_an_extension_of_another_version_says_which_is_wanted(tmp_path: Path) -> None:
    import duckdb as library

    other = tmp_path / "duckdb_extension_avro"
    (other / "extensions" / "v0.0.1").mkdir(parents=True)
    (other / "__init__.py").touch()
    asked = ask_with(tmp_path, SITE)
    wanted = f"EngineError | duckdb-extension-avro is not the one for DuckDB {library.__version__}."
    assert asked.stdout.startswith(wanted), asked.stderr
    assert f"=={library.__version__}" in asked.stdout


def catalogs(duckdb: DuckDB) -> int:
    """The number of attached catalogs with views."""
    names = "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'statement %'"
    return int(duckdb.query(names, {}, "test").rows()[0][0])


def scan_of(tmp_path: Path, name: str, *ids: int) -> Scan:
    file = tmp_path / f"{name}.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array(ids, pyarrow.int64())}), file)
    return Scan((Column("id", "bigint"),), files=(str(file),))


def test_statements_over_the_same_tables_share_their_views(duckdb: DuckDB, tmp_path: Path) -> None:
    first, second = scan_of(tmp_path, "a", 1, 2), scan_of(tmp_path, "b", 3)
    earlier = duckdb.query("SELECT sum(id) FROM shop.one", {ONE: first}, "test")
    before = catalogs(duckdb)
    assert duckdb.query("SELECT max(id) FROM shop.one", {ONE: first}, "test").rows() == [(2,)]
    assert catalogs(duckdb) == before
    assert duckdb.query("SELECT sum(id) FROM shop.one", {ONE: second}, "test").rows() == [(3,)]
    assert earlier.rows() == [(3,)]
    assert earlier.to_arrow().num_rows == 1


def test_a_result_outlives_the_views_that_are_kept(tmp_path: Path) -> None:
    fresh = DuckDB(200 * 2**20, tmp_path)
    kept = fresh.query("SELECT sum(id) FROM shop.one", {ONE: scan_of(tmp_path, "kept", 7)}, "test")
    for number in range(80):
        scan = scan_of(tmp_path, f"f{number}", number)
        assert fresh.query("SELECT id FROM shop.one", {ONE: scan}, "test").rows() == [(number,)]
    assert kept.rows() == [(7,)]
    assert catalogs(fresh) <= 67


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM shop.one ORDER BY id DESC -- the end",
        "WITH o AS (SELECT * FROM shop.one) FROM o ORDER BY id DESC;",
        "SELECT sum(id) AS id FROM shop.one GROUP BY id ORDER BY id DESC;",
        "(SELECT 3 AS id) UNION ALL (SELECT 2)",
        "VALUES (3), (2)",
    ],
)
def test_a_limit_holds_for_every_query(duckdb: DuckDB, tmp_path: Path, sql: str) -> None:
    scan = scan_of(tmp_path, "limited", 1, 2, 3)
    assert duckdb.query(sql, {ONE: scan}, "test", limit=1).rows() == [(3,)]
    assert duckdb.query(sql, {ONE: scan}, "test", limit=1).to_arrow().num_rows == 1


def test_a_statement_with_an_effect_runs_once(duckdb: DuckDB, tmp_path: Path) -> None:
    copied = duckdb.execute(
        f"COPY (SELECT 1 AS id) TO '{tmp_path}/out' (FORMAT parquet, FILENAME_PATTERN '{{uuid}}', PER_THREAD_OUTPUT)"
    )
    assert copied == [(1,)]
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize(
    "sql", ["COPY (SELECT 1) TO '{}' (FORMAT csv)", "SELECT 1; COPY (SELECT 1) TO '{}'", "SET threads = 1"]
)
def test_only_a_query_is_described(duckdb: DuckDB, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "out.csv"
    with pytest.raises(QueryRejectedError, match="single queries"):
        duckdb.query(sql.format(file), {}, "test")
    assert not file.exists()


def test_the_cache_of_files_is_on_again_after_a_failing_explain(duckdb: DuckDB) -> None:
    with pytest.raises(QueryRejectedError):
        duckdb.query("SELECT CAST('x' AS INTEGER)", {}, "test", explain=True)
    assert setting(duckdb, "enable_external_file_cache") == "True"
