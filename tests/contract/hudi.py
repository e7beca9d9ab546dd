"""Hudi's part of docs/matrix.md, and the engines as they are on Hudi's tables."""

from __future__ import annotations

from pathlib import Path

from tests.contract.engines import Missing, PlainSpark, PlainTrino, Rows
from tests.contract.matrix import CHANGES, Section

from lakehouse.config.settings import Settings
from lakehouse.core.errors import NoSuchTableError
from lakehouse.lake import Lake
from lakehouse.lake.backend import open_backend

TEXT = """\
The warehouse determines where Hudi tables are. In a local warehouse, such as that of the embedded lake, each table is a folder,
`warehouse/NAMESPACE/TABLE`. The profile `hive` has them in the metastore and the bucket. The profiles `sql`, `rest` and `stack`, whose warehouse is a bucket, do
not support Hudi. The engine `lake` is the lake itself: `lake sql` reads with hudi-rs and DuckDB, `lake ingest` writes.

- Spark on a folder uses DataFrames by path. Hudi's writer ignores the settings of the session, so pass the printed ones as options
  (`.write.format("hudi").options(**hudi)`). Without them it deletes file versions older than ten commits, and `lake` can read the table but not write to it.
  To drop a folder, use SQL: `create table spark_catalog.default.T using hudi location '…'`, then `drop table … purge`, which `lake undrop` cannot restore.
- Spark on the metastore uses SQL: Hudi tables are `NAMESPACE.TABLE`, Iceberg tables are `lake.NAMESPACE.TABLE`.
- Trino cannot open a table to which nothing was ever written.
"""
_NO_FOLDER = "Trino finds Hudi tables only through a Hive Metastore"
_NO_PLACE = "Hudi in a bucket needs a metastore: use the profile `hive` or a local warehouse"
_ITS_NAME = (
    "the name of a table is its folder: copy it (`create table NEW using hudi … as select`) and drop the old one"
)
HUDI = Section(
    format="Hudi",
    text=TEXT,
    head="place",
    kinds={
        "folder": "folder in a local warehouse",
        "bucket": "bucket without a metastore",
        "hive": "Hive Metastore",
    },
    engines=("lake", "spark", "trino", "duckdb", "pyiceberg"),
    gaps={
        **{
            (kind, "duckdb", "*"): "DuckDB has no reader for Hudi; `lake sql` reads Hudi with DuckDB"
            for kind in ("folder", "bucket", "hive")
        },
        **{(kind, "pyiceberg", "*"): "PyIceberg supports Iceberg only" for kind in ("folder", "bucket", "hive")},
        ("folder", "trino", "*"): _NO_FOLDER,
        ("folder", "lake", "renames"): _ITS_NAME,
        ("folder", "spark", "renames"): _ITS_NAME,
        ("bucket", "lake", "*"): _NO_PLACE,
        ("bucket", "spark", "*"): _NO_PLACE,
        ("bucket", "trino", "*"): _NO_FOLDER,
        ("hive", "lake", "renames"): "`lake` does not rename Hudi tables; Spark does here",
        **{("hive", "trino", change): "Trino's Hudi connector only reads" for change in CHANGES},
        ("hive", "trino", "travels"): "Trino's Hudi connector reads only the current snapshot",
    },
)

#: The columns that Hudi puts before a table's own.
_HUDIS_OWN = 5


def _own(rows: Rows) -> Rows:
    return [row[_HUDIS_OWN:] for row in rows]


class SparkOnFolders(PlainSpark):
    """DataFrames by path."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._warehouse = open_backend(settings).home.warehouse

    def folder(self, table: str) -> str:
        return str(self._warehouse / table.replace(".", "/"))

    def create(self, table: str) -> None:
        self.write(table, "select 1L as id, '' as name where false")

    def insert(self, table: str, row: tuple[int, str], noted: bool = False) -> None:
        note = ", cast(null as string) as note" if noted else ""
        self.write(table, f"select {row[0]}L as id, '{row[1]}' as name{note}")

    def write(self, table: str, rows: str, settings: str = "**hudi") -> None:
        named = {"hoodie.table.name": table.partition(".")[2], "hoodie.datasource.write.recordkey.field": "id"}
        options = f"options(**{named}).options({settings})"
        self.ask(f"spark.sql({rows!r}).write.format('hudi').{options}.mode('append').save({self.folder(table)!r})")

    def read(self, table: str) -> Rows:
        return _own(self.ask(f"spark.read.format('hudi').load({self.folder(table)!r}).orderBy('id')"))

    def read_at(self, table: str, snapshot: int) -> Rows:
        reader = f"spark.read.format('hudi').option('as.of.instant', '{snapshot}')"
        return self.ask(f"{reader}.load({self.folder(table)!r}).select('id', 'name').orderBy('id')")

    def add_column(self, table: str) -> None:
        """A writer adds one by writing it: here, the row that is there already."""
        self.insert(table, (1, "a"), noted=True)

    def named(self, table: str) -> str:
        """The table in the session's own catalog, which knows it until the session ends."""
        name = f"spark_catalog.default.{table.partition('.')[2]}"
        self.run(f"create table {name} using hudi location '{self.folder(table)}'")
        return name

    def drop(self, table: str) -> None:
        self.run(f"drop table {self.named(table)} purge")


class SparkOnHive(PlainSpark):
    """SQL; the metastore is the session's own catalog."""

    prefix = ""

    def create(self, table: str) -> None:
        columns = "(id bigint, name string)"
        self.run(f"create table {self.prefix}{table} {columns} using hudi tblproperties (primaryKey = 'id')")

    def read(self, table: str) -> Rows:
        return _own(super().read(table))

    def at(self, table: str, snapshot: int) -> str:
        return f"{self.prefix}{table} timestamp as of '{snapshot}'"


class TrinoOnHive(PlainTrino):
    """By the plain name, as Iceberg's tables: Trino finds out which connector reads it."""

    def read(self, table: str) -> Rows:
        return _own(super().read(table))


class OurLake:
    """The lake: files in, answers out."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake, self._folder = lake, folder

    def create(self, table: str) -> None:
        columns = "(id bigint, name string)"
        self.lake.sql(f"create table {table} {columns} using hudi tblproperties (primaryKey = 'id')")

    def insert(self, table: str, row: tuple[int, str], noted: bool = False) -> None:
        file = self._folder / "rows.csv"
        file.write_text(f"id,name{',note' if noted else ''}\n{row[0]},{row[1]}{',' if noted else ''}\n")
        assert self.lake.ingest(file, into=table).inserted == 1

    def read(self, table: str) -> Rows:
        return self._rows(f"select * from {table} order by id")

    def read_at(self, table: str, snapshot: int) -> Rows:
        return self._rows(f"select id, name from {table} order by id", str(snapshot))

    def _rows(self, sql: str, as_of: str = "") -> Rows:
        try:
            return self.lake.sql(sql, engine="duckdb", as_of=as_of).rows()
        except NoSuchTableError as exc:
            raise Missing from exc

    def add_column(self, table: str) -> None:
        self.lake.sql(f"alter table {table} add columns (note string)")

    def rename(self, table: str, to: str) -> None:
        self.lake.sql(f"alter table {table} rename to {to}")

    def drop(self, table: str) -> None:
        self.lake.drop(table)

    def close(self) -> None:
        """The lake is the test's."""
