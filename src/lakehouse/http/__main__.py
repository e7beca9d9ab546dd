"""`python -m lakehouse.http`: the service as `lake up serve` starts it, with its settings from standard input."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from lakehouse.config.load import parse_settings
from lakehouse.http.server import serve
from lakehouse.process.daemons import run_main


def main() -> None:
    """Serve with the settings that standard input holds."""
    message = json.loads(sys.stdin.read())
    settings = replace(parse_settings(message["settings"]), origins=message["origins"])
    sys.exit(run_main(lambda: serve(settings, lambda line: print(line, file=sys.stderr), shows_key=False)))  # noqa: T201


if __name__ == "__main__":
    main()
