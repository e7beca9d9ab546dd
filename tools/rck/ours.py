"""Runs Apache Iceberg's REST Compatibility Kit against our own catalog: `make test-rck`.

Starts the server on a fresh lake in a temporary folder, on a free port of loopback, and passes everything else on to
run-rck.sh. `--catalog postgresql://…` takes a database instead of a SQLite file: an empty one, for the kit drops what
it finds under its names. Without options of one's own, three switches are set that the plain kit leaves off: names
with a dot or a slash and namespaces in namespaces are all served here. `--plain` leaves them off.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from lakehouse.rest_catalog.process import RestOptions, start

KIT = Path(__file__).parent / "run-rck.sh"
#: The kit cleans up after itself only where namespaces are not nested; --isolate does it for the others.
SERVED = (
    "--isolate",
    "rck.supports-names-with-dot=true",
    "rck.supports-names-with-slashes=true",
    "rck.supports-nested-namespaces=true",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Iceberg's REST Compatibility Kit against our own catalog")
    parser.add_argument("--catalog", default=os.environ.get("RCK_CATALOG", ""), help="a PostgreSQL address")
    parser.add_argument("--plain", action="store_true", help="the kit as it is, without the switches for more tests")
    parser.add_argument("--out", default="", help="where the results go")
    ours, passed_on = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="lakehouse-rck-") as folder:
        home = Path(folder)
        # The kit itself asks for tables in /tmp and leaves them there; a catalog takes none outside its warehouse.
        warehouse = "file:///tmp" if ours.plain else f"file://{home}/warehouse"
        token = secrets.token_hex(20)
        options = RestOptions(ours.catalog or str(home / "catalog.db"), warehouse, tokens=(token,), port=0)
        process, url = start(options, home / "rest.log")
        try:
            switches = [] if ours.plain else [*SERVED, f"rck.base-location=file:{home}/warehouse/asked"]
            out = ours.out or str(home / "results")
            kit = subprocess.run([KIT, "--out", out, *switches, f"rck.token={token}", *passed_on, url], check=False)
            sys.stderr.write((home / "rest.log").read_text())
            return kit.returncode
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
