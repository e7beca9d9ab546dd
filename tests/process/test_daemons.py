"""A detached daemon starts once, says why it does not, and its log does not grow without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.core.errors import LakeError
from lakehouse.process import daemons
from lakehouse.process.daemons import (
    DaemonStartError,
    failure_line,
    module_command,
    open_log,
    run_main,
    sole_daemon,
    start_daemon,
)
from lakehouse.process.files import locked
from lakehouse.process.pids import wait_until

_DAEMON = """
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "stdin").write_text(sys.stdin.read())
(folder / "pid").write_text(str(os.getpid()))
time.sleep(60)
"""


def test_a_daemon_is_ready_when_it_says_so_and_gets_its_settings_by_standard_input(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = [sys.executable, "-c", _DAEMON, str(tmp_path)]
    start_daemon(command, '{"password": "secret"}', tmp_path / "d.log", lambda: pid.is_file() and pid.read_text(), 20)
    try:
        assert (tmp_path / "stdin").read_text() == '{"password": "secret"}'
        assert b"secret" not in Path(f"/proc/{pid.read_text()}/cmdline").read_bytes()
        assert os.getsid(int(pid.read_text())) != os.getsid(0)  # a Ctrl-C in this terminal does not reach it
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
        os.waitpid(int(pid.read_text()), 0)


def test_a_daemon_that_ends_says_why(tmp_path: Path) -> None:
    (tmp_path / "d.log").write_text("an older line: RuntimeError of yesterday\n")
    command = [sys.executable, "-c", "import sys; sys.stdin.read(); raise RuntimeError('the port 1 is taken')"]
    with pytest.raises(DaemonStartError, match="the port 1 is taken"):
        start_daemon(command, "", tmp_path / "d.log", lambda: False, 20)


def test_a_daemon_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(DaemonStartError, match="not ready within"):
        start_daemon([sys.executable, "-c", _DAEMON, str(tmp_path)], "", tmp_path / "d.log", lambda: False, 2)
    assert not pid.exists() or wait_until(lambda: not Path(f"/proc/{pid.read_text()}").exists(), 5)


def test_only_one_daemon_runs(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), pytest.raises(SystemExit) as ended, sole_daemon(tmp_path / "lock"):
        pass
    assert ended.value.code == daemons.ALREADY_RUNNING
    with sole_daemon(tmp_path / "lock"):
        pass


def test_an_error_of_ours_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise LakeError("The disk is full.", "Free some space.")

    assert (run_main(fail), run_main(lambda: None)) == (1, 0)
    assert capsys.readouterr().err == "The disk is full. Free some space.\n"


def test_a_large_log_is_renamed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "_MAX_BYTES", 10)
    log = tmp_path / "logs" / "spark.log"
    for text in (b"first, long enough", b"second, long enough", b"third"):
        with open_log(log) as output:
            output.write(text)
    assert (log.read_bytes(), log.with_suffix(".log.1").read_bytes()) == (b"third", b"second, long enough")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", "it wrote nothing to its log."),
        ("all is well here\nand here as well\n", "and here as well"),
        ("java.net.BindException: Address already in use\n\tat java.base/x.y(Z.java)\n", "Address already in use"),
        ("Error occurred during initialization of VM\nCould not reserve enough space for heap\n", "Could not reserve"),
    ],
)
def test_the_failure_line_is_the_reason(tmp_path: Path, lines: str, expected: str) -> None:
    log = tmp_path / "d.log"
    log.write_text("an earlier run: Exception of yesterday\n" + lines)
    assert expected in failure_line(log, since=len("an earlier run: Exception of yesterday\n"))


def test_no_file_of_the_working_folder_takes_the_place_of_a_library(tmp_path: Path) -> None:
    for library in ("click", "lakehouse", "pyarrow", "random"):
        (tmp_path / f"{library}.py").write_text("raise SystemExit('a file of the user')")
    shown = subprocess.run(
        module_command("lakehouse", "--help"), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    sources = Path(daemons.__file__).parents[1].rglob("*.py")
    assert [file.name for file in sources if 'sys.executable, "-m"' in file.read_text()] == []
