"""The passwords of the stack: from settings, or generated once and stored in a file that only its owner reads."""

from __future__ import annotations

import json
import secrets
from dataclasses import field, fields
from pathlib import Path

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.process.files import locked, write_private
from lakehouse.storage.local import LocalHome

FILE = "secrets.json"


@dataclass(frozen=True)
class Secrets:
    """All passwords and keys, under the names of their settings."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    postgres_password: str = field(repr=False)
    lake_password: str = field(repr=False)
    hive_password: str = field(repr=False)
    nessie_password: str = field(repr=False)
    oltp_password: str = field(repr=False)
    rest_token: str = field(repr=False)
    rest_read_token: str = field(repr=False)
    superset_secret_key: str = field(repr=False)
    superset_admin_password: str = field(repr=False)


def secrets_of(settings: Settings) -> Secrets:
    """The secrets of a lake's stack; generates those that are missing."""
    home = LocalHome(settings.home, settings.shared).ready()
    given = {part.name: getattr(settings.stack, part.name) for part in fields(Secrets)}
    file = home.folder / FILE
    stored = _read(file)
    if any(not value and name not in stored for name, value in given.items()):
        with locked(home.run / "secrets.lock"):
            stored = {name: generate_secret(name) for name in given} | _read(file)
            write_private(file, json.dumps(stored, indent=1))
    return Secrets(**{name: value or stored[name] for name, value in given.items()})


def rotate_secret(settings: Settings, name: str) -> None:
    """Replace a generated secret by a new one."""
    if getattr(settings.stack, name):
        raise BadSettingError(f"stack.{name} is set, so it is not generated.", "Change the setting.")
    secrets_of(settings)
    home = LocalHome(settings.home, settings.shared).ready()
    with locked(home.run / "secrets.lock"):
        stored = {**_read(home.folder / FILE), name: generate_secret(name)}
        write_private(home.folder / FILE, json.dumps(stored, indent=1))


def generate_secret(name: str) -> str:
    """A random password of letters and digits, which needs no escaping in properties, URLs and shells."""
    return "lake" + secrets.token_hex(8) if name == "access_key" else secrets.token_hex(20)


def _read(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise BadSettingError(
            f"{file} does not hold the passwords of the stack.",
            "Restore it, or set the passwords (stack.*_password); new ones would not open the old databases.",
        ) from exc
