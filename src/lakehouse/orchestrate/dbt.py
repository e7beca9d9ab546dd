"""dbt on a branch: its models are made there, its tests run there, and all is published only if every test passes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadSettingError, NotInstalledError, RunBlockedError
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
    import re

    found = re.findall(r"\+schema:\s*(\w+)", (project / "dbt_project.yml").read_text())
    return sorted(set(found))


@contextmanager
def _session_of_this_process(spark: SparkSession, branch: str) -> Iterator[None]:
    """dbt asks PySpark for the session of the process; while it runs, that is the branch's."""
    from pyspark.sql import SparkSession

    before = SparkSession._instantiatedSession
    SparkSession._instantiatedSession = spark
    os.environ["LAKE_DBT_CATALOG"] = branch
    try:
        yield
    finally:
        SparkSession._instantiatedSession = before
        del os.environ["LAKE_DBT_CATALOG"]


def _failed(done: Any) -> str:
    if done.exception is not None or done.result is None:
        return str(done.exception).splitlines()[0] if done.exception else "it said no more"
    broken = [each for each in done.result if str(each.status) not in ("success", "pass", "skipped", "warn", "no-op")]
    return "; ".join(f"{each.node.name}: {str(each.message).splitlines()[0]}" for each in broken[:5])
