"""dbt as a transaction: models and tests run on a branch, which is published if every test passes."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError, DbtError, NotInstalledError, RunBlockedError
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import run_branch
from lakehouse.core.requests import RunRequest
from lakehouse.engines.trino.settings import TrinoSettings
from lakehouse.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.runs.model import RunRecord

PACKAGED_PROJECT = Path(__file__).parent / "dbt_project"
"""The taxi models, which come with the package."""
_PROJECT_FILE = "dbt_project.yml"
_PROJECT_PATH = "project_path"
"""In dbt's target folder: the project that its files are of."""


#: Commands that ask no engine anything.
_WITHOUT_ENGINE = {"ls", "list", "parse", "deps", "clean", "docs serve"}
#: Commands that read main and change no table.
_READS = {"debug", "show", "compile", "docs generate", "source freshness", "source snapshot-freshness"}
#: Commands with a second word.
_WITH_SUBCOMMAND = ("docs", "source")


def command_of(arguments: Sequence[str]) -> str:
    """The command among dbt's arguments: the first word that is no option, with the second where a command has one."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    return " ".join(words[: 2 if words and words[0] in _WITH_SUBCOMMAND else 1])


def is_read(arguments: Sequence[str]) -> bool:
    """Whether a dbt command changes no table, so that it needs no transaction and prints its own answer."""
    return command_of(arguments) in _WITHOUT_ENGINE | _READS


def find_project(settings: Settings) -> Path:
    """Return the folder that the setting `dbt` names, else `dbt` beside lake.toml, else the packaged project."""
    is_set = "dbt" in settings.origins
    return settings.dbt if is_set or (settings.dbt / _PROJECT_FILE).is_file() else PACKAGED_PROJECT


def run_dbt(
    lake: Lake,
    project: Path,
    arguments: Sequence[str],
    progress: Callable[[str], None],
    request: RunRequest | None = None,
) -> tuple[RunRecord, Any]:
    """Run a dbt command as one transaction; return the run's record and dbt's result."""
    results: list[Any] = []
    preload()

    def work(spark: SparkSession, branch: str) -> None:
        progress(f"dbt {' '.join(arguments)}")
        with _session_of_this_process(spark, branch), _relations_of(lake.branch(branch)):
            done = invoke(lake, project, arguments)
        results.append(done.result)
        if not done.success:
            run = branch.removeprefix(run_branch(""))
            raise RunBlockedError(
                f"Nothing was published, because dbt failed: {_failures(done)}.", f"Details: lake runs show {run}"
            )

    return lake.transact("dbt", work, request, progress), results[-1]


def read_with_dbt(lake: Lake, project: Path, arguments: Sequence[str]) -> Any:
    """Run a dbt command that changes no table, on main; dbt prints its answer. Spark starts only for those that ask it."""
    preload()
    command = command_of(arguments)
    with ExitStack() as session:
        if command not in _WITHOUT_ENGINE:
            session.enter_context(_session_of_this_process(lake.spark, CATALOG))
            session.enter_context(_relations_of(lake))
        done = invoke(lake, project, arguments, quiet=command in ("ls", "list"))
    if not done.success:
        raise DbtError(f"dbt {command} failed: {_failures(done)}.", f"Details: {lake.folder / 'logs' / 'dbt.log'}")
    return done.result


def preload() -> None:
    """Import dbt in the background: it takes as long as the session that is opened meanwhile."""
    Thread(target=_import_dbt, daemon=True).start()


def _import_dbt() -> None:
    """Import dbt with what makes it a fifth faster: half of the time goes into classes that most commands never use."""
    collects = gc.isenabled()
    gc.disable()
    try:
        # Code that reads and writes a class of dbt is generated when it is first needed, instead of on import.
        import_module("mashumaro.config").BaseConfig.lazy_compilation = True
        import_module("dbt.cli.main")
        import_module("dbt.adapters.spark")
    except ImportError:
        return  # `invoke` says what is missing
    finally:
        if collects:
            gc.enable()


def warm_up() -> None:
    """Import dbt and parse the packaged project once: what dbt makes once per process takes most of a small command."""
    _import_dbt()
    with TemporaryDirectory() as folder:
        # Its static parser starts threads, and a process that is to be forked may have none.
        _invoke(Path(folder), Path(folder), PACKAGED_PROJECT, ["--no-static-parser", "parse", "--quiet"])


def run_dbt_on_trino(lake: Lake, project: Path, arguments: Sequence[str], trino: TrinoSettings) -> Any:
    """Run a dbt command on Trino, which reads and writes main only: each model is published as soon as it is built."""
    if not trino.url:
        raise BadSettingError("trino.url is not set.", "Set it, or use a profile with Trino: lake --profile sql dbt …")
    _, host, port = trino.address()
    variables = {
        "LAKE_DBT_TARGET": "trino",
        "LAKE_DBT_TRINO_HOST": host,
        "LAKE_DBT_TRINO_PORT": str(port),
        "LAKE_DBT_TRINO_USER": trino.user,
        "LAKE_DBT_TRINO_CATALOG": trino.catalog or CATALOG,
    }
    logging.getLogger("trino").setLevel(logging.WARNING)  # it logs that a keyring is missing, which is not used
    with _environment(variables):
        done = invoke(lake, project, arguments)
    if not done.success:
        raise RunBlockedError(
            f"dbt failed on Trino: {_failures(done)}.", "Models that were built before the failure stay: lake log"
        )
    return done.result


def invoke(lake: Lake, project: Path, arguments: Sequence[str], quiet: bool = True) -> Any:
    """Run one dbt command in this process; `quiet`: dbt prints errors, and what was asked for, alone."""
    if not (project / _PROJECT_FILE).is_file():
        raise BadSettingError(f"{project} is not a dbt project.", "Set `dbt` in lake.toml, or LAKE_DBT.")
    target = _target(lake)
    target.mkdir(exist_ok=True)
    (target / _PROJECT_PATH).write_text(str(project))
    output = ["--quiet"] if quiet else [] if sys.stdout.isatty() else ["--no-use-colors"]
    return _invoke(target, lake.folder / "logs", project, [*arguments, *output])


def _invoke(target: Path, logs: Path, project: Path, arguments: Sequence[str]) -> Any:
    # As variables: not every command has options for them.
    variables = {
        "DBT_TARGET_PATH": str(target),
        "DBT_LOG_PATH": str(logs),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    with warnings.catch_warnings(), _environment(variables):
        warnings.simplefilter("ignore")  # from dbt's own dependencies
        try:
            from dbt.cli.main import dbtRunner
        except ImportError as exc:
            raise NotInstalledError("dbt", "orchestrate") from exc
        return dbtRunner().invoke([*arguments, "--project-dir", str(project), "--profiles-dir", str(project)])


def manifest_of(lake: Lake, project: Path) -> Path:
    """Return the manifest of the project. dbt parses the project if it changed, or if the last manifest is of another one."""
    target = _target(lake)
    manifest, last = target / "manifest.json", target / _PROJECT_PATH
    changed = max(file.stat().st_mtime for file in project.rglob("*") if file.is_file())
    is_same = last.is_file() and last.read_text() == str(project)
    if not is_same or not manifest.is_file() or manifest.stat().st_mtime < changed:
        invoke(lake, project, ["parse"])
    return manifest


def _target(lake: Lake) -> Path:
    """dbt's target folder: in the lake, because a packaged project may be read-only."""
    return lake.folder / "dbt"


