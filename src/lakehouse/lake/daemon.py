"""The Spark daemon's process: reads its settings from standard input, opens the lake and serves it."""

from __future__ import annotations

import sys

from lakehouse.config.load import parse_settings
from lakehouse.engines.spark.daemon.client import fingerprint
from lakehouse.engines.spark.daemon.server import DaemonOptions, serve
from lakehouse.lake.assemble import Assembly
from lakehouse.storage.local import LocalHome


def main() -> None:
    serialized = sys.stdin.read()
    settings = parse_settings(serialized)
    home = LocalHome(settings.home)
    components = Assembly(settings).components()
    options = DaemonOptions(
        settings.home, home.run, settings.cache, settings.spark.idle_minutes, fingerprint(serialized)
    )
    serve(components.queries.engine("spark").run, components.session, options)


if __name__ == "__main__":
    main()
