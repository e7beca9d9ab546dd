"""`make setup` on a machine that has no Python 3.11: uv fetches one, or the message says what to do."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PYTHON = Path(sys.executable).resolve()
UV = Path(sys.executable).parent / "uv"
TOOLS = ("bash", "cat", "cp", "dirname", "env", "expand", "grep", "make", "mktemp", "rm", "sed", "touch", "uname")
REMEDIES = """Do one of these, then run `make setup` again:
  - install Python 3.11: `apt install python3.11 python3.11-venv`, `dnf install python3.11` or `brew install python@3.11`
  - name a Python 3.11 that is elsewhere: `make setup PYTHON=/path/to/python3.11`
"""
#: Says that it is 3.10 and makes virtual environments; anything else that it is asked fails.
OLDER_PYTHON = f"""#!/bin/sh
case "$*" in
  *version_info*) echo 3.10 ;;
  "-m venv"*) exec {PYTHON} "$@" ;;
  *) exit 1 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that `make setup` reads before there is an environment."""
    folder = tmp_path / "checkout"
    (folder / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "tools" / "bootstrap.sh", folder / "tools")
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The PATH of a machine without Python 3.11."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        program = shutil.which(name)
        assert program, name
        (folder / name).symlink_to(program)
    return folder


def add_older_python(programs: Path) -> None:
    file = programs / "python3"
    file.write_text(OLDER_PYTHON)
    file.chmod(0o755)


def run(command: str, checkout: Path, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    offline = {"PIP_NO_INDEX": "1", "UV_PYTHON_INSTALL_MIRROR": "http://127.0.0.1:9", "UV_HTTP_RETRIES": "0"}
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "PYTHON"))},
        **offline,
        "PATH": str(programs),
        "UV_PYTHON_INSTALL_DIR": str(checkout.parent / "pythons"),
        **variables,
    }
    return subprocess.run(
        [str(programs / "bash"), "-c", command],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_another_python_bootstraps_uv_and_without_a_network_the_message_says_what_to_do(
    checkout: Path, programs: Path
) -> None:
    add_older_python(programs)
    done = run("make setup", checkout, programs)
    assert done.returncode != 0
    assert "This machine has no Python 3.11 (python3 is 3.10): fetching uv" in done.stdout
    told = (
        "This machine has no Python 3.11 (python3 is 3.10), and uv, which would fetch it, could not be installed;"
        " the reason is above.\n" + REMEDIES + "  - let pip reach a package index: set PIP_INDEX_URL, or HTTPS_PROXY\n"
    )
    assert told in done.stderr
    assert "uv==" in done.stderr.partition(told)[0], "the reason is above"
    assert not (checkout / ".venv").exists()


def test_where_uv_cannot_fetch_python_the_message_says_what_to_do(checkout: Path, programs: Path) -> None:
    add_older_python(programs)
    (programs / "uv").symlink_to(UV)
    done = run("make setup", checkout, programs)
    assert done.returncode != 0
    told = (
        "This machine has no Python 3.11 (python3 is 3.10), and uv could not fetch it; the reason is above.\n"
        + REMEDIES
        + "  - let uv reach a mirror: set UV_PYTHON_INSTALL_MIRROR, or HTTPS_PROXY\n"
    )
    assert told in done.stderr
    assert "127.0.0.1:9" in done.stderr.partition(told)[0], "the reason is above"
    assert not (checkout / ".venv").exists()


def test_uv_makes_the_environment_with_the_python_that_it_has_fetched(checkout: Path, programs: Path) -> None:
    add_older_python(programs)
    (programs / "uv").symlink_to(UV)
    # As uv leaves a Python that it has fetched, so that nothing has to be fetched here.
    version = f"cpython-{platform.python_version()}-linux-{platform.machine()}-gnu"
    fetched = checkout.parent / "pythons" / version / "bin"
    fetched.mkdir(parents=True)
    (fetched / "python3.11").symlink_to(PYTHON)
    done = run("tools/bootstrap.sh", checkout, programs)
    assert done.returncode == 0, done.stderr
    shown = run(".venv/bin/python --version; .venv/bin/uv --version", checkout, programs).stdout
    assert shown.startswith("Python 3.11."), shown
    assert "\nuv " in shown
    again = run("tools/bootstrap.sh", checkout, programs)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", ""), "there is nothing to do"


def test_without_any_python_the_message_says_what_to_do(checkout: Path, programs: Path) -> None:
    done = run("tools/bootstrap.sh", checkout, programs)
    told = "This machine has no Python 3.11, nor another Python to fetch it with.\n" + REMEDIES
    assert (done.returncode, done.stderr) == (1, told + "  - install uv, which fetches Python 3.11\n")


def test_a_named_python_of_another_version_is_refused(checkout: Path, programs: Path) -> None:
    add_older_python(programs)
    done = run("make setup PYTHON=python3", checkout, programs)
    assert done.returncode != 0
    assert "lakehouse needs Python 3.11; PYTHON=python3 is 3.10." in done.stderr


def test_an_environment_of_another_version_is_left_alone(checkout: Path, programs: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    add_older_python(checkout / ".venv" / "bin")
    (checkout / ".venv" / "bin" / "python3").rename(checkout / ".venv" / "bin" / "python")
    done = run("tools/bootstrap.sh", checkout, programs)
    assert (done.returncode, done.stderr) == (
        1,
        ".venv has Python 3.10; lakehouse needs 3.11. Remove .venv and try again: make clean setup\n",
    )
    assert (checkout / ".venv" / "bin" / "python").exists()
