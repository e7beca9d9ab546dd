"""Build the package as the image does, and install it into a virtual environment of its own, outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"


def build_wheel(folder: Path) -> Path:
    """The wheel, made from the files that deploy/Dockerfile copies and no others."""
    sources = folder / "sources"
    sources.mkdir()
    for line in re.findall(r"^COPY (?!--from)(.*)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE):
        *copied, target = line.split()
        for name in copied:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, sources / target, ignore=ignored)
            else:
                shutil.copy(ROOT / name, sources / target)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], sources)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, folder: Path) -> Path:
    """The folder with the programs of a new virtual environment, which has the wheel and nothing else of ours.

    Its dependencies are those of the environment that runs the tests, so that nothing is fetched.
    """
    environment = folder / "venv"
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)], folder)
    python = environment / "bin" / "python"
    _run([str(UV), "pip", "install", "--offline", "--no-deps", "--python", str(python), str(wheel)], folder)
    (packages,) = environment.glob("lib/python3*/site-packages")
    # A folder that a .pth file adds is on the path, but its own .pth files, such as that of the editable install, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    return environment / "bin"


def install_plugin(folder: Path) -> Path:
    """A folder with examples/plugin, installed from a wheel that is built from its source. Nothing is fetched."""
    sources = folder / "plugin"
    shutil.copytree(ROOT / "examples" / "plugin", sources, ignore=shutil.ignore_patterns("__pycache__"))
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], sources)
    (wheel,) = folder.glob("lake_plugin-*.whl")
    site = folder / "site"
    _run([str(UV), "pip", "install", "--offline", "--no-deps", "--target", str(site), str(wheel)], folder)
    return site


def without_checkout() -> dict[str, str]:
    """The environment of this process without what leads Python to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, env=without_checkout(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
