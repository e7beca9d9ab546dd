"""The tree of errors: complete, told apart by their codes, and the same on the other side of a socket."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import pytest

from lakehouse.core import errors
from lakehouse.core.errors import (
    ConfigError,
    LakeError,
    NoSuchTableError,
    NotInstalledError,
    QueryRejectedError,
    Retryable,
    UnknownChoiceError,
    error_from_dict,
)

#: Classes that are their parent to a program, and a case of their own to the code that catches them.
INHERITS_ITS_CODE = {
    "MissingKeyError": "UnauthorizedError",
    "BadSettingError": "ConfigError",
    "NeedsSparkError": "NotSupportedError",
}


def tree(kind: type[LakeError] = LakeError) -> Iterator[type[LakeError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


def ours() -> list[type[LakeError]]:
    return [kind for kind in tree() if kind.__module__.startswith("lakehouse.")]


def example(kind: type[LakeError]) -> LakeError:
    match kind.__name__:
        case "UnknownChoiceError":
            return UnknownChoiceError("profile", "stak", ["stack", "embedded"])
        case "NotInstalledError":
            return NotInstalledError("duckdb", "duckdb")
        case "NoSuchTableError":
            return NoSuchTableError("crm.leeds", ["crm.leads"], total=3)
        case "QueryRejectedError":
            return QueryRejectedError("No such column.", "lake describe", "select\n  x", 2, 3)
        case _:
            return kind("It went wrong: crm.leads.", "Do this.")


kinds = pytest.mark.parametrize("kind", ours(), ids=lambda kind: kind.__name__)


@kinds
def test_every_error_says_when_it_is_raised(kind: type[LakeError]) -> None:
    assert kind.__dict__.get("__doc__"), f"{kind.__name__} has no docstring of its own"


def test_every_error_has_a_code_of_its_own_or_inherits_it_on_purpose() -> None:
    by_code: dict[str, list[str]] = {}
    for kind in ours():
        by_code.setdefault(kind.code, []).append(kind.__name__)
    shared = {names[-1]: names[0] for names in by_code.values() if len(names) > 1}
    assert shared == INHERITS_ITS_CODE
    assert max(len(names) for names in by_code.values()) == 2


def test_every_error_stands_in_the_drawing_at_the_top() -> None:
    drawing = errors.__doc__ or ""
    assert [
        kind.__name__ for kind in ours() if kind.__module__.startswith(errors.__name__) and kind.__name__ not in drawing
    ] == []


@kinds
def test_an_error_has_one_json_shape(kind: type[LakeError]) -> None:
    told = json.loads(json.dumps(example(kind).as_dict()))
    assert {"error", "message", "hint"} <= set(told) <= {"error", "message", "hint", "line", "column"}
    assert told["error"] == kind.code
    assert told["message"]
    assert told["hint"]


@kinds
def test_an_error_comes_back_the_same_from_another_process(kind: type[LakeError]) -> None:
    error = example(kind)
    back = error_from_dict(json.loads(json.dumps(error.as_dict())), sql="select\n  x")
    assert isinstance(back, LakeError)
    assert isinstance(error, type(back))
    assert back.as_dict() == error.as_dict()
    assert str(back) == str(error)
    assert back.is_user_error == error.is_user_error
    assert isinstance(back, Retryable) == isinstance(error, Retryable)


def test_a_rejected_query_still_points_at_its_place_in_another_process() -> None:
    error = example(QueryRejectedError)
    back = error_from_dict(error.as_dict(), sql="select\n  x")
    assert isinstance(error, QueryRejectedError)
    assert isinstance(back, QueryRejectedError)
    assert back.pointer() == error.pointer() == "  x\n  ^"


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"error": "from_the_future", "message": "m", "hint": "h"}, id="unknown-code"),
        pytest.param({"message": "m", "hint": "h"}, id="no-code"),
    ],
)
def test_an_unknown_code_is_still_an_error_of_ours(told: dict[str, object]) -> None:
    back = error_from_dict(told)
    assert type(back) is LakeError
    assert (back.message, back.hint) == ("m", "h")


def test_an_answer_without_a_reason_is_still_an_error() -> None:
    assert error_from_dict({}).message == "no reason given"


@pytest.mark.parametrize(
    ("nearest", "total", "hint"),
    [
        pytest.param(["crm.leads"], 5, "Did you mean crm.leads? List all: lake tables", id="near"),
        pytest.param([], 5, "List all tables: lake tables", id="nothing-near"),
        pytest.param([], 0, "The lake is empty. Try: lake demo", id="empty-lake"),
    ],
)
def test_an_unknown_table_says_where_to_look(nearest: list[str], total: int, hint: str) -> None:
    assert NoSuchTableError("crm.x", nearest, total).hint == hint


def test_an_unknown_choice_lists_the_choices_in_order() -> None:
    error = UnknownChoiceError("engine", "trono", ["spark", "auto", "duckdb"])
    assert error.message == "Invalid value for engine: 'trono'."
    assert error.hint == "Choose one of: auto, duckdb, spark."
    assert isinstance(error, ConfigError)


@pytest.mark.parametrize(
    ("line", "column", "pointer"),
    [
        pytest.param(1, 8, "select x\n       ^", id="first-line"),
        pytest.param(2, 1, "from y\n^", id="second-line"),
        pytest.param(3, 1, "", id="a-line-that-is-not-there"),
        pytest.param(None, None, "", id="no-place"),
    ],
)
def test_the_caret_stands_under_the_place(line: int | None, column: int | None, pointer: str) -> None:
    assert QueryRejectedError("m", sql="select x\nfrom y", line=line, column=column).pointer() == pointer


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in ours()])
def test_an_error_survives_pickling(kind: type[LakeError]) -> None:
    error = example(kind)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert back.as_dict() == error.as_dict()
