"""The lake's configuration for plain Spark, PyIceberg and DuckDB, as Python that runs as it is."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.assemble import spark_conf
from lakehouse.catalogs.sql import BUSY_TIMEOUT_MS, SqlCatalog
from lakehouse.config.settings import Settings
from lakehouse.core.names import CATALOG
from lakehouse.engines.spark.jars import EMBEDDED
from lakehouse.formats.hudi import SPARK_SETTINGS as HUDI_SETTINGS
from lakehouse.storage.local import LocalHome


def snippet(engine: str, settings: Settings) -> str:
    """Python for one engine."""
    home = LocalHome(settings.home).ready()
    catalog = SqlCatalog(home.catalog_file, home.warehouse)
    match engine:
        case "spark":
            return _spark(settings, home, catalog)
        case "pyiceberg":
            return _pyiceberg(catalog)
        case _:
            return _duckdb(catalog)


def _spark(settings: Settings, home: LocalHome, catalog: SqlCatalog) -> str:
    ours_alone = {"spark.app.name", "spark.authenticate", "spark.local.dir", "spark.ui.showConsoleProgress"}
    conf = {key: value for key, value in spark_conf(catalog, home).items() if key not in ours_alone}
    conf["spark.jars"] = ",".join(str(settings.cache / "jars" / jar.file) for jar in EMBEDDED)
    conf["spark.driver.extraJavaOptions"] = "-Duser.timezone=UTC"
    return f"""\
# Plain PySpark 3.5 on Java 17 (`lake setup` has fetched the jars). Iceberg tables are {CATALOG}.namespace.table.
from pyspark.sql import SparkSession

conf = {_dict(conf)}
builder = SparkSession.builder.appName("my lake")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

# For Hudi: keep every commit, so that time travel reaches back. A Hudi table is a folder:
#   spark.read.format("hudi").load("{home.warehouse}/namespace/table")
for key, value in {_dict(HUDI_SETTINGS)}.items():
    spark.conf.set(key, value)
"""


def _pyiceberg(catalog: SqlCatalog) -> str:
    return f"""\
# Plain PyIceberg: pip install "pyiceberg[sql-sqlite,pyarrow,pyiceberg-core]"
from pyiceberg.catalog import load_catalog

catalog = load_catalog("{CATALOG}", **{_dict(catalog.pyiceberg_properties())})
# catalog.load_table("namespace.table").scan().to_arrow()
"""


def _duckdb(catalog: SqlCatalog) -> str:
    return f"""\
# Plain DuckDB: pip install duckdb duckdb-extension-avro duckdb-extension-iceberg (the same version, 1.5 or newer)
import importlib.util
import sqlite3

import duckdb

connection = duckdb.connect()
for name in ("avro", "iceberg"):  # from the wheels, so that it works offline; avro first
    folder = importlib.util.find_spec("duckdb_extension_" + name).submodule_search_locations[0]
    connection.execute(f"LOAD '{{folder}}/extensions/v{{duckdb.__version__}}/{{name}}.duckdb_extension'")


def table(name):
    \"\"\"The newest state of `namespace.table`; ask again after a commit.\"\"\"
    catalog = sqlite3.connect("file:{catalog.file}?mode=ro", uri=True, timeout={BUSY_TIMEOUT_MS / 1000})
    row = catalog.execute(
        "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = '{CATALOG}'"
        " AND table_namespace = ? AND table_name = ?",
        name.split("."),
    ).fetchone()
    catalog.close()
    return connection.sql(f"SELECT * FROM iceberg_scan('{{row[0]}}')")


# table("namespace.table").filter("id > 10").show()
"""


def _dict(values: Mapping[str, str]) -> str:
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in values.items())
    return "{\n" + lines + "}"
