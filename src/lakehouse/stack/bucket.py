"""Create the bucket of the lake if it is missing: `python -m lakehouse.stack.bucket`."""

from __future__ import annotations

import sys

from lakehouse.config.load import load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.process.daemons import run_main
from lakehouse.storage.s3 import S3


def create_bucket() -> None:
    """Create the bucket that the settings name."""
    settings = resolve_profile(load_settings())
    S3(settings.s3).make_bucket(settings.stack.bucket)


if __name__ == "__main__":
    sys.exit(run_main(create_bucket))
