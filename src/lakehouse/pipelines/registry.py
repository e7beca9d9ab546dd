"""Find pipelines: the built-in ones, and those of the user's modules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from lakehouse.core.errors import BadDeclarationError, NoSuchPipelineError
from lakehouse.core.names import nearest
from lakehouse.core.registry import kinds, load
from lakehouse.pipelines.model import Pipeline

P = TypeVar("P")

#: The entry point group in which other packages register pipelines.
PIPELINES = "lakehouse.pipelines"


class Pipelines(Mapping[str, Pipeline]):
    """All pipelines by name. To look one up imports neither the other built-in ones nor those of installed packages.

    A user's pipeline replaces any other of the same name, a built-in one that of an installed package.
    """

    def __init__(self, modules: Iterable[str], folder: Path) -> None:
        """
        Args:
            modules: the user's modules with pipelines.
            folder: searched for modules before the installed packages.
        """
        self._modules, self._folder = modules, folder

    def __getitem__(self, name: str) -> Pipeline:
        if name in self._own:
            return self._own[name]
        declared: Pipeline | None = load(PIPELINES, name)
        if declared is None:
            raise KeyError(name)
        return declared

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*kinds(PIPELINES), *self._own)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @cached_property
    def _own(self) -> Mapping[str, Pipeline]:
        """The pipelines of the user's modules; only the modules themselves know their names."""
        pipelines: dict[str, Pipeline] = {}
        for module in self._modules:
            pipelines |= _declared_in(module, self._folder)
        return pipelines


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
    declared = {value.name: value for value in vars(loaded).values() if isinstance(value, Pipeline)}
    if not declared:
        raise BadDeclarationError(
            f"The module {module} declares no pipeline.", "It needs one on its top level: NAME = Pipeline(...)."
        )
    return declared
