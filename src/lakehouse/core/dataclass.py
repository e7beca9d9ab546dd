"""`dataclass`, as in the standard library, but a frozen one is cheap to define.

The standard one compiles six methods for each class, about a millisecond. A command loads 130 classes and uses half of
them, and that was a third of the time of a cold `lake sql` (docs/performance.md). Here only `__init__` is compiled, when
the first instance is made; the other methods are the same functions for all classes. `fields`, `replace` and the like
are the standard ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # for type checkers it is the standard one
else:

    def dataclass(cls=None, **options):
        """Make a dataclass; one with `frozen=True` alone is cheap to define."""
        make = _frozen if options == {"frozen": True} else dataclasses.dataclass(**options)
        return make if cls is None else make(cls)


C = TypeVar("C", bound=type)


def _frozen(cls: C) -> C:
    # Without a text of its own, the standard library would compute one from the signature.
    cls.__doc__ = cls.__doc__ or cls.__name__
    # The standard library would compile two methods for frozen=True; inheritance from a frozen class needs it.
    has_base = any(map(dataclasses.is_dataclass, cls.__bases__))
    dataclasses.dataclass(init=False, repr=False, eq=False, frozen=has_base)(cls)
    vars(cls)["__dataclass_params__"].frozen = True
    fields = dataclasses.fields(cls)
    values = _values_of([field.name for field in fields if field.compare])
    hashed = _values_of([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def __init__(self: object, *positional: object, **named: object) -> None:
        initialize = _compiled(cls, fields)
        setattr(cls, "__init__", initialize)  # noqa: B010  # a second thread would only do it once more
        initialize(self, *positional, **named)

    def __eq__(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:
        return hash(hashed(self))

    def __repr__(self: object) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields if field.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    methods = (__init__, __eq__, __hash__, __repr__, __setattr__, __delattr__)
    for method in methods:
        # A class that defines `__eq__` has None for `__hash__`.
        if cls.__dict__.get(method.__name__) is None:
            setattr(cls, method.__name__, method)
    setattr(cls, "__signature__", _Signature())  # noqa: B010  # unknown to type checkers
    return cls


def _values_of(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda _: ()


def _compiled(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """`__init__` with a parameter for each field."""
    known: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    parameters, body = ["self"], ["_state = self.__dict__"]
    for field in fields:
        value = name = field.name
        known[f"_default_{name}"], known[f"_make_{name}"] = field.default, field.default_factory
        if field.default_factory is not dataclasses.MISSING:
            parameters.append(f"{name}=_MISSING")
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        elif field.init:
            parameters.append(name if field.default is dataclasses.MISSING else f"{name}=_default_{name}")
        if field.init:
            body.append(f"_state[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(body), known)  # noqa: S102  # names of fields only
    method: Callable[..., None] = known["__init__"]
    method.__qualname__, method.__module__ = f"{cls.__qualname__}.__init__", __name__
    return method


def __setattr__(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to {name!r} of {type(self).__name__}")


def __delattr__(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete {name!r} of {type(self).__name__}")


class _Signature:
    """What `help()` shows, computed when somebody asks."""

    def __get__(self, _instance: object, owner: type) -> Any:
        from inspect import Parameter, Signature

        parameters = []
        for field in dataclasses.fields(owner):
            default = Parameter.empty if field.default is dataclasses.MISSING else field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            if field.init:
                kind = Parameter.POSITIONAL_OR_KEYWORD
                parameters.append(Parameter(field.name, kind, default=default, annotation=field.type))
        return Signature(parameters)
