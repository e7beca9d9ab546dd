"""Frozen dataclasses that are cheap to define behave as the standard ones do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from lakehouse.core.dataclass import dataclass


def _classes(make: Callable[..., Any]) -> tuple[type, type]:
    @make(frozen=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        notes: list[str] = dataclasses.field(default_factory=list, compare=False)
        secret: str = dataclasses.field(default="s", repr=False)
        facts: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)

    @make(frozen=True)
    class Marked(Point):
        mark: str = "m"
        size: int = dataclasses.field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.mark))

    return Point, Marked


OURS, STANDARD = _classes(dataclass), _classes(dataclasses.dataclass)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "use",
    [
        lambda cls: repr(cls(1)),
        lambda cls: repr(cls(1, 3, ["n"])),
        lambda cls: repr(cls(y=5, x=4)),
        lambda cls: cls(1, notes=["a"]) == cls(1, notes=["b"]),
        lambda cls: cls(1) == cls(2),
        lambda cls: hash(cls(1)) == hash(cls(1)),
        lambda cls: cls(1) == object(),
        lambda cls: cls(1).notes is cls(1).notes,
        lambda cls: repr(dataclasses.replace(cls(1), x=7)),
        lambda cls: dataclasses.asdict(cls(1)),
        lambda cls: [field.name for field in dataclasses.fields(cls)],
        lambda cls: list(inspect.signature(cls).parameters),
        lambda cls: repr(copy.deepcopy(cls(1))),
        lambda cls: cls.__match_args__,
        lambda cls: type(_error(lambda: cls())),
        lambda cls: type(_error(lambda: cls(1, z=2))),
        lambda cls: type(_error(lambda: cls(1, x=2))),
        lambda cls: type(_error(lambda: setattr(cls(1), "x", 2))),
        lambda cls: type(_error(lambda: delattr(cls(1), "x"))),
    ],
)
def test_it_does_what_the_standard_one_does(use: Callable[[type], object], number: int) -> None:
    assert use(OURS[number]) == use(STANDARD[number])


def _error(use: Callable[[], object]) -> Exception | None:
    try:
        use()
    except (TypeError, AttributeError) as exc:
        return exc
    return None


@dataclass(frozen=True)
class Sent:
    """Sent to another process."""

    name: str
    values: tuple[int, ...] = ()


def test_an_instance_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Sent("a", (1, 2)))) == Sent("a", (1, 2))


def test_a_standard_dataclass_may_inherit_from_it() -> None:
    @dataclasses.dataclass(frozen=True)
    class Longer(Sent):
        more: int = 3

    assert Longer("a", (1,)) == Longer("a", (1,), 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Longer("a").more = 4  # type: ignore[misc]


def test_its_own_methods_win() -> None:
    @dataclass(frozen=True)
    class Word:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Word) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return self.text

    assert Word("A") == Word("a") and hash(Word("A")) == hash(Word("a")) and repr(Word("A")) == "A"


def test_a_field_may_be_named_state() -> None:
    @dataclass(frozen=True)
    class Ref:
        state: str
        name: str = ""

    assert (Ref("abc").state, Ref("abc", "exp").name) == ("abc", "exp")
