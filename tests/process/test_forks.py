"""Commands run in children of a process that stays: as if each had a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lakehouse.process.forks import CommandLostError, ForkedCommand, run_forked
from lakehouse.process.pids import wait_until

SOCKET = "s"
SERVER = """
import os, sys
from pathlib import Path
from lakehouse.process.forks import ForkServer
from lakehouse.process.sockets import listen_unix

folder, state = Path(sys.argv[1]), []
exists = lambda name: (folder / name).exists()
server = ForkServer(listen_unix(folder / "s"), lambda command: not exists("changed"), lambda idle: not exists("stop"))
command = server.serve()
if command is None:
    sys.exit(7)
command.enter()
exec(sys.argv[1])
"""
#: Writes what the command sees, and changes all of it.
LOOK = """
import json
print(json.dumps([state, os.environ.get("TILL"), os.getcwd(), sys.stdin.readline(), os.isatty(1)]))
state.append(1)
os.environ["TILL"] = "changed"
os.chdir("/")
sys.path.insert(0, "elsewhere")
sys.exit(5)
"""
WAIT = """
import time
Path("started").write_text(str(os.getpid()))
try:
    time.sleep(300)
except KeyboardInterrupt:
    print("Stopped.")
    sys.exit(130)
"""
CLIENT = """
import sys
from pathlib import Path
from lakehouse.process.forks import ForkedCommand, run_forked
sys.exit(run_forked(Path(sys.argv[1]), ForkedCommand.of_this_process(sys.argv[2:])))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], start_new_session=True)
    assert wait_until(lambda: (tmp_path / SOCKET).exists(), 60)
    yield process
    process.kill()
    process.wait()


def client(folder: Path, code: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """A process that has the code run by the server."""
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(folder / SOCKET), code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **(env or {})},
    )


def started(folder: Path) -> psutil.Process:
    """The child that runs WAIT."""
    assert wait_until(lambda: (folder / "started").exists() and (folder / "started").read_text(), 60)
    return psutil.Process(int((folder / "started").read_text()))


def test_a_command_has_the_surroundings_of_who_asks_and_leaves_nothing_to_the_next(
    server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    for till in ("one", "two"):
        asking = client(tmp_path, LOOK, {"TILL": till, "LONG": "x" * 100_000})
        output, _ = asking.communicate("from the keyboard\n", timeout=60)
        assert asking.returncode == 5
        assert json.loads(output) == [[], till, str(tmp_path), "from the keyboard\n", False]


def test_ctrl_c_reaches_the_command_and_the_server_goes_on(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    asking = client(tmp_path, WAIT)
    started(tmp_path)
    asking.send_signal(signal.SIGINT)
    output, _ = asking.communicate(timeout=60)
    assert (asking.returncode, output) == (130, "Stopped.\n")
    assert run_forked(tmp_path / SOCKET, ForkedCommand.of_this_process(["sys.exit(3)"])) == 3


def test_a_command_ends_with_the_process_that_asked_for_it(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    asking = client(tmp_path, WAIT)
    child = started(tmp_path)
    asking.kill()
    asking.communicate()
    child.wait(timeout=60)


@pytest.mark.parametrize("victim", ["child", "server"])
def test_a_killed_command_is_reported_and_not_run_again(
    server: subprocess.Popen[bytes], tmp_path: Path, victim: str
) -> None:
    pid = {"child": "os.getpid()", "server": "os.getppid()"}[victim]
    code = f"import time; (folder / 'runs').open('a').write('x'); os.kill({pid}, 9); time.sleep(300)"
    command = ForkedCommand.of_this_process([code])
    with pytest.raises(CommandLostError):
        run_forked(tmp_path / SOCKET, command)
    assert (tmp_path / "runs").read_text() == "x"
    if victim == "server":
        assert run_forked(tmp_path / SOCKET, command) is None, "a socket that nobody serves"


def test_what_does_not_fit_is_refused_and_ends_the_server(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "changed").touch()
    assert run_forked(tmp_path / SOCKET, ForkedCommand.of_this_process(["sys.exit(3)"])) is None
    assert server.wait(timeout=60) == 7


def test_it_ends_when_it_may_not_stay(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    assert server.wait(timeout=60) == 7


def test_a_process_with_threads_does_not_serve(tmp_path: Path) -> None:
    threaded = (
        f"import threading, time; threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\n{SERVER}"
    )
    done = subprocess.run([sys.executable, "-c", threaded, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert "cannot be forked safely" in done.stderr
