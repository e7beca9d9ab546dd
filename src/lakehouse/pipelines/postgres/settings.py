"""Settings of a pipeline that reads from PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lakehouse.core.errors import BadSettingError
from lakehouse.pipelines.postgres.address import Address

SETTINGS = {
    "url": "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, optionally with ?sslmode=…",
    "schema": "the schema of its tables (default: public)",
    "updated_at": "the column with the time of a row's last change (default: updated_at); empty: read all rows each time",
    "overlap": "how far before the last watermark rows are read again (default: 5m)",
    "rows_per_read": "larger tables are read in concurrent parts of about this many rows (default: 100000)",
}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class PostgresSettings:
    """`[sources.NAME]` of a pipeline that reads from PostgreSQL."""

    address: Address
    schema: str = "public"
    updated_at: str = "updated_at"
    overlap: timedelta = timedelta(minutes=5)
    rows_per_read: int = 100_000

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> PostgresSettings:
        return cls(
            address=Address.parse(given.get("url", "")),
            schema=given.get("schema", "") or cls.schema,
            updated_at=given.get("updated_at", cls.updated_at),
            overlap=_duration(given.get("overlap", "") or "5m"),
            rows_per_read=_count(given.get("rows_per_read", "") or str(cls.rows_per_read)),
        )


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"(?P<count>\d{1,6})\s*(?P<unit>[smhd])", text.strip())
    if not match:
        raise BadSettingError(f"overlap = {text!r} is not a duration.", "Write 30s, 5m, 2h or 1d.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["count"])})


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise BadSettingError(f"rows_per_read = {text!r} is not a number from 1.", "The default is 100000.")
    return int(text)
