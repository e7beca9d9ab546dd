"""`lake new`: write the files of a new pipeline and name it in lake.toml."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.show import note
from lakehouse.core.errors import BadNameError, HomeError

_LAKE_TOML = "lake.toml"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@group("lake new pipeline orders")
def new() -> None:
    """Write the files of something new."""


@command("lake new pipeline orders && lake run orders && python -m pytest test_orders.py", new)
@click.argument("name", metavar="NAME")
def pipeline(context: Context, name: str) -> None:
    """Write a pipeline with a source, rules, checks and a unit test.

    The files are NAME.py, test_NAME.py and data/NAME/ in the working folder; lake.toml names the pipeline. If one of the files
    exists, nothing is written.
    """
    from lakehouse.cli.templates import new_pipeline

    files = {Path(path): content for path, content in new_pipeline(name).items()}
    _check_name(name, files)
    settings = Path(_LAKE_TOML)
    try:
        text = with_pipeline(settings.read_text() if settings.exists() else "", name)
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            note(f"written  {path}")
        if text:
            settings.write_text(text)
            note(f"changed  {settings}")
        else:
            note(f'Add to {settings}: pipelines = ["{name}"], and under [sources.{name}]: path = "data/{name}"')
    except OSError as exc:
        raise HomeError(f"{exc.filename} cannot be written: {exc.strerror}.", "Choose another folder.") from exc
    note(f"Next: lake run {name}, or python -m pytest test_{name}.py")


def _check_name(name: str, files: dict[Path, str]) -> None:
    """Raise if a name cannot be that of a new module."""
    if not _NAME.fullmatch(name):
        raise BadNameError(
            f"{name!r} is not a name for a pipeline.", "Use lower-case letters, digits and _, such as orders."
        )
    for path in files:
        if path.exists():
            raise BadNameError(f"{path} exists.", "Choose another name.")
    from lakehouse.core.registry import kinds

    if find_spec(name) is not None or name in kinds("lakehouse.pipelines"):
        raise BadNameError(f"{name!r} is the name of an installed module or pipeline.", "Choose another name.")


def with_pipeline(text: str, name: str) -> str:
    """A lake.toml with one more pipeline and the settings of its source; empty if its form does not allow to add it."""
    listed = [*tomllib.loads(text).get("pipelines", []), name]
    line = f"pipelines = {json.dumps(listed)}"
    changed, count = re.subn(r"^pipelines\s*=\s*\[[^\]]*\]", line, text, count=1, flags=re.MULTILINE)
    if not count:  # settings without a section come before the first one
        changed = f"{line}\n{text}"
    changed = f'{changed.rstrip()}\n\n[sources.{name}]\npath = "data/{name}"\n'
    try:
        settings = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return ""
    return changed if settings["pipelines"] == listed and "path" in settings["sources"][name] else ""
