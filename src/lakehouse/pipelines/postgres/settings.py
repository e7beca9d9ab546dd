"""Settings of a pipeline that reads from PostgreSQL, and the address of the database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, SourceError

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


#: URL options that libpq and the JDBC driver both know by the same name.
_OPTIONS = ("sslmode", "sslrootcert")
ADDRESS_HINT = "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ and %2F for a / in the password."


@dataclass(frozen=True)
class Address:
    """Host, database and user. Its texts do not show the password."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user:password@host:port/database?sslmode=require`."""
        if not url.strip():
            raise SourceError("The address of the database is not set.", f"Set `url` under [sources.…]. {ADDRESS_HINT}")
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname or "", parts.port or 5432
        except ValueError:  # its text may hold the password
            raise SourceError("The address of the database cannot be read.", ADDRESS_HINT) from None
        database, options = unquote(parts.path.strip("/")), dict(parse_qsl(parts.query))
        if parts.scheme not in ("postgresql", "postgres") or not (host and database and parts.username):
            raise SourceError("The address of the database is not complete.", ADDRESS_HINT)
        if unknown := sorted(set(options) - set(_OPTIONS)):
            raise SourceError(
                f"The address of the database has an unknown option {unknown[0]}.", f"Known: {', '.join(_OPTIONS)}."
            )
        return cls(host, port, database, unquote(parts.username), unquote(parts.password or ""), options)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{self.port}/{quote(self.database)}"

    @property
    def jdbc_url(self) -> str:
        """The JDBC URL, without user and password: they are passed as options."""
        options = "&".join(f"{name}={quote(value)}" for name, value in self.options.items())
        return f"jdbc:{self}" + (f"?{options}" if options else "")

    def redact(self, text: str) -> str:
        """The first line of an error message, without the password."""
        line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
        for secret in {self.password, quote(self.password, safe="")} - {""}:
            line = line.replace(secret, "***")
        return line
