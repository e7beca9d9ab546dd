"""The jars Spark needs: one pinned list, fetched once into the user's cache, checked, then never asked for again.

The Ivy resolver that the pyspark wheel carries does the fetching, so no repository's address stands in our code.
A set of jars lives in a folder named after the pins; it appears there complete or not at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehouse.core.errors import DiskFullError, JarError, NotInstalledError
from lakehouse.engines.spark.java import Java
from lakehouse.engines.spark.truststore import java_trust_options

#: (bytes so far, bytes in all) while jars arrive.
Progress = Callable[[int, int], None]
_FETCH_TIMEOUT_S = 1800


@dataclass(frozen=True)
class MavenArtifact:
    """One pinned artefact."""

    group: str
    name: str
    version: str
    sha256: str
    size: int
    classifier: str = ""
    """Which of several jars of one version; nothing for the plain one."""
    ext: str = "jar"
    """What kind of file it is; a whole server comes as tar.gz."""

    @property
    def file(self) -> str:
        return "-".join(filter(None, (self.name, self.version, self.classifier))) + f".{self.ext}"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


EMBEDDED = (
    MavenArtifact(
        "org.apache.iceberg",
        "iceberg-spark-runtime-3.5_2.12",
        "1.12.0",
        "8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc",
        48_252_525,
    ),
    MavenArtifact(
        "org.apache.hudi",
        "hudi-spark3.5-bundle_2.12",
        "1.2.0",
        "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
        80_667_825,
    ),
    MavenArtifact(
        "org.xerial",
        "sqlite-jdbc",
        "3.53.4.0",
        "bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb",
        12_002_370,
    ),
    MavenArtifact(
        "org.postgresql",
        "postgresql",
        "42.7.12",
        "31fbf6f06b2217fb51d5100cee51b22625cc81640da0679b47914e54c1e6377c",
        1_142_967,
    ),
)

#: How Spark reads s3a://; 280 MB that only those fetch who name a bucket.
S3A = (
    MavenArtifact(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.3.4",
        "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a",
        962_685,
    ),
    MavenArtifact(
        "com.amazonaws",
        "aws-java-sdk-bundle",
        "1.12.262",
        "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5",
        280_645_251,
    ),
)

#: How Iceberg in Spark reads and writes s3://; only for a warehouse in an object store.
ICEBERG_AWS = (
    MavenArtifact(
        "org.apache.iceberg",
        "iceberg-aws-bundle",
        "1.12.0",
        "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
        69_034_612,
    ),
)


def ensure_jars(
    cache: Path,
    java: Callable[[], Java],
    repo: str = "",
    progress: Progress | None = None,
    jars: Sequence[MavenArtifact] = EMBEDDED,
) -> list[Path]:
    """The paths of the jars, fetched first if any is missing or is not what was pinned.

    A jar whose size is right is trusted: its hash was checked when it was put there, and hashing 140 MB at every
    start would cost more than Spark's start saves. `verify_jars` (`lake doctor`) hashes them all.
    """
    folder = cache / "jars"
    paths = [folder / jar.file for jar in jars]
    missing = [jar for jar, path in zip(jars, paths, strict=True) if not _looks_right(path, jar)]
    if missing:
        with _one_at_a_time(cache):
            missing = [jar for jar in missing if not _looks_right(folder / jar.file, jar)]
            if missing:
                _fetch(missing, folder, java(), repo, progress)
    return paths


def verify_jars(cache: Path, jars: Sequence[MavenArtifact] = EMBEDDED) -> list[str]:
    """Hash every jar in the cache; the coordinates of those that are missing or wrong. Wrong ones are removed."""
    wrong = []
    for jar in jars:
        path = cache / "jars" / jar.file
        if not path.is_file() or _sha256(path) != jar.sha256:
            path.unlink(missing_ok=True)
            wrong.append(jar.coordinates)
    return wrong


def _looks_right(path: Path, jar: MavenArtifact) -> bool:
    return path.is_file() and path.stat().st_size == jar.size


@contextmanager
def _one_at_a_time(cache: Path) -> Iterator[None]:
    """Two commands that both miss the jars fetch them once. The lock goes with its process, however that ends."""
    import fcntl

    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "jars.lock").open("w")
    except OSError as exc:
        raise JarError(
            f"The cache {cache} cannot be written: {exc.strerror}.", "Set LAKE_CACHE to a folder of your own."
        ) from exc
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: Sequence[MavenArtifact], folder: Path, java: Java, repo: str, progress: Progress | None) -> None:
    wanted = sum(jar.size for jar in jars)
    free = shutil.disk_usage(folder.parent).free
    if free < 2 * wanted:
        raise DiskFullError(
            f"The jars need {2 * wanted // 1024 // 1024} MB in {folder.parent} and only {free // 1024 // 1024} are free.",
            "Free some space, or set LAKE_CACHE to a folder on a larger disk.",
        )
    for left_behind in folder.parent.glob("fetch-*"):  # by a fetch that was killed: we hold the lock, so nobody uses it
        shutil.rmtree(left_behind, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as scratch:
        work = Path(scratch)
        _run_ivy(jars, work, java, repo, progress)
        for jar in jars:
            arrived = work / "out" / jar.file
            if not arrived.is_file():
                raise JarError(f"{jar.coordinates} did not arrive.", "Try again; LAKE_MAVEN_REPO names another mirror.")
            if (found := _sha256(arrived)) != jar.sha256:
                raise JarError(
                    f"{jar.coordinates} is not the pinned file: SHA-256 {found[:16]}…, wanted {jar.sha256[:16]}….",
                    "The mirror serves another file. Nothing was kept; try again or set LAKE_MAVEN_REPO.",
                )
        folder.mkdir(exist_ok=True)
        for jar in jars:
            os.replace(work / "out" / jar.file, folder / jar.file)


def _run_ivy(jars: Sequence[MavenArtifact], work: Path, java: Java, repo: str, progress: Progress | None) -> None:
    (work / "ivy.xml").write_text(_ivy_file(jars))
    command = [str(java.program), *java_trust_options(work), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml")]
    command += ["-retrieve", str(work / "out" / "[artifact]-[revision](-[classifier]).[ext]")]
    if repo:
        (work / "settings.xml").write_text(_ivy_settings(repo))
        command += ["-settings", str(work / "settings.xml")]
    log = work / "ivy.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            _watch(process, work / "cache", sum(jar.size for jar in jars), progress)
        finally:
            # Ctrl-C, a timeout or a bug of ours must not leave a download running.
            if process.poll() is None:
                process.kill()
            process.wait()
    if process.returncode != 0:
        raise JarError(f"The jars could not be fetched: {_reason(log.read_text())}", _NETWORK_HINT)


_NETWORK_HINT = "Check the network, or name a mirror: LAKE_MAVEN_REPO=https://… (lake doctor says what is missing)."


def _watch(process: subprocess.Popen[bytes], cache: Path, total: int, progress: Progress | None) -> None:
    """Wait for the resolver, telling how many bytes have come."""
    deadline = time.monotonic() + _FETCH_TIMEOUT_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise JarError(f"Fetching the jars took longer than {_FETCH_TIMEOUT_S // 60} minutes.", _NETWORK_HINT)
        if progress:
            progress(min(_arrived(cache), total), total)
        time.sleep(0.1)


def _arrived(cache: Path) -> int:
    sizes = 0
    for path in cache.rglob("*"):
        try:
            sizes += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # the resolver renames a .part file when it is complete
            continue
    return sizes


def _reason(log: str) -> str:
    told = re.search(r"Server access error.*\((?P<why>[^)]*)\)", log) or re.search(r"(?P<why>\S+: not found)", log)
    return told["why"].strip() + "." if told else "the resolver failed."


def _ivy_jar() -> Path:
    try:
        import pyspark
    except ImportError as exc:
        raise NotInstalledError("pyspark", "spark") from exc
    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise JarError("This pyspark carries no Ivy resolver.", "Reinstall it: pip install --force-reinstall pyspark")
    return found[0]


def _ivy_file(jars: Sequence[MavenArtifact]) -> str:
    # Naming the artefact keeps Ivy from fetching sources and javadoc as well.
    parts = "".join(
        f'<dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}" transitive="false">'
        f'<artifact name="{jar.name}" type="{jar.ext}" ext="{jar.ext}"{_classified(jar)}/></dependency>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="lakehouse" module="jars"/>'
        f"<dependencies>{parts}</dependencies></ivy-module>"
    )


def _classified(jar: MavenArtifact) -> str:
    return f' m:classifier="{jar.classifier}"' if jar.classifier else ""


def _ivy_settings(repo: str) -> str:
    from xml.sax.saxutils import quoteattr

    return (
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(repo)}/></resolvers></ivysettings>'
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
