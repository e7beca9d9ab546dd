"""Where a database is and who asks, without a password in any text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lakehouse.core.errors import SourceError

#: Parts of an address after the `?` that PostgreSQL's C library and its JDBC driver call by the same name.
_OPTIONS = ("sslmode", "sslrootcert")
WRITTEN = "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ and %2F for a / in the password."


@dataclass(frozen=True)
class Address:
    """Where a database is and who asks. The password shows in no text of it."""

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
            raise SourceError("The address of the database is not set.", f"Set `url` under [sources.…]. {WRITTEN}")
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname or "", parts.port or 5432
        except ValueError:  # its text may hold the password
            raise SourceError("The address of the database cannot be read.", WRITTEN) from None
        database, options = unquote(parts.path.strip("/")), dict(parse_qsl(parts.query))
        if parts.scheme not in ("postgresql", "postgres") or not (host and database and parts.username):
            raise SourceError("The address of the database is not complete.", WRITTEN)
        if unknown := sorted(set(options) - set(_OPTIONS)):
            raise SourceError(
                f"The address of the database has an option {unknown[0]}.", f"It may have: {', '.join(_OPTIONS)}."
            )
        return cls(host, port, database, unquote(parts.username), unquote(parts.password or ""), options)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{self.port}/{quote(self.database)}"

    @property
    def jdbc_url(self) -> str:
        """The same for Java, without the user and the password: those are given as options."""
        options = "&".join(f"{name}={quote(value)}" for name, value in self.options.items())
        return f"jdbc:{self}" + (f"?{options}" if options else "")

    def hiding(self, text: str) -> str:
        """The first line of a text of somebody else's, without the password."""
        line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
        for secret in {self.password, quote(self.password, safe="")} - {""}:
            line = line.replace(secret, "***")
        return line
