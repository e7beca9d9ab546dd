"""The fields of settings dataclasses."""

from __future__ import annotations

from dataclasses import field
from typing import Any


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
        registry: the entry points that add further valid values.
        secret: its value is never shown, nor part of the dataclass's repr.
        hidden: its value is not part of the repr, because it may hold a password.
    """
    metadata = {"help": help, "choices": choices, "registry": registry, "secret": secret, "hidden": hidden}
    shown = not (secret or hidden)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), repr=shown, metadata=metadata)
    return field(default=default, repr=shown, metadata=metadata)
