"""dbt on a branch: its models are made there, its tests run there, and all is published only if every test passes."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadSettingError, NotInstalledError, RunBlockedError
from lakehouse.core.names import CATALOG
from lakehouse.engines.trino.settings import TrinoSettings
from lakehouse.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.runs.model import RunRecord


def run_dbt(
    lake: Lake, project: Path, arguments: Sequence[str], say: Callable[[str], None], **asked: Any
) -> tuple[RunRecord, Any]:
    """Run a command of dbt as one transaction; the run's record, and dbt's own result."""
    results: list[Any] = []

    def work(spark: SparkSession, branch: str) -> None:
        for namespace in namespaces(project):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {branch}.{namespace}")
        say(f"dbt {' '.join(arguments)}")
        with _session_of_this_process(spark, branch):
            done = invoke(lake, project, arguments)
        results.append(done.result)
        if not done.success:
            raise RunBlockedError(
                f"Nothing was published, because dbt failed: {_failed(done)}.", "lake runs show tells more."
            )

    return lake.transact("dbt", work, say, **asked), results[-1]


def run_dbt_on_trino(lake: Lake, project: Path, arguments: Sequence[str], trino: TrinoSettings) -> Any:
    """Run a command of dbt on Trino, which sees main alone: each model is published as it is made."""
    if not trino.url:
        raise BadSettingError("trino.url is not set, so there is no Trino to ask.", "Use a profile that has one: sql.")
    _, host, port = trino.address()
    facts = {
        "LAKE_DBT_TARGET": "trino",
        "LAKE_DBT_TRINO_HOST": host,
        "LAKE_DBT_TRINO_PORT": str(port),
        "LAKE_DBT_TRINO_USER": trino.user,
        "LAKE_DBT_TRINO_CATALOG": trino.catalog or CATALOG,
    }
    logging.getLogger("trino").setLevel(logging.WARNING)  # it tells of a keyring that nobody asked for
    with _environment(facts):
        done = invoke(lake, project, arguments)
    if not done.success:
        raise RunBlockedError(f"dbt failed on Trino: {_failed(done)}.", "What was made before that stays: lake log")
    return done.result


def invoke(lake: Lake, project: Path, arguments: Sequence[str]) -> Any:
    """One command of dbt in this process."""
    if not (project / "dbt_project.yml").is_file():
        raise BadSettingError(f"{project} is not a dbt project.", "Set `dbt` in lake.toml, or LAKE_DBT.")
    places = ["--project-dir", str(project), "--profiles-dir", str(project)]
    places += ["--target-path", str(lake.folder / "dbt"), "--log-path", str(lake.folder / "logs")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dbt's own libraries warn of things that nobody here can change
        try:
            from dbt.cli.main import dbtRunner
        except ImportError as exc:
            raise NotInstalledError("dbt", "orchestrate") from exc
        return dbtRunner().invoke([*arguments, *places, "--quiet"])


def namespaces(project: Path) -> list[str]:
    """The schemas that the project's models are written to."""
    found = re.findall(r"\+schema:\s*(\w+)", (project / "dbt_project.yml").read_text())
    return sorted(set(found))


@contextmanager
def _session_of_this_process(spark: SparkSession, branch: str) -> Iterator[None]:
    """dbt asks PySpark for the session of the process; while it runs, that is the branch's."""
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
    """Variables that dbt's profile reads, as long as it runs."""
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


def _failed(done: Any) -> str:
    if done.exception is not None or done.result is None:
        return str(done.exception).splitlines()[0] if done.exception else "it said no more"
    broken = [each for each in done.result if str(each.status) not in ("success", "pass", "skipped", "warn", "no-op")]
    return "; ".join(f"{each.node.name}: {_reason(str(each.message))}" for each in broken[:5])


def _reason(message: str) -> str:
    """The line that tells it: the first only says which model it is in, if there are more."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    told = lines[1] if len(lines) > 1 else lines[0] if lines else "it said no more"
    by_trino = re.search(r'message="(.*?)"(?:, query_id|\))', told)
    return by_trino[1] if by_trino else told
