"""Compiles the class into src/lakehouse/engines/spark/local_files.jar, always to the same bytes.

Hadoop's local file system starts a process `chmod` for each file that it creates, because its native library is not installed: some
80 processes in a run of a few thousand rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.jdk_net.build import pack

from lakehouse.engines.spark.launch import spark_home

HERE = Path(__file__).parent
JAR = HERE.parents[1] / "src" / "lakehouse" / "engines" / "spark" / "local_files.jar"


def build(jar: Path) -> None:
    (hadoop,) = (spark_home() / "jars").glob("hadoop-client-api-*.jar")
    pack(jar, HERE, ["-cp", str(hadoop)])


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else JAR)
