"""Jars: downloaded once, verified, complete or not at all; from a Maven repository on loopback."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakehouse.core.clients import MavenArtifact
from lakehouse.core.errors import DiskFullError, JarError
from lakehouse.engines.spark.jars import EMBEDDED, ensure_jars, verify_jars

CONTENT = b"PK not really a jar" + bytes(600_000)


def pinned(name: str, content: bytes = CONTENT) -> MavenArtifact:
    return MavenArtifact("org.test", name, "1.0", hashlib.sha256(content).hexdigest(), len(content))


A, B = pinned("a"), pinned("b")


class Mirror:
    """A Maven repository on loopback; `requested` lists the downloaded jars, `hold` stops a download half-way."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requested: list[str] = []
        self.hold: threading.Event | None = None
        self.half_sent = threading.Event()
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = self._head()
                if not content:
                    return
                mirror.requested.append(self.path)
                self.wfile.write(content[: len(content) // 2])
                if mirror.hold is not None:
                    mirror.half_sent.set()
                    mirror.hold.wait(30)
                self.wfile.write(content[len(content) // 2 :])

            def _head(self) -> bytes:
                content = mirror.files.get(self.path, b"")
                self.send_response(200 if content else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                return content

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a killed client hangs up; that is what the test wants

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/maven2"

    def add(self, jar: MavenArtifact, content: bytes = CONTENT) -> None:
        self.files[f"/maven2/org/test/{jar.name}/1.0/{jar.file}"] = content

    def close(self) -> None:
        if self.hold:
            self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()
    made.add(A)
    made.add(B)
    yield made
    made.close()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def in_cache(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "jars").glob("*")) if cache.exists() else []


def scratch(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.name.startswith("fetch-")]


def test_a_jar_with_a_classifier_is_another_jar(mirror: Mirror, cache: Path) -> None:
    everything = replace(A, classifier="all", sha256=hashlib.sha256(b"all").hexdigest(), size=3)
    mirror.add(everything, b"all")
    paths = ensure_jars(cache, mirror.address, jars=[B, everything])
    assert [path.name for path in paths] == ["b-1.0.jar", "a-1.0-all.jar"]
    assert paths[1].read_bytes() == b"all"


def test_jars_are_fetched_once_with_progress(mirror: Mirror, cache: Path) -> None:
    reported: list[tuple[int, int]] = []
    paths = ensure_jars(cache, mirror.address, lambda done, total: reported.append((done, total)), [A, B])
    assert [path.name for path in paths] == ["a-1.0.jar", "b-1.0.jar"]
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]
    assert len(mirror.requested) == 2
    assert len(reported) > 2
    assert reported[-1] == (2 * len(CONTENT), 2 * len(CONTENT))
    assert all(0 <= done <= total == 2 * len(CONTENT) for done, total in reported)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert verify_jars(cache, [A, B]) == []
    assert scratch(cache) == []
    assert ensure_jars(cache, "http://127.0.0.1:9/", None, [A, B]) == paths


def test_another_file_than_the_pinned_one_is_not_kept(mirror: Mirror, cache: Path) -> None:
    mirror.add(A, CONTENT[:-1] + b"!")
    with pytest.raises(JarError, match="org.test:a:1.0 is not the pinned file") as refused:
        ensure_jars(cache, mirror.address, None, [A])
    assert A.sha256[:16] in refused.value.message
    assert "LAKE_MAVEN_REPO" in refused.value.hint
    assert in_cache(cache) == []
    assert scratch(cache) == []


def test_one_wrong_jar_keeps_the_others_out_too(mirror: Mirror, cache: Path) -> None:
    mirror.add(B, CONTENT[:-1] + b"!")
    with pytest.raises(JarError, match="Nothing was kept|not the pinned file"):
        ensure_jars(cache, mirror.address, None, [A, B])
    assert in_cache(cache) == []


def test_a_jar_that_the_mirror_lacks_is_named(mirror: Mirror, cache: Path) -> None:
    with pytest.raises(JarError, match="org.test:c:1.0 could not be downloaded: HTTP 404") as refused:
        ensure_jars(cache, mirror.address, None, [A, pinned("c")])
    assert "LAKE_MAVEN_REPO" in refused.value.hint
    assert in_cache(cache) == []


def test_a_mirror_that_does_not_answer_is_an_error(cache: Path) -> None:
    with pytest.raises(JarError, match="Connection refused"):
        ensure_jars(cache, "http://127.0.0.1:9/", None, [A])


def test_a_jar_of_the_wrong_size_is_fetched_again_and_a_folder_may_be_the_mirror(
    mirror: Mirror, cache: Path, tmp_path: Path
) -> None:
    for path, content in mirror.files.items():
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / A.file).write_bytes(CONTENT[:100])
    (cache / "jars" / B.file).write_bytes(CONTENT)
    right = (cache / "jars" / B.file).stat()
    paths = ensure_jars(cache, (tmp_path / "maven2").as_uri(), None, [A, B])
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]
    assert paths[1].stat().st_ino == right.st_ino


def test_a_corrupt_jar_is_found_and_removed(cache: Path) -> None:
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / A.file).write_bytes(CONTENT[:-1] + b"!")
    (cache / "jars" / B.file).write_bytes(CONTENT)
    assert verify_jars(cache, [A, B, pinned("c")]) == ["org.test:a:1.0", "org.test:c:1.0"]
    assert in_cache(cache) == [B.file]


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JarError, match="cannot be written") as refused:
        ensure_jars(tmp_path / "file" / "cache", "", None, [A])
    assert "LAKE_CACHE" in refused.value.hint


