"""Find pipelines: the built-in ones, and those of the user's modules."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from lakehouse.core.errors import BadDeclarationError, NoSuchPipelineError
from lakehouse.core.names import suggestion
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
            for problem in self.problems.values():  # the pipeline may be in that module
                raise problem
            raise KeyError(name)
        return declared

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*kinds(PIPELINES), *self._own)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def problems(self) -> Mapping[str, BadDeclarationError]:
        """Why modules of the user cannot be loaded, by their names; the pipelines of all others work."""
        return self._loaded[1]

    @property
    def _own(self) -> Mapping[str, Pipeline]:
        """The pipelines of the user's modules; only the modules themselves know their names."""
        return self._loaded[0]

    @cached_property
    def _loaded(self) -> tuple[Mapping[str, Pipeline], Mapping[str, BadDeclarationError]]:
        pipelines: dict[str, Pipeline] = {}
        problems: dict[str, BadDeclarationError] = {}
        for module in self._modules:
            try:
                pipelines |= _declared_in(module, self._folder)
            except BadDeclarationError as exc:
                problems[module] = exc
        return pipelines, problems


def by_name(pipelines: Mapping[str, P], name: str) -> P:
    """A pipeline by name; NoSuchPipelineError with similar names if there is none."""
    if name not in pipelines:
        raise NoSuchPipelineError(
            f"There is no pipeline {name!r}.",
            f"{suggestion(name, pipelines)}There are: {', '.join(sorted(pipelines))}.",
        )
    return pipelines[name]


def _place(exc: Exception) -> str:
    """Where in a module the error is."""
    if isinstance(exc, SyntaxError) or exc.__traceback__ is None:
        return ""  # its message names the file and the line
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    return "" if frame.filename.startswith("<") else f" ({frame.filename}, line {frame.lineno})"


def _declared_in(module: str, folder: Path) -> dict[str, Pipeline]:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        loaded = import_module(module)
    except Exception as exc:
        raise BadDeclarationError(
            f"The module {module}, which `pipelines` names, cannot be loaded: {type(exc).__name__}: {exc}{_place(exc)}.",
            f"It is searched for in {folder} and among the installed packages.",
        ) from exc
    declared = {value.name: value for value in vars(loaded).values() if isinstance(value, Pipeline)}
    if not declared:
        raise BadDeclarationError(
            f"The module {module} declares no pipeline.", "It needs one on its top level: NAME = Pipeline(...)."
        )
    return declared
