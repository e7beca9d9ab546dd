"""The address of a database, without its password in any text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lakehouse.core.errors import SourceError

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