def test_a_disk_without_room_says_how_much_is_needed(cache: Path) -> None:
    huge = MavenArtifact("org.test", "huge", "1.0", "0" * 64, 2**60)
    with pytest.raises(DiskFullError, match="MB in .* and only") as refused:
        ensure_jars(cache, "http://127.0.0.1:9/", None, [huge])
    assert "LAKE_CACHE" in refused.value.hint
    assert scratch(cache) == []


def test_the_real_list_is_pinned() -> None:
    assert len({jar.file for jar in EMBEDDED}) == len(EMBEDDED)
    for jar in EMBEDDED:
        assert len(jar.sha256) == 64
        assert jar.size > 1_000_000


# ---- more than one process --------------------------------------------------------------------------------------

FETCH = """
import sys
from pathlib import Path
from lakehouse.core.clients import MavenArtifact
from lakehouse.engines.spark.jars import ensure_jars
cache, address, sha256, size = sys.argv[1:]
print(ensure_jars(Path(cache), address, None, [MavenArtifact("org.test", "a", "1.0", sha256, int(size))])[0])
"""


def start_fetch(cache: Path, mirror: Mirror) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, str(cache), mirror.address, A.sha256, str(A.size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once_fetch_once(mirror: Mirror, cache: Path) -> None:
    mirror.hold = threading.Event()
    both = [start_fetch(cache, mirror)]
    assert mirror.half_sent.wait(30)
    both.append(start_fetch(cache, mirror))
    mirror.hold.set()
    for process in both:
        out, complaint = process.communicate(timeout=30)
        assert (process.returncode, complaint) == (0, "")
        assert Path(out.strip()).read_bytes() == CONTENT
    assert len(mirror.requested) == 1


@dataclass(frozen=True)
class AfterTheKill:
    """What was in the cache when a fetch had been killed, and when the next one had run."""

    at_once: list[str]
    later: list[str]
    content: bytes
    scratch: list[Path]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AfterTheKill]:
    """A fetch is killed when half of the jar has come; then another one runs."""
    cache = tmp_path_factory.mktemp("killed") / "cache"
    mirror = Mirror()
    mirror.add(A)
    mirror.hold = hold = threading.Event()
    process = start_fetch(cache, mirror)
    assert mirror.half_sent.wait(30)
    process.kill()
    process.communicate(timeout=30)
    at_once = in_cache(cache)
    mirror.hold = None
    (path,) = ensure_jars(cache, mirror.address, None, [A])
    yield AfterTheKill(at_once, in_cache(cache), path.read_bytes(), scratch(cache))
    hold.set()
    mirror.close()


def test_a_killed_fetch_leaves_no_half_jar_and_the_next_one_works(killed: AfterTheKill) -> None:
    assert killed.at_once == []
    assert killed.later == [A.file]
    assert killed.content == CONTENT


def test_what_a_killed_fetch_left_is_cleared_away_by_the_next(killed: AfterTheKill) -> None:
    assert killed.scratch == []
