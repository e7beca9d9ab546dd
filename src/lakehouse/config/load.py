"""Load settings from lake.toml, .env, the environment and flags; record the origin of each, and reject unknown names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from lakehouse.config.settings import Settings
from lakehouse.config.values import as_property, parse_value
from lakehouse.core.errors import BadSettingError, UnknownChoiceError
from lakehouse.core.names import nearest
from lakehouse.core.registry import kinds

FILE_NAME = "lake.toml"
_PREFIX = "LAKE_"
#: Read by the command line before settings are loaded.
_NOT_SETTINGS = {"LAKE_DEBUG"}
#: Variables that orchestrate/dbt_project/profiles.yml reads.
_DBT_PREFIX = "LAKE_DBT_"
#: The section of the pipelines' own settings, sources.NAME.SETTING, all of them strings.
_SOURCES = "sources"
#: `LAKE_S3__SECRET_KEY_FILE` names the file that holds `s3.secret_key`.
_FILE_SUFFIX = "_file"

Flat = dict[str, tuple[Any, str]]


def load_settings(
    flags: Mapping[str, Any] | None = None, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Load the settings for a folder.

    Args:
        flags: dotted names (`spark.master`) given on the command line or to `open_lake`; None: not given.
        folder: where to search for lake.toml and .env, and in its parents (default: the working folder).
        environ: the environment (default: that of this process).
    """
    folder = (folder or Path.cwd()).absolute()
    environ = os.environ if environ is None else environ
    file = find_file(folder)
    base = file.parent if file else folder
    found: Flat = {}
    if cache := environ.get("XDG_CACHE_HOME"):
        found["cache"] = (Path(cache) / "lakehouse", "environment: XDG_CACHE_HOME")
    if file:
        found.update(_from_toml(file))
    found.update(_from_environment(_read_env_file(base / ".env"), str(base / ".env")))
    found.update(_from_environment(environ, "environment"))
    found.update({name: (value, "flag") for name, value in (flags or {}).items() if value is not None})
    return settings_from(found, base, folder)


def find_file(folder: Path) -> Path | None:
    """The lake.toml of a folder or of its nearest parent."""
    return next((each / FILE_NAME for each in (folder, *folder.parents) if (each / FILE_NAME).is_file()), None)


def all_settings(kind: Any = Settings, prefix: str = "") -> Iterator[tuple[str, Field[Any], Any]]:
    """Every setting as (dotted name, field, type), nested ones included."""
    types = get_type_hints(kind)
    for part in fields(kind):
        if part.metadata.get("internal") or part.name == _SOURCES:
            continue
        if is_dataclass(types[part.name]):
            yield from all_settings(types[part.name], f"{prefix}{part.name}.")
        else:
            yield prefix + part.name, part, types[part.name]


def source_settings(settings: Settings) -> dict[str, str]:
    """The settings under [sources.*], by dotted name."""
    return {
        f"{_SOURCES}.{pipeline}.{name}": value
        for pipeline, values in settings.sources.items()
        for name, value in values.items()
    }


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
    return {name: (value, str(file)) for name, value in _flatten(content)}


def _flatten(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    maps = {name for name, _, kind in all_settings() if getattr(kind, "__origin__", None) is not None}
    for key, value in content.items():
        name = prefix + key
        if isinstance(value, dict) and name not in maps:
            yield from _flatten(value, name + ".")
        else:
            yield name, value


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
    found: Flat = {}
    for key, value in sorted(environ.items()):
        if key.startswith(_PREFIX) and key not in _NOT_SETTINGS and not key.startswith(_DBT_PREFIX):
            name = key.removeprefix(_PREFIX).lower().replace("__", ".")
            origin = f"{source}: {key}" if source == "environment" else source
            if name.endswith(_FILE_SUFFIX) and name.removesuffix(_FILE_SUFFIX) in secrets:
                name, value = name.removesuffix(_FILE_SUFFIX), _read_secret(key, value)
                if name in found:
                    raise BadSettingError(f"{key} and {key[: -len(_FILE_SUFFIX)]} are both set.", "Set one of them.")
            found[name] = (value, origin)
    return found


def _read_secret(variable: str, file: str) -> str:
    try:
        return Path(file).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise BadSettingError(
            f"{variable}: {file} cannot be read: {reason}.", "It names a file with the secret."
        ) from exc


def settings_from(found: Flat, base: Path, cwd: Path) -> Settings:
    """Settings from dotted names. A relative folder is relative to `base`; one from a flag or variable, to `cwd`."""
    known = {name: (part, kind) for name, part, kind in all_settings()}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    sources: dict[str, dict[str, str]] = {}
    for name, (value, source) in found.items():
        if name.startswith(f"{_SOURCES}.") and name.count(".") == 2:
            origins[name] = source
            _, pipeline, setting = name.split(".")
            folder = cwd if source.startswith(("flag", "environment")) else base
            sources.setdefault(pipeline, {})[setting] = _source_value(setting, value, folder)
            continue
        if name not in known:
            near = nearest(name, known)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise BadSettingError(f"{name} ({source}) is not a setting.", hint + "All of them: lake config show")
        part, kind = known[name]
        values[name] = parse_value(name, value, kind, source, part.metadata)
        origins[name] = source
        _check_choice(name, values[name], part.metadata)
    for name in ("home", "cache", "dbt"):
        given = Path(values.get(name, known[name][0].default)).expanduser()
        typed = origins.get(name, "").startswith(("flag", "environment"))
        values[name] = ((cwd if typed else base) / given).absolute()
    built: Settings = _nest(Settings, values, "", origins=origins, sources=sources)
    return built


def _check_choice(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    """Refuse a value that is neither built in nor registered by an installed package."""
    choices = metadata.get("choices")
    if choices and value not in choices:
        registered = kinds(metadata["registry"]) if metadata.get("registry") else []
        if value not in registered:
            raise UnknownChoiceError(name, value, {*choices, *registered})


def _nest(kind: Any, values: Mapping[str, Any], prefix: str, **extra: Any) -> Any:
    types = get_type_hints(kind)
    arguments: dict[str, Any] = dict(extra)
    for part in fields(kind):
        if is_dataclass(types[part.name]):
            arguments[part.name] = _nest(types[part.name], values, f"{prefix}{part.name}.")
        elif prefix + part.name in values:
            arguments[part.name] = values[prefix + part.name]
    return kind(**arguments)


def _source_value(setting: str, value: Any, folder: Path) -> str:
    """A setting of a pipeline's source as a string; a relative path is resolved against the folder."""
    text = as_property(value)
    is_local = setting == "path" and text and "://" not in text
    return str(folder / Path(text).expanduser()) if is_local else text
