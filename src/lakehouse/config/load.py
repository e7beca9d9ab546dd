"""Load settings from lake.toml, .env, the environment and flags; record the origin of each, and reject unknown names.

Child processes get them as JSON on their standard input.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError
from lakehouse.core.names import suggestion
from lakehouse.core.setting import as_property, check_choice, key_in, parse_value

FILE_NAME = "lake.toml"
_PREFIX = "LAKE_"
#: Read by the command line before settings are loaded.
_NOT_SETTINGS = {"LAKE_DEBUG"}
#: Variables that orchestrate/dbt_project/profiles.yml reads.
_DBT_PREFIX = "LAKE_DBT_"
#: The sections whose settings only plugins and pipelines know, such as sources.NAME.SETTING, all of them strings.
_OPEN_SECTIONS = ("sources", "engines")
#: The file with the API key of a service.
_KEY_FILE = "LAKE_KEY_FILE"
#: `LAKE_S3__SECRET_KEY_FILE` names the file that holds `s3.secret_key`.
_FILE_SUFFIX = "_file"
#: Keys of other companies' services, which cost money: they are never stored beside the data.
NEVER_IN_FILE = {"agent.key"}

Flat = dict[str, tuple[Any, str]]


def load_settings(
    flags: Mapping[str, Any] | None = None, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Load the settings for a folder.

    Args:
        flags: dotted names (`spark.master`) given on the command line or to `open_lake`; None: not given.
        folder: where to search for lake.toml and .env, and in its parents (default: the working folder). Without one there,
            that of the lake is read, if a flag or variable says where the lake is.
        environ: the environment (default: that of this process).
    """
    folder = (folder or Path.cwd()).absolute()
    environ = os.environ if environ is None else environ
    own = _file_of_lake((flags or {}).get("home") or environ.get("LAKE_HOME"), folder)
    file = find_file(folder) or own
    base = file.parent if file else folder
    given: Flat = {}
    if cache := environ.get("XDG_CACHE_HOME"):
        given["cache"] = (Path(cache) / "lakehouse", "environment: XDG_CACHE_HOME")
    if file:
        given.update(_from_toml(file))
    if own and own != file:
        _keep_protected(given, _from_toml(own))
    given.update(_from_environment(_read_env_file(base / ".env"), str(base / ".env")))
    given.update(_from_environment(environ, "environment"))
    given.update({name: (value, "flag") for name, value in (flags or {}).items() if value is not None})
    return settings_from(given, base, folder)


def find_file(folder: Path) -> Path | None:
    """The lake.toml of a folder or of its nearest parent."""
    candidates = (parent / FILE_NAME for parent in (folder, *folder.parents))
    return next((file for file in candidates if file.is_file()), None)


def _file_of_lake(home: str | Path | None, folder: Path) -> Path | None:
    """The lake.toml of a lake: in its folder, or beside it if that file is about this lake."""
    if not home:
        return None
    lake = folder / Path(home).expanduser()
    if (inside := lake / FILE_NAME).is_file():
        return inside
    beside = lake.parent / FILE_NAME
    if not beside.is_file():
        return None
    named, _ = _from_toml(beside).get("home", (".lake", ""))
    return beside if isinstance(named, str) and (lake.parent / named).absolute() == lake.absolute() else None


def _keep_protected(given: Flat, of_lake: Flat) -> None:
    """Protect what the lake's own file protects, wherever the process was started."""
    name = "branches.protected"
    protected, origin = of_lake.get(name, ([], ""))
    others, _ = given.get(name, ([], ""))
    if isinstance(protected, list) and protected and isinstance(others, list):
        given[name] = ([*others, *(branch for branch in protected if branch not in others)], origin)


class KnownSetting(NamedTuple):
    name: str
    """With dots."""
    field: Field[Any]
    section: type
    """The class of settings that has the field."""

    @property
    def type(self) -> Any:
        # Evaluated only for settings that have a value: to evaluate all takes longer than all other work on settings.
        return _types(self.section)[self.field.name]


_types = cache(get_type_hints)


def all_settings(section: Any = Settings, prefix: str = "") -> Iterator[KnownSetting]:
    """Every setting, nested ones included."""
    for part in fields(section):
        if part.metadata.get("internal") or part.name in _OPEN_SECTIONS:
            continue
        if is_dataclass(part.default_factory):
            yield from all_settings(part.default_factory, f"{prefix}{part.name}.")
        else:
            yield KnownSetting(prefix + part.name, part, section)


def plugin_settings(settings: Settings) -> dict[str, str]:
    """The settings under [sources.*] and [engines.*], by dotted name."""
    return {
        f"{section}.{name}.{setting}": value
        for section in _OPEN_SECTIONS
        for name, values in getattr(settings, section).items()
        for setting, value in values.items()
    }


def dump_settings(settings: Settings, sources: bool = False) -> str:
    """All settings as JSON, in a fixed order; those of sources and plugins, which may be secret, only if they are wanted."""
    import json

    values: dict[str, object] = {name: reduce(getattr, name.split("."), settings) for name, _, _ in all_settings()}
    if sources:
        values |= plugin_settings(settings)
    return json.dumps({name: _plain(value) for name, value in values.items()})


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def parse_settings(text: str) -> Settings:
    """The settings that `dump_settings` wrote."""
    import json

    given = {name: (value, "parent process") for name, value in json.loads(text).items()}
    return settings_from(given, Path("/"), Path("/"))


