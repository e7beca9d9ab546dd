"""Downloads what the services run on into the cache: jars, archives of servers, wheels, Python environments. Each file is verified when it is downloaded."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import JarError
from lakehouse.engines.spark.jars import check_disk_space, ensure_jars
from lakehouse.lake.spark import DownloadReporter
from lakehouse.process.daemons import module_command
from lakehouse.process.files import locked
from lakehouse.stack.model import Artifact, PythonEnvironment, ServerArchive, Wheel

_WHEEL_TIMEOUT_S = 1800
_ENVIRONMENT_TIMEOUT_S = 3600
_PROGRESS_INTERVAL_S = 0.2


def artifact_path(settings: Settings, artifact: Artifact) -> Path:
    """The path of an artifact in the cache."""
    match artifact:
        case MavenArtifact():
            return settings.cache / "jars" / artifact.file
        case ServerArchive(archive=archive):
            return settings.cache / "dist" / f"{archive.name}-{archive.version}"
        case Wheel(name=name, version=version):
            return settings.cache / "dist" / f"{name}-{version}"
        case PythonEnvironment(name=name, version=version, requirements=requirements):
            packages = hashlib.sha256(requirements.read_bytes()).hexdigest()[:8]
            return settings.cache / "dist" / f"{name}-{version}-{packages}"


def fetch(settings: Settings, artifacts: Iterable[Artifact], download: DownloadReporter) -> None:
    """Download the artifacts that the cache lacks."""
    artifacts = list(dict.fromkeys(artifacts))
    jars = [artifact for artifact in artifacts if isinstance(artifact, MavenArtifact)]
    _fetch_jars(settings, jars, "Downloading jars", download)
    settings.cache.mkdir(parents=True, exist_ok=True)
    for artifact in artifacts:
        if not isinstance(artifact, MavenArtifact) and not artifact_path(settings, artifact).is_dir():
            _install(settings, artifact, download)


def _fetch_jars(settings: Settings, jars: list[MavenArtifact], text: str, download: DownloadReporter) -> None:
    with download(text) as progress:
        ensure_jars(settings.cache, settings.maven_repo, progress, jars=jars)


def _install(
    settings: Settings, artifact: ServerArchive | Wheel | PythonEnvironment, download: DownloadReporter
) -> None:
    match artifact:
        case ServerArchive(archive=archive, size=size, keep=keep):
            check_disk_space(settings.cache, size + 2 * archive.size, archive.name)
            _fetch_jars(settings, [archive], f"Downloading {archive.name} {archive.version}", download)
            file = artifact_path(settings, archive)
            _create_folder(artifact_path(settings, artifact), lambda folder: _unpack(file, keep, folder))
            file.unlink(missing_ok=True)
        case Wheel() as wheel:
            check_disk_space(settings.cache, 2 * wheel.size, wheel.name)
            with download(f"Downloading {wheel.name} {wheel.version}"):
                _create_folder(artifact_path(settings, wheel), lambda folder: _install_wheel(wheel, folder))
        case PythonEnvironment() as environment:
            check_disk_space(settings.cache, 2 * environment.size, environment.name)
            with download(f"Installing {environment.name} {environment.version}") as progress:
                target = artifact_path(settings, environment)
                _create_folder(target, lambda folder: _install_environment(environment, folder, progress))


def _create_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """Create a folder that appears complete or not at all, in one process at a time."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(target.name + ".lock")):
            if target.is_dir():
                return
            for leftover in target.parent.glob(f"{target.name}.part-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f"{target.name}.part-", dir=target.parent) as scratch:
                folder = Path(scratch) / "complete"
                folder.mkdir()
                fill(folder)
                folder.rename(target)
    except OSError as exc:
        raise JarError(
            f"{target.name} could not be put into the cache: {exc.strerror or exc}.",
            "Is the disk full? LAKE_CACHE moves the cache.",
        ) from exc


def _unpack(archive: Path, keep: tuple[str, ...], folder: Path) -> None:
    """Unpack the paths to keep, without the archive's top folder.

    Files that several plugins share are hard links in the archive, perhaps to a file outside these paths: its target is
    unpacked too, and deleted with the scratch folder.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, tarfile.open(archive) as tar:
        kept = {member.name: member for member in tar if _is_kept(member.name, keep)}
        targets = {member.linkname for member in kept.values() if member.islnk()}
        members = [member for member in tar if member.name in kept or member.name in targets]
        try:
            tar.extractall(scratch, members, filter="data")
        except tarfile.FilterError as exc:
            raise JarError(f"The archive holds a file that leads out of it: {exc}.", "Nothing was kept.") from exc
        (top,) = Path(scratch).iterdir()
        for name in keep or [entry.name for entry in top.iterdir()]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).rename(folder / name)


def _is_kept(name: str, keep: tuple[str, ...]) -> bool:
    path = name.partition("/")[2]
    return not keep or any(path == kept or path.startswith(f"{kept}/") for kept in keep)


def _install_wheel(wheel: Wheel, folder: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in wheel.hashes)
        requirements.write(f"{wheel.name}=={wheel.version} {hashes}\n")
        requirements.flush()
        options = [
            "--target",
            str(folder),
            "--no-deps",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "-r",
            requirements.name,
        ]
        done = subprocess.run(
            [*_installer(), "--quiet", *options], capture_output=True, text=True, timeout=_WHEEL_TIMEOUT_S
        )
    if done.returncode != 0:
        raise _not_downloaded(wheel, done.stderr)


def _install_environment(
    environment: PythonEnvironment, folder: Path, progress: Callable[[int, int], None] | None
) -> None:
    """Create a virtual environment with the packages. It works wherever it is moved to: its programs are run as modules."""
    venv.create(folder, symlinks=True)
    total = len(re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==", environment.requirements.read_text(), re.MULTILINE))
    options = ["--no-deps", "--require-hashes", "-r", str(environment.requirements)]
    command = [*_installer(folder / "bin" / "python"), "--quiet", *options]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        try:
            deadline = time.monotonic() + _ENVIRONMENT_TIMEOUT_S
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise JarError(
                        f"Installing {environment.name} took too long.", "Check the network, then try again."
                    )
                if progress is not None:
                    installed = sum(1 for _ in folder.glob("lib/python*/site-packages/*.dist-info"))
                    progress(environment.size * installed // total, environment.size)
                time.sleep(_PROGRESS_INTERVAL_S)
        except BaseException:  # also when the user interrupts: the installer would go on in a folder that is deleted
            process.kill()
            raise
        if process.returncode != 0:
            errors.seek(0)
            raise _not_downloaded(environment, errors.read())


def _not_downloaded(artifact: Wheel | PythonEnvironment, output: str) -> JarError:
    causes = [line for line in output.splitlines() if "hash" in line.lower() or "error" in line.lower()]
    reason = causes[0].strip() if causes else "the installer failed"
    return JarError(
        f"{artifact.name} {artifact.version} could not be downloaded: {reason}",
        "Check the network and pip's own settings, then try again.",
    )


def _installer(python: Path | None = None) -> list[str]:
    """The command to install packages for a Python (default: this one): pip where this Python has it, else uv."""
    from importlib.metadata import distributions

    # Importing pip would make setuptools replace Python's distutils with its own.
    if next(iter(distributions(name="pip")), None) is not None:
        other = ["--python", str(python)] if python else []
        return module_command("pip", "--disable-pip-version-check", *other, "install")
    if uv := shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent)):
        return [uv, "pip", "install", *(["--python", str(python)] if python else [])]
    raise JarError("There is neither pip nor uv to fetch a wheel with.", f"{sys.executable} -m ensurepip")