@contextmanager
def _relations_of(lake: Lake) -> Iterator[None]:
    """Have dbt ask the lake's catalog which schemas and tables there are.

    Its adapter asks Spark: SHOW TABLE EXTENDED, which tables of Iceberg do not have, and then DESCRIBE for each table.
    """
    try:
        plugin = import_module("dbt.adapters.spark").Plugin
    except ImportError:
        yield  # `invoke` says what is missing
        return

    def tables() -> list[TableName]:
        return [TableName.parse(name) for name, kind in lake.table_formats().items() if kind == "iceberg"]

    def list_schemas(adapter: Any, database: str) -> list[str]:
        return sorted({table.namespace for table in tables()})  # dbt creates those without tables, if it needs them

    def list_relations(adapter: Any, schema_relation: Any) -> list[Any]:
        create = partial(adapter.Relation.create, type="table", is_iceberg=True, is_delta=False, is_hudi=False)
        schema = schema_relation.schema
        return [create(schema=schema, identifier=table.table) for table in tables() if table.namespace == schema]

    before = plugin.adapter
    answers = {"list_schemas": list_schemas, "list_relations_without_caching": list_relations}
    plugin.adapter = type(before.__name__, (before,), answers)  # dbt finds its module by the name
    try:
        yield
    finally:
        plugin.adapter = before


@contextmanager
def _session_of_this_process(spark: SparkSession, branch: str) -> Iterator[None]:
    """Make the branch's session the active one of this process, where dbt finds it."""
    from pyspark.sql import SparkSession

    before = SparkSession._instantiatedSession
    SparkSession._instantiatedSession = spark
    try:
        with _environment({"LAKE_DBT_CATALOG": branch}):
            yield
    finally:
        SparkSession._instantiatedSession = before


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which dbt's profile reads, for the duration of the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _failures(done: Any) -> str:
    if done.exception is not None or not isinstance(getattr(done.result, "results", None), list):
        return _reason(str(done.exception)) if done.exception else "its output has the reason"
    failed = [
        result for result in done.result if str(result.status) not in ("success", "pass", "skipped", "warn", "no-op")
    ]
    return "; ".join(f"{result.node.name}: {_reason(str(result.message))}" for result in failed[:5])


def _reason(message: str) -> str:
    """Return the line with the reason: the second if there are several, since the first only names the model."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    line = lines[1] if len(lines) > 1 else lines[0] if lines else "no details"
    from_trino = re.search(r'message="(.*?)"(?:, query_id|\))', line)
    return from_trino[1] if from_trino else line
