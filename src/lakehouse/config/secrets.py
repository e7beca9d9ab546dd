"""The stack's passwords: those that settings give, the others made up once and kept where only their owner reads."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError
from lakehouse.process.locks import locked
from lakehouse.storage.local import LocalHome

FILE = "secrets.json"


@dataclass(frozen=True)
class Secrets:
    """All of them. The names are those of the settings."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    postgres_password: str = field(repr=False)
    lake_password: str = field(repr=False)
    hive_password: str = field(repr=False)
    nessie_password: str = field(repr=False)
    oltp_password: str = field(repr=False)


def secrets_of(settings: Settings) -> Secrets:
    """The secrets of a lake's stack."""
    home = LocalHome(settings.home).ready()
    given = {each.name: getattr(settings.stack, each.name) for each in fields(Secrets)}
    file = home.folder / FILE
    kept = _read(file)
    if any(not value and name not in kept for name, value in given.items()):
        with locked(home.run / "secrets.lock"):
            kept = {name: made_up(name) for name in given} | _read(file)
            _write(file, kept)
    return Secrets(**{name: value or kept[name] for name, value in given.items()})


def made_up(name: str) -> str:
    """A password of letters and digits alone: every properties file, URL and shell takes it as it is."""
    return "lake" + secrets.token_hex(8) if name == "access_key" else secrets.token_hex(20)


def _read(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise BadSettingError(
            f"{file} cannot be read as the stack's passwords.",
            "Restore it, or set the passwords (stack.*_password); new ones would not open the old databases.",
        ) from exc


def _write(file: Path, values: Mapping[str, str]) -> None:
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(values, out, indent=1)
    new.replace(file)
