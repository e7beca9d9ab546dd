"""The base class of all errors, and errors of settings, names and unsupported operations."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.masking import mask


class LakeError(Exception):
    """The base class of every error that this package raises on purpose."""

    code = "failed"
    is_user_error = False

    def __init__(self, message: str, hint: str = "") -> None:
        # An address in a message may be one that the user gave with a password in it.
        self.message, self.hint = mask(message), mask(hint)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own, which pickle would call with the message.
        return _rebuilt, (type(self), self.__dict__, self.args)

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape of every error."""
        return {"error": self.code, "message": self.message, "hint": self.hint}


class Retryable:
    """Mixed into errors that a retry may resolve.

    Not into an error that is raised after retries: retries would be nested, and three of three are nine.
    """


class ConfigError(LakeError):
    """A setting or the installation is wrong."""

    code = "bad_setting"
    is_user_error = True


class BadSettingError(ConfigError):
    """A setting has an invalid value, or does not exist."""


class UnknownChoiceError(ConfigError):
    """A setting or an argument is not one of the valid choices."""

    code = "unknown_choice"

    def __init__(self, setting: str, given: str, known: Iterable[str]) -> None:
        self.setting, self.given, self.known = setting, given, sorted(known)
        super().__init__(f"Invalid value for {setting}: {given!r}.", f"Choose one of: {', '.join(self.known)}.")


class NotInstalledError(ConfigError):
    """An optional library is not installed."""

    code = "not_installed"

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"This needs {library}, which is not installed.", f"pip install 'lakehouse[{extra}]'")


class HomeError(ConfigError):
    """The lake's folder cannot be used."""

    code = "bad_home"


class BadNameError(LakeError):
    """The name of a table, namespace or branch is invalid."""

    code = "bad_name"
    is_user_error = True


class NotSupportedError(LakeError):
    """This format, engine or profile does not support the operation."""

    code = "not_supported"
    is_user_error = True


class NeedsSparkError(NotSupportedError):
    """A change, a rule or a check needs Spark, and was to be made without it; nothing was written."""


class StatementRefusedError(NotSupportedError):
    """The statement could lose data, leave the lake or run code; or it is of a kind that the guard does not know."""

    code = "statement_refused"


def _rebuilt(kind: type[LakeError], facts: dict[str, object], args: tuple[object, ...]) -> LakeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