def _from_toml(file: Path) -> Flat:
    import tomllib

    try:
        content = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise BadSettingError(
            f"{file} is not TOML: {exc}.", "Compare it with the one that `lake init` writes."
        ) from exc
    except OSError as exc:
        raise BadSettingError(f"{file} cannot be read: {exc.strerror}.", "Check its permissions.") from exc
    given = {name: (value, str(file)) for name, value in _flatten(content)}
    for name in NEVER_IN_FILE.intersection(given):
        variable = _PREFIX + name.upper().replace(".", "__")
        raise BadSettingError(
            f"{name} does not belong into {file}, which others read.",
            f"Set {variable}, or {variable}{_FILE_SUFFIX.upper()} to a file that holds it.",
        )
    return given


def _flatten(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    tables = {setting.name for setting in all_settings() if _is_table(setting.type)}
    for key, value in content.items():
        name = prefix + key
        if isinstance(value, dict) and name not in tables:
            yield from _flatten(value, name + ".")
        else:
            yield name, value


def _is_table(kind: Any) -> bool:
    """Whether a setting is a table of names that only an engine or a plugin knows, such as spark.conf."""
    return getattr(kind, "__origin__", None) is Mapping


def _read_env_file(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSettingError(f"{file} cannot be read: {exc}.", "It holds lines such as LAKE_HOME=/data/lake.") from exc
    pairs = (line.split("=", 1) for line in lines if "=" in line and line.strip()[0] != "#")
    return {key.removeprefix("export ").strip(): value.strip().strip("\"'") for key, value in pairs}


def _from_environment(environ: Mapping[str, str], source: str) -> Flat:
    """The settings in an environment: LAKE_SPARK__MASTER is spark.master."""
    secrets = {name for name, part, _ in all_settings() if part.metadata.get("secret") or name == "catalog.uri"}
    given: Flat = {}
    for key, value in sorted(environ.items()):
        if key.startswith(_PREFIX) and key not in _NOT_SETTINGS and not key.startswith(_DBT_PREFIX):
            name = key.removeprefix(_PREFIX).lower().replace("__", ".")
            origin = f"{source}: {key}" if source == "environment" else source
            if name.endswith(_FILE_SUFFIX) and name.removesuffix(_FILE_SUFFIX) in secrets:
                name, value = name.removesuffix(_FILE_SUFFIX), _read_secret(key, value)
                if name in given:
                    raise BadSettingError(f"{key} and {key[: -len(_FILE_SUFFIX)]} are both set.", "Set one of them.")
            given[name] = (value, origin)
    return given


def _read_secret(variable: str, file: str) -> str:
    try:
        text = Path(file).expanduser().read_text()
        return key_in(text, f"{variable}: {file}") if variable == _KEY_FILE else text.strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise BadSettingError(
            f"{variable}: {file} cannot be read: {reason}.", "It names a file with the secret."
        ) from exc


def settings_from(given: Flat, base: Path, cwd: Path) -> Settings:
    """Settings from dotted names. A relative folder is relative to `base`; one from a flag or variable, to `cwd`."""
    known = {setting.name: setting for setting in all_settings()}
    values: dict[str, Any] = {}
    origins = {name: origin for name, (_, origin) in given.items()}
    sections: dict[str, dict[str, dict[str, str]]] = {section: {} for section in _OPEN_SECTIONS}
    for name, (value, origin) in given.items():
        table, _, key = name.rpartition(".")
        if name.count(".") == 2 and name.partition(".")[0] in _OPEN_SECTIONS:
            section, plugin, own = name.split(".")
            folder = cwd if origin.startswith(("flag", "environment")) else base
            sections[section].setdefault(plugin, {})[own] = _plugin_value(own, value, folder)
        elif name not in known and table in known and known[table].type == Mapping[str, str]:
            values[table] = {**values.get(table, {}), key: as_property(value)}
        else:
            setting = _known_setting(name, origin, known)
            values[name] = parse_value(name, value, setting.type, origin, setting.field.metadata)
            check_choice(name, values[name], setting.field.metadata)
    for name in ("home", "cache", "dbt"):
        folder = Path(values.get(name, known[name].field.default)).expanduser()
        typed = origins.get(name, "").startswith(("flag", "environment"))
        values[name] = ((cwd if typed else base) / folder).absolute()
    built: Settings = _nest(Settings, values, "", origins=origins, **sections)
    return built


def _known_setting(name: str, origin: str, known: Mapping[str, KnownSetting]) -> KnownSetting:
    if name not in known:
        raise BadSettingError(
            f"{name} ({origin}) is not a setting.", suggestion(name, known) + "All of them: lake config show"
        )
    return known[name]


def _nest(section: Any, values: Mapping[str, Any], prefix: str, **extra: Any) -> Any:
    arguments: dict[str, Any] = dict(extra)
    for part in fields(section):
        if is_dataclass(part.default_factory):
            arguments[part.name] = _nest(part.default_factory, values, f"{prefix}{part.name}.")
        elif prefix + part.name in values:
            arguments[part.name] = values[prefix + part.name]
    return section(**arguments)


def _plugin_value(setting: str, value: Any, folder: Path) -> str:
    """A setting of a source or a plugin as a string; a relative path is resolved against the folder."""
    text = as_property(value)
    is_local = setting == "path" and text and "://" not in text
    return str(folder / Path(text).expanduser()) if is_local else text
