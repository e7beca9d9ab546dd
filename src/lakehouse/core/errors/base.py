"""The root of all errors, and those of asking: settings, names, what is not supported."""

from __future__ import annotations

from collections.abc import Iterable


class LakeError(Exception):
    """Anything that went wrong in a way we can explain."""

    code = "failed"
    is_user_error = False

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own, which pickle would call with the message.
        return _rebuilt, (type(self), self.__dict__, self.args)

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape of every error."""
        return {"error": self.code, "message": self.message, "hint": self.hint}


class Retryable:
    """Mixed into errors that may go away when the same thing is tried again."""


class ConfigError(LakeError):
    """Something is wrong with a setting or with the machine's set-up."""

    code = "bad_setting"
    is_user_error = True


class BadSettingError(ConfigError):
    """A setting has a value of the wrong kind, or is not a setting at all."""


class UnknownChoiceError(ConfigError):
    """A setting or an argument names something that is not on the list."""

    code = "unknown_choice"

    def __init__(self, setting: str, given: str, known: Iterable[str]) -> None:
        self.setting, self.given, self.known = setting, given, sorted(known)
        super().__init__(f"{setting}={given!r} is not known here.", f"Choose one of: {', '.join(self.known)}.")


class NotInstalledError(ConfigError):
    """A part of the lakehouse was asked for whose library is not installed."""

    code = "not_installed"

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"This needs {library}, which is not installed.", f"pip install 'lakehouse[{extra}]'")


class HomeError(ConfigError):
    """The lake's folder cannot be used as one."""

    code = "bad_home"


class BadNameError(LakeError):
    """A table, namespace or branch has a name that cannot be one."""

    code = "bad_name"
    is_user_error = True


class NotSupportedError(LakeError):
    """This format, engine or profile cannot do what was asked."""

    code = "not_supported"
    is_user_error = True


def _rebuilt(kind: type[LakeError], facts: dict[str, object], args: tuple[object, ...]) -> LakeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
