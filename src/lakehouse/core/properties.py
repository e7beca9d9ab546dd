"""Which table properties a user may set: an allow-list, because some make Iceberg or Hudi delete files that a ref needs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lakehouse.core.errors import NotSupportedError

#: Properties that change how files are written and read, and nothing about where they are or how long they stay.
_ALLOWED = re.compile(
    r"""
      format-version | comment | lake\.(?:key|columns) | primarykey | precombinefield | orderingfields | type
    | write\.(?:format\.default|delete\.format\.default|target-file-size-bytes|delete\.target-file-size-bytes)
    | write\.(?:parquet|orc|avro)\.[\w.-]+ | write\.delete\.(?:parquet|orc|avro)\.[\w.-]+
    | write\.(?:delete|update|merge)\.(?:mode|isolation-level|distribution-mode|granularity)
    | write\.(?:distribution-mode|wap\.enabled|upsert\.enabled|summary\.partition-limit)
    | write\.(?:object-storage\.enabled|object-storage\.partitioned-paths)
    | write\.spark\.[\w.-]+
    | write\.metadata\.(?:compression-codec|previous-versions-max|metrics\.[\w.-]+)
    | read\.[\w.-]+ | commit\.(?:retry|manifest|status-check)[\w.-]* | schema\.name-mapping\.default
    | compatibility\.snapshot-id-inheritance\.enabled
    """,
    re.VERBOSE,
)
#: First words of the properties that Iceberg, Hudi, Spark and Hive give a meaning; any other word is the user's own.
_RESERVED = re.compile(
    r"(?:write|read|gc|commit|history|format|engine|hoodie|option|options|provider|location|path|external|schema|metadata"
    r"|compatibility|current|previous|identifier|snapshot|uuid|table|spark|hive|lake|sort|default|last|transient|numfiles"
    r"|totalsize|encryption|object)(?:[._-].*)?"
)
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def new_table_properties() -> dict[str, str]:
    """The properties of a new table that PyIceberg creates."""
    # PyIceberg cannot write format version 3. Branches share files, so no single table may delete them.
    return {"format-version": "2", "gc.enabled": "false"}


def is_settable(name: str) -> bool:
    """Whether a user may set a table property."""
    lowered = name.lower()
    if _ALLOWED.fullmatch(lowered):
        return True
    return bool(_NAME.fullmatch(name)) and not _RESERVED.fullmatch(lowered)


def check_settable(names: Iterable[str]) -> None:
    """Raise for the first property that a user may not set."""
    for name in names:
        if not is_settable(name):
            raise NotSupportedError(
                f"The table property {name!r} is not one that a statement may set: it could move files, or delete those"
                " that a branch, a tag or a kept run needs.",
                "See docs/security.md for the properties that may be set.",
            )
