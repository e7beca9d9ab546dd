"""Run Apache Iceberg's REST Compatibility Kit against our own catalog: `make test-rck`.

Starts the server on a new lake in a temporary folder, on a free port of loopback, and passes other arguments on to
run-rck.sh. The catalog refuses properties with which engines delete files, and the kit has five tests that set them: the
run passes if exactly these fail, each for that reason. `--allow-file-deletion` starts the server with the option of that
name; then all tests must pass. By default three options of the kit are on that the plain kit leaves off, because this
catalog supports names with a dot, names with a slash and nested namespaces. `--plain` leaves them off.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from lakehouse.core.errors import LakeError
from lakehouse.rest_catalog.process import RestOptions, start

KIT = Path(__file__).parent / "run-rck.sh"
#: The tests that the catalog fails by design, with the property that it refuses (rest_catalog/table_policy.py).
REFUSED = {
    "tables.testRemoveUnusedSchemas[1]": "gc.enabled",
    "tables.testRemoveUnusedSchemas[2]": "gc.enabled",
    "tables.testRemoveUnusedSpec[1]": "gc.enabled",
    "tables.testRemoveUnusedSpec[2]": "gc.enabled",
    "tables.testMetadataFileLocationsRemovalAfterCommit": "write.metadata.delete-after-commit.enabled",
}
#: The kit drops only flat namespaces after a test; --isolate drops nested ones too.
EXTENDED = (
    "--isolate",
    "rck.supports-names-with-dot=true",
    "rck.supports-names-with-slashes=true",
    "rck.supports-nested-namespaces=true",
)
#: Where the plain kit puts its tables: the folders of its namespaces (RckMain.java).
PLAIN_WAREHOUSE = Path("/tmp")  # noqa: S108 - the kit asks for it
PLAIN_FOLDERS = tuple(
    PLAIN_WAREHOUSE / name
    for name in ("a", "newdb", "newdb_1", "newdb_2", "ns", "ns1", "ns2", "ns_1", "ns_2", "other_ns", "parent")
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--catalog",
        default=os.environ.get("RCK_CATALOG", ""),
        help="address of an empty PostgreSQL database (default: a new SQLite file); the kit drops what has its names",
    )
    parser.add_argument("--plain", action="store_true", help="run the kit without the options that enable more tests")
    parser.add_argument("--allow-file-deletion", action="store_true", help="serve the properties that are refused")
    parser.add_argument("--out", default="", help="folder of the results (default: none are kept)")
    arguments, kit_arguments = parser.parse_known_args()
    existing = [str(folder) for folder in PLAIN_FOLDERS if arguments.plain and folder.exists()]
    if existing:
        parser.error(f"The plain kit would find the files in {', '.join(existing)}: remove them first.")
    with tempfile.TemporaryDirectory(prefix="lakehouse-rck-") as folder:
        home = Path(folder)
        results = Path(arguments.out or home / "results").absolute()
        code = _run_kit(arguments, kit_arguments, home, results)
        if code not in (0, 1):  # it did not run
            return code
        problems = unexpected(
            (results / "results.tsv").read_text().splitlines(), {} if arguments.allow_file_deletion else REFUSED
        )
    report = "\n".join(problems) or f"As expected: {_summary(arguments.allow_file_deletion)}."
    sys.stdout.write(f"{report}\n")
    return 1 if problems else 0


def _summary(allow_file_deletion: bool) -> str:
    return "no test fails" if allow_file_deletion else "only tests that delete files fail, refused by design"


def _run_kit(arguments: argparse.Namespace, kit_arguments: Sequence[str], home: Path, results: Path) -> int:
    # The catalog accepts no table outside its warehouse.
    warehouse = PLAIN_WAREHOUSE.as_uri() if arguments.plain else f"file://{home}/warehouse"
    token = secrets.token_hex(20)
    options = RestOptions(
        arguments.catalog or str(home / "catalog.db"),
        warehouse,
        tokens=(token,),
        allow_file_deletion=arguments.allow_file_deletion,
        port=0,
    )
    log = home / "rest.log"
    try:
        process, url = start(options, log)
    except LakeError:
        sys.stderr.write(log.read_text())
        raise
    try:
        extended = [] if arguments.plain else [*EXTENDED, f"rck.base-location=file:{home}/warehouse/requested"]
        # The kit reads a property of its client from the environment too; an argument would show the token to other users.
        environment = {**os.environ, "CATALOG_TOKEN": token}
        command = [KIT, "--out", results, *extended, *kit_arguments, url]
        return subprocess.run(command, check=False, env=environment).returncode
    finally:
        process.terminate()
        process.wait()
        sys.stderr.write(log.read_text())
        for folder in PLAIN_FOLDERS if arguments.plain else ():
            shutil.rmtree(folder, ignore_errors=True)


def unexpected(lines: Iterable[str], refused: dict[str, str]) -> list[str]:
    """Compare the lines of results.tsv with the tests that must be refused; tests that did not run do not count."""
    problems = []
    for line in lines:
        kit, name, state, _, reason = line.split("\t")
        test = f"{kit}.{name}"
        if state == "fail" and f"The property {refused.get(test)} must" not in reason:
            problems.append(f"Failed: {test}: {reason}")
        if state == "ok" and test in refused:
            problems.append(f"Not refused: {test} sets {refused[test]}, with which engines delete files.")
    return problems


if __name__ == "__main__":
    sys.exit(main())
