"""What the services run on, fetched once into the user's cache: jars, whole servers, wheels; checked, then trusted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.core.errors import DiskFullError, JarError
from lakehouse.engines.spark.jars import MavenArtifact, ensure_jars
from lakehouse.engines.spark.java import find_java
from lakehouse.process.locks import locked
from lakehouse.stack.model import Artifact, ServerArchive, Wheel

Fetching = Callable[[str], AbstractContextManager[Callable[[int, int], None] | None]]
_WHEEL_TIMEOUT_S = 1800


def artifact_path(settings: Settings, artifact: Artifact) -> Path:
    """Where an artifact lies once it was fetched."""
    match artifact:
        case MavenArtifact():
            return settings.cache / "jars" / artifact.file
        case ServerArchive(archive=archive):
            return settings.cache / "dist" / f"{archive.name}-{archive.version}"
        case Wheel(name=name, version=version):
            return settings.cache / "dist" / f"{name}-{version}"


def fetch(settings: Settings, artifacts: Iterable[Artifact], fetching: Fetching) -> None:
    """Bring everything that is missing; what is there already is not asked for again."""
    artifacts = list(dict.fromkeys(artifacts))
    jars = [each for each in artifacts if isinstance(each, MavenArtifact)]
    dists = [
        each for each in artifacts if isinstance(each, ServerArchive) and not artifact_path(settings, each).is_dir()
    ]
    wheels = [each for each in artifacts if isinstance(each, Wheel) and not artifact_path(settings, each).is_dir()]
    _fetch_jars(settings, jars, "Fetching jars", fetching)
    for dist in dists:
        _check_room(settings.cache, dist.size + 2 * dist.archive.size, dist.archive.name)
        _fetch_jars(settings, [dist.archive], f"Fetching {dist.archive.name} {dist.archive.version}", fetching)
        _install(settings, dist, lambda into, dist=dist: _unpack(artifact_path(settings, dist.archive), dist, into))  # type: ignore[misc]
        artifact_path(settings, dist.archive).unlink(missing_ok=True)
    for wheel in wheels:
        _check_room(settings.cache, 2 * wheel.size, wheel.name)
        with fetching(f"Fetching {wheel.name} {wheel.version}"):
            _install(settings, wheel, lambda into, wheel=wheel: _install_wheel(wheel, into))  # type: ignore[misc]


def _fetch_jars(settings: Settings, jars: list[MavenArtifact], text: str, fetching: Fetching) -> None:
    with fetching(text) as progress:
        ensure_jars(
            settings.cache, lambda: find_java(settings.spark.java_home), settings.maven_repo, progress, jars=jars
        )


def _install(settings: Settings, artifact: Artifact, make: Callable[[Path], None]) -> None:
    """A folder that appears complete or not at all, made by one command at a time."""
    target = artifact_path(settings, artifact)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(target.name + ".lock")):
            if target.is_dir():
                return
            for left_behind in target.parent.glob(f"{target.name}.part-*"):  # by a command that was killed
                shutil.rmtree(left_behind, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f"{target.name}.part-", dir=target.parent) as scratch:
                whole = Path(scratch) / "whole"
                whole.mkdir()
                make(whole)
                whole.rename(target)
    except OSError as exc:
        raise JarError(
            f"{target.name} could not be put into the cache: {exc.strerror or exc}.",
            "Is the disk full? LAKE_CACHE moves the cache.",
        ) from exc


def _unpack(archive: Path, dist: ServerArchive, into: Path) -> None:
    """Unpack what is wanted, without the archive's own top folder.

    Files that several folders share are hard links in the archive, perhaps to one that is not wanted: that one is unpacked
    for them to link to, and taken away in the end.
    """
    moved: dict[str, Path] = {}
    shared = into / ".shared"
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        wanted = {each.name: each for each in members if not each.isdir() and _is_wanted(each.name, dist.keep)}
        linked = {each.linkname for each in wanted.values() if each.islnk()}
        for member in (each for each in members if each.isreg()):
            if member.name in wanted or member.name in linked:
                top = into if member.name in wanted else shared
                moved[member.name] = _write(tar, member, top / _inside(member.name))
        for link in (each for each in wanted.values() if each.islnk()):
            path = into / _inside(link.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.hardlink_to(moved[link.linkname])
    shutil.rmtree(shared, ignore_errors=True)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> Path:
    content = tar.extractfile(member)
    assert content is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("wb") as out:
        shutil.copyfileobj(content, out, 1 << 20)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    return path


def _inside(name: str) -> str:
    """A member's path below the archive's top folder; one that would lead elsewhere is no path of ours."""
    path = name.partition("/")[2]
    if path.startswith("/") or ".." in path.split("/"):
        raise JarError(f"The archive holds a file that leads out of it: {name}.", "Nothing was kept.")
    return path


def _is_wanted(name: str, keep: tuple[str, ...]) -> bool:
    inside = _inside(name)
    return not keep or any(inside == each or inside.startswith(f"{each}/") for each in keep)


def _install_wheel(wheel: Wheel, into: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        hashes = " ".join(f"--hash=sha256:{each}" for each in wheel.hashes)
        wanted.write(f"{wheel.name}=={wheel.version} {hashes}\n")
        wanted.flush()
        options = ["--target", str(into), "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", wanted.name]
        done = subprocess.run(
            [*_installer(), "install", "--quiet", *options], capture_output=True, text=True, timeout=_WHEEL_TIMEOUT_S
        )
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        why = next(
            (line for line in words if "hash" in line.lower() or "error" in line.lower()), "the installer failed"
        )
        raise JarError(
            f"{wheel.name} {wheel.version} could not be fetched: {why.strip()}",
            "Check the network and pip's own settings, then try again.",
        )


def _installer() -> list[str]:
    """pip where this Python has it, else uv."""
    from importlib.metadata import distributions

    # Importing pip would make setuptools replace Python's distutils with its own.
    if next(iter(distributions(name="pip")), None) is not None:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv := shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent)):
        return [uv, "pip"]
    raise JarError("There is neither pip nor uv to fetch a wheel with.", f"{sys.executable} -m ensurepip")


def _check_room(cache: Path, needed: int, what: str) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise DiskFullError(
            f"{what} needs {needed >> 20} MB in {cache} and only {free >> 20} are free.",
            "Free some space, or set LAKE_CACHE to a folder on a larger disk.",
        )
