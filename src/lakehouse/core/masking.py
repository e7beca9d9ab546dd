"""Hide passwords in text that people see: the one place that knows what a password in an address looks like."""

from __future__ import annotations

import re

HIDDEN = "********"
_SECRET_NAME = re.compile(r"passw|pwd|secret|token|credential|(?<![a-z])key(?![a-z])", re.IGNORECASE)
_BEFORE_HOST = re.compile(r"://([^\s'\"]*)@")
#: `host:8080/a@b`: a host and a path before the @, not a user.
_HOST_AND_PATH = re.compile(r"[^/:@]*(:\d+)?/")
_PARAMETER = re.compile(r"((?:passw\w*|pwd|secret|token|signature|credential)=)[^&\s]+", re.IGNORECASE)
#: What a message that explains the form of an address has for a password.
_EXAMPLES = {"PASSWORD", "password"}


def is_secret_name(name: str) -> bool:
    """Whether a property of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def mask(text: str) -> str:
    """The text with the passwords in addresses and parameters replaced."""
    if "@" not in text and "=" not in text:
        return text
    return _PARAMETER.sub(rf"\1{HIDDEN}", _BEFORE_HOST.sub(_without_password, text))


def _without_password(match: re.Match[str]) -> str:
    if _HOST_AND_PATH.match(match[1]):
        return match[0]
    user, colon, password = match[1].partition(":")
    if password in _EXAMPLES:
        return match[0]
    return f"://{user}:{HIDDEN}@" if colon else f"://{HIDDEN}@"
