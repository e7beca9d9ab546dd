"""Find pipelines: the built-in ones, and those of the user's modules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from lakehouse.core.errors import BadDeclarationError, NoSuchPipelineError
from lakehouse.core.names import nearest
from lakehouse.core.registry import installed, load
from lakehouse.pipelines.model import Pipeline

P = TypeVar("P")

#: The entry point group in which other packages register pipelines.
PIPELINES = "lakehouse.pipelines"
_BUILT_IN = ("market", "taxi", "social", "files")


def find_pipelines(modules: Iterable[str], folder: Path) -> dict[str, Pipeline]:
    """All pipelines by name; a user's pipeline replaces a built-in one of the same name.

    Args:
        folder: searched for modules before the installed packages.
    """
    found = {name: getattr(import_module(f"lakehouse.pipelines.{name}.pipeline"), name) for name in _BUILT_IN}
    found |= {name: load(PIPELINES, name) for name in installed(PIPELINES)}
    for module in modules:
        found |= _declared_in(module, folder)
    return found


def by_name(pipelines: Mapping[str, P], name: str) -> P:
    """A pipeline by name; NoSuchPipelineError with similar names if there is none."""
    if name not in pipelines:
        near = nearest(name, pipelines)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise NoSuchPipelineError(
            f"There is no pipeline {name!r}.", f"{hint}There are: {', '.join(sorted(pipelines))}."
        )
    return pipelines[name]


def _declared_in(module: str, folder: Path) -> dict[str, Pipeline]:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        loaded = import_module(module)
    except ImportError as exc:
        raise BadDeclarationError(
            f"The module {module}, which `pipelines` names, cannot be loaded: {exc}.",
            f"It is searched for in {folder} and among the installed packages.",
        ) from exc
    found = {each.name: each for each in vars(loaded).values() if isinstance(each, Pipeline)}
    if not found:
        raise BadDeclarationError(
            f"The module {module} declares no pipeline.", "It needs one on its top level: NAME = Pipeline(...)."
        )
    return found
