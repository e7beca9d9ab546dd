"""Renders the pages of the console, and serves the files that they load: templates, formats of values, assets."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotFoundError
from lakehouse.core.files import size_text
from lakehouse.operations import OPERATIONS

_FOLDER = Path(__file__).parent
_STATIC = _FOLDER / "static"
#: The pages that the navigation leads to.
PAGES = frozenset(
    operation.path for operation in OPERATIONS if operation.path.startswith("/ui") and operation.method == "GET"
)
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
#: Types whose values are right-aligned, as in static/rows.js.
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal.*")
#: Seconds in a unit of time, the largest that fits names an age.
_UNITS = ((86400 * 365, "year"), (86400 * 30, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


@dataclass(frozen=True)
class PageFacts:
    """What every page needs to know of its request."""

    path: str
    query: str
    csrf: str
    nonce: str
    theme: str
    version: str
    user: str
    scope: str
    may_write: bool
    may_admin: bool
    may_change_main: bool
    is_limited: bool

    @property
    def json_address(self) -> str:
        """The address of the same page as JSON."""
        return f"{self.path}.json" + (f"?{self.query}" if self.query else "")


@dataclass(frozen=True)
class Asset:
    """A file that pages load."""

    content: bytes
    compressed: bytes
    media_type: str


def render(template: str, data: Mapping[str, Any], page: PageFacts) -> str:
    """A page as HTML; values are escaped."""
    return _environment().get_template(template).render(**data, page=page)


@cache
def asset(name: str) -> Asset:
    """A file of the console; raises NotFoundError."""
    file = (_STATIC / name).resolve()
    if not file.is_relative_to(_STATIC) or not file.is_file() or file.suffix not in _TYPES:
        raise NotFoundError(f"The console has no file {name[:100]!r}.", "/ui")
    content = file.read_bytes()
    return Asset(content, gzip.compress(content, 9, mtime=0), f"{_TYPES[file.suffix]}; charset=utf-8")


@cache
def styles() -> Markup:
    """The styles, which stand in every page: its first paint waits for no second request."""
    return Markup(asset("console.css").content.decode())  # noqa: S704 - a file of ours, for an element that holds no markup


def address_of(name: str) -> str:
    """The address of an asset. The version is a folder of it, so that files that import each other have the same."""
    return f"/ui/static/{_version()}/{name}"


@cache
def _version() -> str:
    """Changes with the content of any file, so that browsers may keep all of them."""
    files = sorted(file for file in _STATIC.rglob("*") if file.is_file())
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()[:12]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = address_of
    environment.globals["styles"] = styles
    environment.globals["address"] = address
    environment.globals["shown_snapshots"] = shown_snapshots
    environment.globals["pages"] = PAGES
    environment.globals["page_names"] = {path.removeprefix("/ui/") for path in PAGES}
    environment.filters.update(
        number=number,
        size=lambda count: "" if count is None else size_text(count),
        age=age,
        moment=moment,
        data=data_text,
        is_number=lambda type: bool(_NUMBER.fullmatch(type)),
    )
    return environment


def address(path: str, **query: Any) -> str:
    """An address of the console with those values of the query that are set."""
    given = {name: value for name, value in query.items() if value not in ("", None)}
    return quote(path) + (f"?{urlencode(given)}" if given else "")


def shown_snapshots(snapshots: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the slider of a table needs of its snapshots, of which there may be hundreds."""
    names = ("id", "at", "operation", "rows_total", "files_total", "bytes_total", "is_current")
    return [{name: snapshot[name] for name in names} for snapshot in snapshots]


def number(value: int | float | None) -> str:
    """A number with separators of thousands; nothing for none."""
    return "" if value is None else f"{value:,}"


def moment(value: str) -> str:
    """A time as people read it, in UTC."""
    return _parsed(value).strftime("%Y-%m-%d %H:%M:%S") if value else ""


def age(value: str, now: datetime | None = None) -> str:
    """How long ago a time was, in its largest unit."""
    if not value:
        return ""
    seconds = ((now or datetime.now(UTC)) - _parsed(value)).total_seconds()
    for unit, name in _UNITS:
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count != 1 else ''} ago"
    return "just now"


def data_text(value: Any) -> Markup:
    """A value as JSON inside of a script element, which cannot end it."""
    text = json.dumps(value)
    for letter, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(letter, escape)
    return Markup(text)  # noqa: S704 - every letter that HTML knows is escaped


def _parsed(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
