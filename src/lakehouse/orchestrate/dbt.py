"""dbt as a transaction: models and tests run on a branch, which is published if every test passes."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError, NotInstalledError, RunBlockedError
from lakehouse.core.names import CATALOG
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

    def work(spark: SparkSession, branch: str) -> None:
        for namespace in namespaces(project):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {branch}.{namespace}")
        progress(f"dbt {' '.join(arguments)}")
        with _session_of_this_process(spark, branch):
            done = invoke(lake, project, arguments)
        results.append(done.result)
        if not done.success:
            raise RunBlockedError(
                f"Nothing was published, because dbt failed: {_failures(done)}.", "Details: lake runs show RUN"
            )

    return lake.transact("dbt", work, request, progress), results[-1]


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


def invoke(lake: Lake, project: Path, arguments: Sequence[str]) -> Any:
    """Run one dbt command in this process."""
    if not (project / _PROJECT_FILE).is_file():
        raise BadSettingError(f"{project} is not a dbt project.", "Set `dbt` in lake.toml, or LAKE_DBT.")
    paths = ["--project-dir", str(project), "--profiles-dir", str(project)]
    target = _target(lake)
    paths += ["--target-path", str(target), "--log-path", str(lake.folder / "logs")]
    target.mkdir(exist_ok=True)
    (target / _PROJECT_PATH).write_text(str(project))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from dbt's own dependencies
        try:
            from dbt.cli.main import dbtRunner
        except ImportError as exc:
            raise NotInstalledError("dbt", "orchestrate") from exc
        return dbtRunner().invoke([*arguments, *paths, "--quiet"])


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


def namespaces(project: Path) -> list[str]:
    """Return the schemas that the project's models are written to."""
    schemas = re.findall(r"\+schema:\s*(\w+)", (project / _PROJECT_FILE).read_text())
    return sorted(set(schemas))


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
    if done.exception is not None or done.result is None:
        return str(done.exception).splitlines()[0] if done.exception else "no details"
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
