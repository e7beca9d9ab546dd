"""How tables are maintained: the settings `[maintenance]`, and what differs for a namespace or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.core.names import TableName, suggestion
from lakehouse.core.setting import setting

#: Files of a writer that is still at work are younger than this; no setting can make it less.
MIN_ORPHAN_DAYS = 3.0
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: Settings of the whole lake: they have no meaning for one table.
_OF_THE_LAKE = ("schedule", "delete_after_hours", "tables")


@dataclass(frozen=True)
class MaintenanceSettings:
    """`[maintenance]` in lake.toml, `LAKE_MAINTENANCE__*` in the environment."""

    enabled: bool = setting(True, "Let `lake maintain --all` change the tables.")
    keep_days: float = setting(7.0, "Days for which old snapshots stay readable and commits can be reverted.")
    keep_snapshots: int = setting(10, "Snapshots of a table that stay however old they are.")
    max_snapshots: int = setting(1000, "Snapshots of a table above which the oldest expire early; 0: no limit.")
    undrop_days: float = setting(30.0, "Days for which a dropped table can be restored.")
    orphan_days: float = setting(
        3.0, "Age in days from which a file that nothing refers to may be removed; at least 3."
    )
    delete_after_hours: float = setting(
        24.0, "Hours between finding that nothing refers to a file and removing it; queries may still read it."
    )
    target_file_size: str = setting(
        "auto", "Size of data files after compaction, e.g. 128MB; auto: the table's property, else 512MB."
    )
    sort: str = setting(
        "",
        "Order of rows for compaction on Spark, e.g. `day, id DESC` or `zorder(x, y)` (default: as the table states).",
    )
    statistics: bool = setting(
        False, "Keep statistics of distinct values (NDV), by which Trino orders joins; Spark computes them."
    )
    largest_local: str = setting("512MB", "Compactions of more bytes run on Spark, others in this process.")
    schedule: str = setting(
        "", "Cron expression of `lake maintain --all` in Dagster, e.g. `0 3 * * *` (default: none)."
    )
    tables: Mapping[str, Mapping[str, str]] = setting(
        {}, 'Differences for a table or namespace, under [maintenance.tables."crm.leads"] (default: none).'
    )


@dataclass(frozen=True)
class Policy:
    """The settings that apply to one table."""

    enabled: bool
    keep_days: float
    keep_snapshots: int
    max_snapshots: int
    undrop_days: float
    orphan_days: float
    target_file_size: int
    """In bytes; 0: what the table's property states, else Iceberg's default."""
    sort: str
    statistics: bool
    largest_local: int

    def oldest_kept(self, now: datetime) -> datetime:
        """Return the time before which snapshots and log entries expire."""
        return now - timedelta(days=self.keep_days)


def policy_for(settings: MaintenanceSettings, table: TableName | None = None) -> Policy:
    """Return the policy of a table; without one, that of the whole lake."""
    merged = settings
    for key in (table.namespace, str(table)) if table else ():
        merged = _with_differences(merged, key, settings.tables.get(key, {}))
    if merged.orphan_days < MIN_ORPHAN_DAYS:
        raise BadSettingError(
            f"maintenance.orphan_days = {merged.orphan_days:g} is less than {MIN_ORPHAN_DAYS:g}.",
            "A slow writer may commit files that are days old.",
        )
    own = {part.name: getattr(merged, part.name) for part in fields(Policy)}
    own["target_file_size"] = (
        0 if merged.target_file_size == "auto" else _bytes("target_file_size", merged.target_file_size)
    )
    own["largest_local"] = _bytes("largest_local", merged.largest_local)
    return Policy(**own)


def policies(settings: MaintenanceSettings) -> Callable[[TableName], Policy]:
    """Return a function like `policy_for` that builds the policy of all tables without differences once."""
    shared = policy_for(settings)

    def policy_of(table: TableName) -> Policy:
        special = table.namespace in settings.tables or str(table) in settings.tables
        return policy_for(settings, table) if special else shared

    return policy_of


def special_policies(settings: MaintenanceSettings) -> list[Policy]:
    """Return the policies of tables and namespaces that differ; raises for an unknown setting or an invalid value."""
    return [
        policy_for(settings, TableName.parse(key) if "." in key else TableName(key, "x")) for key in settings.tables
    ]


def _with_differences(settings: MaintenanceSettings, key: str, values: Mapping[str, str]) -> MaintenanceSettings:
    kinds = {part.name: type(part.default) for part in fields(settings) if part.name not in _OF_THE_LAKE}
    for name in values:
        if name not in kinds:
            raise BadSettingError(
                f'maintenance.tables."{key}".{name} is not a setting of a table.',
                f"{suggestion(name, kinds)}Choose from: {', '.join(sorted(kinds))}.",
            )
    return replace(settings, **{name: _parse(key, name, text, kinds[name]) for name, text in values.items()})


def _parse(key: str, name: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        value = kind(text)
        if kind is not str and not 0 <= value < float("inf"):
            raise ValueError(text)
        return value
    except (ValueError, KeyError) as exc:
        raise BadSettingError(
            f'maintenance.tables."{key}".{name} = {text!r} is not a value of this setting.', "docs/maintenance.md"
        ) from exc


def _bytes(name: str, text: str) -> int:
    digits = text.strip().lower().removesuffix("b").removesuffix("i").rstrip()
    number, unit = (digits[:-1], digits[-1]) if digits[-1:] in _UNITS and digits else (digits, "")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, OverflowError) as exc:
        raise BadSettingError(f"maintenance.{name} = {text!r} is not a size.", "Write it as 128MB or 1GB.") from exc
    if size <= 0:
        raise BadSettingError(f"maintenance.{name} = {text!r} is not a size.", "Write it as 128MB or 1GB.")
    return size
