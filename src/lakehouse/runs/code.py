"""The fingerprint of a table's code: its function, rules and declaration, and the functions and constants that they use.

Computed from the compiled code, so comments, docstrings and the order of functions do not count. Followed are functions and classes of
the user's own modules; of installed packages only their names count. Checks and readers of sources are left out: they do not decide which rows follow
from which input.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.pipelines.model import Source, Table

_INSTALLED = (sys.prefix, sys.base_prefix)
_OURS = "lakehouse"


def code_fingerprint(table: Table) -> str:
    """Changes with the code that builds a table."""
    inputs = [source.name if isinstance(source, Source) else source for source in table.inputs]
    declared = (
        inputs,
        table.key,
        table.newest,
        table.partition_by,
        table.partition_column,
        table.merge,
        table.lookback,
    )
    rules = [(rule.name, rule.severity, rule.sql) for rule in table.rules]
    functions = [table.transform, *(rule.condition for rule in table.rules)]
    digest = hashlib.sha256(repr((declared, rules)).encode())
    for function in functions:
        follower = _Follower(own_package=str(getattr(function, "__module__", "")).partition(".")[0])
        for part in follower.parts(function):
            digest.update(part.encode() + b"\n")
    return digest.hexdigest()[:12]


class _Follower:
    """Lists what a function consists of, and what it uses."""

    def __init__(self, own_package: str) -> None:
        """
        Args:
            own_package: its functions are followed even if it is installed.
        """
        self._own_package, self._visited = own_package, set[int]()

    def parts(self, value: Any) -> Iterator[str]:
        """Describe a value, and all that it refers to."""
        if id(value) in self._visited:
            return
        if isinstance(value, partial):
            yield from self._all([value.func, *value.args, *value.keywords.items()])
        elif isinstance(value, MethodType):
            yield from self._all([value.__func__, value.__self__])
        elif isinstance(value, FunctionType):
            self._visited.add(id(value))
            yield from self._function(value)
        elif isinstance(value, type):
            self._visited.add(id(value))
            yield from self._class(value)
        elif isinstance(value, Mapping):
            yield from self._all([part for item in value.items() for part in item])
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            yield from self._all(list(value))
        else:
            yield from self._object(value)

    def _all(self, values: Sequence[Any]) -> Iterator[str]:
        for value in values:
            yield from self.parts(value)

    def _class(self, value: type) -> Iterator[str]:
        yield value.__qualname__
        if not self._is_followed(value.__module__):
            return
        # The methods of our own dataclasses are the same for all, except `__init__`, which the first instance replaces.
        members = [member for member in vars(value).values() if isinstance(member, FunctionType)]
        yield from self._all([member for member in members if member.__module__ != dataclass.__module__])
        for field in fields(value) if is_dataclass(value) else ():
            yield f"{field.name}: {field.type}"
            yield from self._all([] if field.default is MISSING else [field.default])

    def _object(self, value: Any) -> Iterator[str]:
        """An object of any other class: a constant, or what its class and its attributes are."""
        shown = repr(sorted(value, key=repr)) if isinstance(value, set | frozenset) else repr(value)
        if " at 0x" not in shown:
            yield shown
            return
        self._visited.add(id(value))
        yield from self.parts(type(value))
        yield from self.parts(getattr(value, "__dict__", {}))

    def _function(self, function: FunctionType) -> Iterator[str]:
        if not self._is_followed(function.__module__):
            yield f"{function.__module__}.{function.__qualname__}"
            return
        yield from self._code(function.__code__, function.__globals__)
        yield from self._all([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()])
        for cell in function.__closure__ or ():
            yield from self.parts(cell.cell_contents)

    def _code(self, code: CodeType, names: Mapping[str, Any]) -> Iterator[str]:
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
        for position, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                yield from self._code(constant, names)
            elif position or not isinstance(constant, str):  # the first one is the docstring
                yield repr(sorted(constant, key=repr)) if isinstance(constant, frozenset) else repr(constant)
        for name in code.co_names:
            value = names.get(name)
            if isinstance(value, ModuleType):
                attributes = vars(value) if self._is_followed(value.__name__) else {}
                yield from self._all([attributes[other] for other in code.co_names if other in attributes])
            elif value is not None:
                yield from self.parts(value)

    def _is_followed(self, module: str) -> bool:
        package = module.partition(".")[0]
        if package in (_OURS, self._own_package):
            return package == self._own_package
        file = str(getattr(sys.modules.get(module), "__file__", "") or "")
        return not file.startswith(_INSTALLED) and package not in sys.builtin_module_names
