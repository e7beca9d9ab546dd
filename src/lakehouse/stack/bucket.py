"""Make the lake's bucket, if it is not there: `python -m lakehouse.stack.bucket`, with the settings of [s3] and stack.bucket."""

from __future__ import annotations

import sys

from lakehouse.config.load import load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.core.errors import LakeError
from lakehouse.storage.s3 import S3


def main() -> int:
    try:
        settings = resolve_profile(load_settings())
        S3(settings.s3).make_bucket(settings.stack.bucket)
    except LakeError as exc:
        sys.stderr.write(f"{exc.message} {exc.hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
