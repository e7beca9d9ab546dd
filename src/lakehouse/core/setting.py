"""Settings as dataclasses: their fields, and how values are parsed from TOML, which has types, or from text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from lakehouse.core.errors import BadNameError, BadSettingError, UnknownChoiceError
from lakehouse.core.names import check_part, suggestion
from lakehouse.core.registry import is_kind, kinds

T = TypeVar("T")

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
_ADDRESSES = {"catalog.uri", "trino.url", "s3.endpoint", "events.url", "events.webhook", "events.traces"}
#: The settings whose items are names of branches.
_BRANCHES = {"branches.protected", "trino.branches"}
#: A key, wherever it stands in the output of `lake keys create`.
_KEY = re.compile(r"lake_[0-9a-f]{10}_[A-Za-z0-9_-]{43}")
_KEY_HINT = "It holds a key, as lake keys create prints it, or an OIDC token, and nothing else."


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    registry: str = "",
    secret: bool = False,
    hidden: bool = False,
) -> Any:
    """A field with a default and a description.

    Args:
        help: one sentence on its effect; if the default is empty, it also states what that means.
        choices: the valid values (default: any).
        registry: the group of entry points whose names are valid values, too.
        secret: its value is never shown, nor part of the dataclass's repr.
        hidden: its value is not part of the repr, because it may hold a password.
    """
    metadata = {"help": help, "choices": choices, "registry": registry, "secret": secret, "hidden": hidden}
    shown = not (secret or hidden)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), repr=shown, metadata=metadata)
    return field(default=default, repr=shown, metadata=metadata)


def read_options(model: type[T], given: Mapping[str, str], section: str) -> T:
    """The settings of a plugin's own, from the section that the context of its factory has.

    Args:
        model: a dataclass with fields made by `setting`; any other name in the section is an error.
        section: what error messages call it, such as `catalog.properties`.
    """
    known, types = {part.name: part for part in fields(model)}, get_type_hints(model)  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise BadSettingError(
                f"{section}.{name} is not a setting.",
                f"{suggestion(name, known)}There are: {', '.join(sorted(known)) or 'none'}.",
            )
        values[name] = parse_value(f"{section}.{name}", value, types[name], section, known[name].metadata)
        check_choice(f"{section}.{name}", values[name], known[name].metadata)
    return model(**values)


def check_choice(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    """Refuse a value that is neither a choice of its setting nor registered, built in or by an installed package."""
    choices, group = metadata.get("choices", ()), metadata.get("registry", "")
    for item in value if isinstance(value, tuple) else (value,):
        if (choices or group) and item not in choices and not (group and is_kind(group, item)):
            raise UnknownChoiceError(name, item, {*choices, *(kinds(group) if group else ())} - {""})


def parse_value(name: str, value: Any, kind: Any, source: str, metadata: Mapping[str, Any]) -> Any:
    """The value as the type of its setting, from TOML (typed already) or from text."""
    try:
        if kind is bool and isinstance(value, str):
            return _boolean(value)
        if kind in (int, float) and not isinstance(value, bool):
            return _amount(kind(value))
        if kind in (Path, str) and isinstance(value, str | Path):
            return kind(_address(name, str(value)) if name in _ADDRESSES else value)
        if kind == tuple[str, ...]:
            items = _list(value)
            return tuple(_branch(name, item, source) for item in items) if name in _BRANCHES else items
        if getattr(kind, "__origin__", None) is not None and isinstance(value, Mapping):
            return MappingProxyType({str(key): _item(item) for key, item in value.items()})
        if isinstance(kind, type) and isinstance(value, kind):
            return value
    except (TypeError, ValueError):
        pass
    names = {bool: "true or false", int: "an integer", float: "a number from 0", str: "a string", Path: "a path"}
    names[tuple[str, ...]] = "a list of strings"
    expected = names.get(kind, "a table")
    hidden = metadata.get("secret") or metadata.get("hidden")
    given = name if hidden else f"{name} = {value!r}"
    raise BadSettingError(f"{given} ({source}) is not {expected}.", "lake config show")


def _address(name: str, text: str) -> str:
    """Reject what Python cannot split, without showing it: the reason is mostly a password."""
    try:
        urlsplit(text)
    except ValueError as exc:
        raise BadSettingError(
            f"{name} is not an address: a [ or ] in it is not that of an IPv6 address.",
            "In a password write [ as %5B, ] as %5D, @ as %40, / as %2F and % as %25.",
        ) from exc
    return text


def _list(value: Any) -> tuple[str, ...]:
    """A list from TOML; from a variable also in TOML's or JSON's form, or separated by commas."""
    if isinstance(value, str):
        text = value.strip()
        value = _bracketed_list(text) if text.startswith("[") else text.split(",")
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(value)
    return tuple(item.strip() for item in value if item.strip())


def _bracketed_list(text: str) -> Any:
    import tomllib

    return tomllib.loads(f"value = {text}")["value"]  # a list of strings in JSON is one in TOML, too


def _branch(setting: str, text: str, source: str) -> str:
    try:
        return check_part(text, "branch")
    except BadNameError as exc:
        raise BadSettingError(f"{setting} ({source}) holds {text!r}, which is not a branch name.", exc.hint) from exc


def _amount(number: float) -> float:
    """Reject negative and infinite numbers: every number among the settings is an amount."""
    if not 0 <= number < float("inf"):
        raise ValueError(number)
    return number


def _item(item: Any) -> Any:
    """A value of a table in TOML: a string, or a table of strings."""
    if isinstance(item, Mapping):
        return {str(key): as_property(value) for key, value in item.items()}
    return as_property(item)


def as_property(item: Any) -> str:
    """A value as the string that an engine reads."""
    return str(item).lower() if isinstance(item, bool) else str(item)


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def key_in(text: str, where: str) -> str:
    """Return the one key or token in a text; raises BadSettingError if there is none or more than one."""
    words, keys = text.split(), set(_KEY.findall(text))
    if not words:
        raise BadSettingError(f"{where} is empty.", _KEY_HINT)
    if len(keys) == 1:
        return str(keys.pop())
    if keys or len(words) > 1 or not words[0].isascii() or not words[0].isprintable():
        raise BadSettingError(f"{where} does not hold one key.", _KEY_HINT)
    return words[0]
