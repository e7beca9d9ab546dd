"""A build of ten small dbt models in a warm lake, and `lake dbt ls`: where a command takes seconds although there is little to do.

`python -m bench.models [--rounds N]`. Every model is one row, made from another model. dbt is loaded already, as from the second or third
command on; beside it the same build in a process that starts dbt itself. Keeps bench/results/models.json.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import ROUNDS, beside_own, interleaved, report, waited
from bench.processes import LAKE, run, stop_spark
from lakehouse.cli.loaded import SOCKET
from lakehouse.orchestrate.dbt import PACKAGED_PROJECT
from lakehouse.process.pids import wait_until

MODELS = 10
BUILD = 6.0
LOAD_TIMEOUT_S = 120
#: The same command in a process that starts dbt itself.
ALONE = "import sys; from lakehouse.cli.app import run; sys.exit(run(sys.argv[1:]))"
PROJECT = """\
name: small
version: "1.0"
config-version: 2
profile: lakehouse
model-paths: [models]
models: {small: {+schema: small, +materialized: table, +file_format: iceberg}}
"""


def make_project(folder: Path) -> Path:
    """A project of models that depend on each other as the nodes of a binary tree."""
    shutil.copytree(PACKAGED_PROJECT / "macros", folder / "macros")
    shutil.copy(PACKAGED_PROJECT / "profiles.yml", folder)
    (folder / "dbt_project.yml").write_text(PROJECT)
    models = folder / "models"
    models.mkdir()
    (models / "m0.sql").write_text("select 1 as id, 'a' as name")
    for number in range(1, MODELS):
        (models / f"m{number}.sql").write_text(
            f"select id + {number} as id, name from {{{{ ref('m{(number - 1) // 2}') }}}}"
        )
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as folder:
        env = {"LAKE_HOME": f"{folder}/lake", "LAKE_DBT": str(make_project(Path(folder) / "models"))}
        try:
            run([LAKE, "sql", "select 1", "--engine", "spark"], env)
            for _ in range(2):  # Java compiles what runs often: the first builds of a warm Spark are slower
                run([LAKE, "dbt", "build"], env)
            if not wait_until((Path(env["LAKE_HOME"]) / "run" / SOCKET).exists, LOAD_TIMEOUT_S):
                raise SystemExit("dbt did not stay loaded.")
            ways = {
                "build": lambda: run([LAKE, "dbt", "build"], env),
                "alone": lambda: run([sys.executable, "-c", ALONE, "dbt", "build"], env),
                "ls": lambda: run([LAKE, "dbt", "ls"], env),
            }
            times = interleaved(ways, asked.rounds)
        finally:
            stop_spark(env)
    name = f"lake dbt build, {MODELS} models, warm Spark"
    ratios = [beside_own(name, times["build"], "the same in a process of its own", times["alone"])]
    figures = [
        waited(name, times["build"], BUILD),
        waited("lake dbt ls", times["ls"]),
    ]
    return report("models", ratios, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
