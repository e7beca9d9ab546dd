"""The pinned jars of Spark and of the servers: downloaded once from a Maven repository into the cache, and verified.

Python downloads them, not Java: so they come through the proxy and with the certificate authorities that Python knows,
and no Java is needed before the first jar. A download puts all of its jars into the cache or none.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import DiskFullError, JarError
from lakehouse.process.files import locked
from lakehouse.process.http_client import HttpRequest, NoAnswerError, stream

#: Called while jars are downloaded, with (bytes so far, total bytes).
Progress = Callable[[int, int], None]
_READ_TIMEOUT_S = 60
_CHUNK_BYTES = 1 << 18
_NETWORK_HINT = "Check the network, or set LAKE_MAVEN_REPO to a mirror. `lake doctor` lists what is missing."


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

#: Spark's access to s3a://: 280 MB, downloaded only if a source or a Hudi table is in a bucket.
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

#: Iceberg's access to s3:// in Spark, for a warehouse in an object store.
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
    cache: Path, repo: str = "", progress: Progress | None = None, jars: Sequence[MavenArtifact] = EMBEDDED
) -> list[Path]:
    """The paths of the jars; downloads those that are missing or have the wrong size.

    A jar of the right size is trusted: its hash was verified when it was downloaded, and hashing 140 MB at every start
    would take longer than the fast start saves. `verify_jars` (`lake doctor`) hashes them all.

    Args:
        repo: the address of a Maven repository (default: Maven Central).
    """
    folder = cache / "jars"

    def missing() -> list[MavenArtifact]:
        return [jar for jar in jars if not _has_size(folder / jar.file, jar.size)]

    if missing():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Two commands that miss the same jars download them once.
            with locked(cache / "jars.lock"):
                _download_all(missing(), folder, repo or default_repository(), progress)
        except OSError as exc:
            raise JarError(
                f"The cache {cache} cannot be written: {exc.strerror}.", "Set LAKE_CACHE to a folder of your own."
            ) from exc
    return [folder / jar.file for jar in jars]


def default_repository() -> str:
    """The address of Maven Central as Apache Ivy, which PySpark ships, has it: this project names no registry."""
    import pyspark

    jar = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    with zipfile.ZipFile(jar) as archive:
        match = re.search(
            rb"https://[\w./-]+/maven2/", archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
        )
    assert match is not None
    return match[0].decode()


def verify_jars(cache: Path, jars: Sequence[MavenArtifact] = EMBEDDED) -> list[str]:
    """Hash every jar in the cache and delete the wrong ones; returns the coordinates of the missing and wrong ones."""
    wrong = []
    for jar in jars:
        path = cache / "jars" / jar.file
        if not path.is_file() or _sha256(path) != jar.sha256:
            path.unlink(missing_ok=True)
            wrong.append(jar.coordinates)
    return wrong


def check_disk_space(cache: Path, needed: int, what: str) -> None:
    """Raise DiskFullError if the disk of the cache has fewer free bytes than needed."""
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise DiskFullError(
            f"The download of {what} needs {needed >> 20} MB in {cache} and only {free >> 20} are free.",
            "Free some space, or set LAKE_CACHE to a folder on a larger disk.",
        )


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _download_all(jars: Sequence[MavenArtifact], folder: Path, repo: str, progress: Progress | None) -> None:
    """Download and verify all jars, then move them to the folder. The caller holds the lock of the cache."""
    total = sum(jar.size for jar in jars)
    check_disk_space(folder.parent, 2 * total, "the jars")
    for leftover in folder.parent.glob("fetch-*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    arrived = 0

    def count(size: int) -> None:
        nonlocal arrived
        arrived += size
        if progress:
            progress(min(arrived, total), total)

    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as scratch:
        for jar in jars:
            _download(jar, repo, Path(scratch), count)
        for jar in jars:
            os.replace(Path(scratch) / jar.file, folder / jar.file)


def _download(jar: MavenArtifact, repo: str, folder: Path, count: Callable[[int], None]) -> None:
    target, digest = folder / jar.file, hashlib.sha256()
    request = HttpRequest(f"{repo.rstrip('/')}/{jar.path}", timeout_s=_READ_TIMEOUT_S, redirects=True)
    try:
        with stream(request) as response, target.open("wb") as out:
            if response.status != HTTPStatus.OK:
                raise _not_downloaded(jar, f"HTTP {response.status}")
            while chunk := response.read(_CHUNK_BYTES):
                out.write(chunk)
                digest.update(chunk)
                count(len(chunk))
    except NoAnswerError as exc:
        raise _not_downloaded(jar, exc.reason) from exc
    except OSError as exc:
        raise _not_downloaded(jar, exc.strerror) from exc
    if digest.hexdigest() != jar.sha256:
        raise JarError(
            f"{jar.coordinates} is not the pinned file: SHA-256 {digest.hexdigest()[:16]}…, expected {jar.sha256[:16]}….",
            "The repository has another file, or the download was cut off. Nothing was kept; try again or set LAKE_MAVEN_REPO.",
        )


def _not_downloaded(jar: MavenArtifact, reason: object) -> JarError:
    return JarError(f"{jar.coordinates} could not be downloaded: {reason}.", _NETWORK_HINT)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
