"""`pyspark.sql.functions`, imported when one of them is first used: `from lakehouse.pipelines import functions as F`.

PySpark takes half a second to import. A pipeline that imports this module instead can be declared, listed, and found to have nothing
to do without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.functions import *  # noqa: F403 - type checkers see the functions themselves


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what the import system asks of any module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("pyspark.sql.functions"), name)
