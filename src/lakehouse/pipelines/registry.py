"""Which pipelines there are: those that come with the lakehouse, and those of the user's own modules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from lakehouse.core.errors import BadDeclarationError, NoSuchPipelineError
from lakehouse.core.names import nearest
from lakehouse.pipelines.model import Pipeline

_OURS = ("market", "taxi", "social", "files")


def find_pipelines(modules: Iterable[str], folder: Path) -> dict[str, Pipeline]:
    """Ours by name, then the user's, which may take the name of one of ours; modules are found in the folder too."""
    found = {name: getattr(import_module(f"lakehouse.pipelines.{name}.pipeline"), name) for name in _OURS}
    for module in modules:
        found |= _declared_in(module, folder)
    return found


def by_name(pipelines: Mapping[str, Pipeline], name: str) -> Pipeline:
    """A pipeline by its name; the nearest names if there is none."""
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
            f"It is looked for in {folder} and among what is installed.",
        ) from exc
    found = {each.name: each for each in vars(loaded).values() if isinstance(each, Pipeline)}
    if not found:
        raise BadDeclarationError(
            f"The module {module} declares no pipeline.", "It needs one on its top level: NAME = Pipeline(...)."
        )
    return found
