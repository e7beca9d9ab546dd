"""Artifacts of servers: downloaded once, verified, complete or not at all."""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import DiskFullError, JarError
from lakehouse.stack.fetch import artifact_path, fetch
from lakehouse.stack.model import Artifact, PythonEnvironment, ServerArchive, Wheel

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a Maven repository at an address."""
    folder = tmp_path / "maven"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        (folder / "address").write_text(f"http://127.0.0.1:{server.server_port}/")
        yield folder
        server.shutdown()
        thread.join()


def settings(tmp_path: Path, mirror: Path | None = None) -> Settings:
    repo = (mirror / "address").read_text() if mirror else ""
    flags = {"home": tmp_path / "lake", "cache": tmp_path / "cache", "maven_repo": repo}
    return load_settings(flags, environ={})


def packed(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if "/bin/" in name else 0o600
            tar.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.LNKTYPE, target
            tar.addfile(member)
    return buffer.getvalue()


def published(mirror: Path, content: bytes, keep: tuple[str, ...] = (), sha256: str = "") -> ServerArchive:
    folder = mirror / "org" / "test" / "server" / "1.0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server-1.0-bin.tar.gz").write_bytes(content)
    digest = sha256 or hashlib.sha256(content).hexdigest()
    return ServerArchive(
        MavenArtifact("org.test", "server", "1.0", digest, len(content), "bin", ext="tar.gz"), 1000, keep
    )


def bring(own: Settings, artifact: Artifact) -> Path:
    fetch(own, [artifact], lambda text: nullcontext())
    return artifact_path(own, artifact)


def test_a_server_is_unpacked_once_without_its_top_folder(tmp_path: Path, mirror: Path) -> None:
    own = settings(tmp_path, mirror)
    dist = published(mirror, packed({"server-1.0/bin/run": b"#!", "server-1.0/lib/a.jar": b"a"}))
    folder = bring(own, dist)
    assert (folder / "lib" / "a.jar").read_bytes() == b"a"
    assert (folder / "bin" / "run").stat().st_mode & 0o100
    assert not list((own.cache / "jars").glob("*.tar.gz"))  # it would only take space
    (folder / "mark").touch()
    (mirror / "org").rename(mirror / "gone")
    assert (bring(own, dist) / "mark").exists()


def test_only_the_paths_to_keep_are_unpacked_even_if_they_link_to_others(tmp_path: Path, mirror: Path) -> None:
    content = packed(
        {"s/lib/a.jar": b"a", "s/plugin/no/shared.jar": b"shared", "s/plugin/no/own.jar": b"own"},
        {"s/plugin/yes/shared.jar": "s/plugin/no/shared.jar", "s/plugin/yes/a.jar": "s/lib/a.jar"},
    )
    folder = bring(settings(tmp_path, mirror), published(mirror, content, keep=("lib", "plugin/yes")))
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["lib/a.jar", "plugin/yes/a.jar", "plugin/yes/shared.jar"]
    assert (folder / "plugin" / "yes" / "shared.jar").read_bytes() == b"shared"
    assert sorted(path.name for path in (folder / "plugin").iterdir()) == ["yes"]


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path, mirror: Path) -> None:
    own = settings(tmp_path, mirror)
    dist = published(mirror, packed({"s/a": b"a"}), sha256="0" * 64)
    with pytest.raises(JarError, match="not the pinned file"):
        bring(own, dist)
    assert not artifact_path(own, dist).exists()


def test_an_archive_that_leads_elsewhere_is_refused(tmp_path: Path, mirror: Path) -> None:
    own = settings(tmp_path, mirror)
    dist = published(mirror, packed({"s/a": b"a", "s/../../../evil": b"evil"}))
    with pytest.raises(JarError, match="leads out of it"):
        bring(own, dist)
    assert not artifact_path(own, dist).exists() and not list(tmp_path.rglob("evil"))
    assert not list(artifact_path(own, dist).parent.glob("*.part-*"))


def test_a_full_disk_is_an_error_before_anything_is_downloaded(tmp_path: Path, mirror: Path) -> None:
    own = settings(tmp_path, mirror)
    dist = published(mirror, packed({"s/a": b"a"}))
    with pytest.raises(DiskFullError, match="server needs"):
        bring(own, ServerArchive(dist.archive, 1 << 60))
    assert not (own.cache / "jars").exists()


# ---- wheels: the real pip, a folder instead of an index ---------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    file = folder / "tiny_server-1.0-py3-none-any.whl"
    files = {
        "tiny_server/program": b"run",
        "tiny_server-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0\n",
        "tiny_server-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(file, "w") as archive:
        record = ""
        for name, content in files.items():
            archive.writestr(name, content)
            mark = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={mark},{len(content)}\n"
        archive.writestr("tiny_server-1.0.dist-info/RECORD", record + "tiny_server-1.0.dist-info/RECORD,,\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return file


def test_a_wheel_is_installed_apart(tmp_path: Path, wheel: Path) -> None:
    pinned = Wheel("tiny-server", "1.0", ("0" * 64, hashlib.sha256(wheel.read_bytes()).hexdigest()), 1000)
    folder = bring(settings(tmp_path), pinned)
    assert (folder / "tiny_server" / "program").read_text() == "run"


def test_a_wheel_that_is_not_the_pinned_one_is_refused(tmp_path: Path, wheel: Path) -> None:
    own = settings(tmp_path)
    pinned = Wheel("tiny-server", "1.0", ("0" * 64,), 1000)
    with pytest.raises(JarError, match="tiny-server 1.0 could not be downloaded"):
        bring(own, pinned)
    assert not artifact_path(own, pinned).exists()


# ---- Python environments ----------------------------------------------------------------------------------------


def environment(tmp_path: Path, wheel: Path, digest: str = "") -> PythonEnvironment:
    requirements = tmp_path / "requirements.txt"
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements.write_text(f"tiny-server==1.0 \\\n    --hash=sha256:{digest}\n")
    return PythonEnvironment("tiny", "1.0", requirements, 1000)


def test_an_environment_has_its_packages_and_not_ours(tmp_path: Path, wheel: Path) -> None:
    folder = bring(settings(tmp_path), environment(tmp_path, wheel))
    code = "import tiny_server, importlib.util as u; print([u.find_spec(name) is None for name in ('click', 'pip')])"
    done = subprocess.run([folder / "bin" / "python", "-c", code], capture_output=True, text=True, env={})
    assert (done.stdout.strip(), done.stderr) == ("[True, True]", "")


def test_progress_of_an_environment_is_reported(tmp_path: Path, wheel: Path) -> None:
    seen: list[tuple[int, int]] = []
    fetch(settings(tmp_path), [environment(tmp_path, wheel)], lambda text: nullcontext(lambda *of: seen.append(of)))
    assert seen and all(0 <= done <= total == 1000 for done, total in seen)


def test_an_environment_whose_installation_was_killed_is_installed_again(tmp_path: Path, wheel: Path) -> None:
    own, wanted = settings(tmp_path), environment(tmp_path, wheel)
    target = artifact_path(own, wanted)
    leftover = target.parent / f"{target.name}.part-killed" / "complete" / "bin"
    leftover.mkdir(parents=True)
    assert (bring(own, wanted) / "bin" / "python").exists()
    assert not leftover.exists()


def test_other_packages_are_another_environment(tmp_path: Path, wheel: Path) -> None:
    own, wanted = settings(tmp_path), environment(tmp_path, wheel)
    first = artifact_path(own, wanted)
    assert artifact_path(own, environment(tmp_path, wheel, "0" * 64)) != first


def test_an_environment_with_a_file_that_is_not_the_pinned_one_is_refused(tmp_path: Path, wheel: Path) -> None:
    own, wanted = settings(tmp_path), environment(tmp_path, wheel, "0" * 64)
    with pytest.raises(JarError, match=r"tiny 1\.0 could not be downloaded"):
        bring(own, wanted)
    assert not artifact_path(own, wanted).exists()
    assert not list(artifact_path(own, wanted).parent.glob("*.part-*"))
