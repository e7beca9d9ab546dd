"""WHEN: a snapshot id, a tag or branch, an ISO timestamp, or a relative time such as `yesterday` or `2 hours ago`.

`parse` needs no table: it separates times from ids and refs. `resolve` then finds the snapshot in a table's history, so
that every engine gets a snapshot id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import WhenError

#: A month is 30 days and a year 365, as in `git log --since`.
_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "year": 365 * 86_400,
}
_AGO = re.compile(r"(?P<count>an?|\d+)\s+(?P<unit>second|minute|hour|day|week|month|year)s?\s+ago")
_FORMS = "a snapshot id, a tag, an ISO time (2026-01-31, 2026-01-31T12:00:00+01:00), yesterday, '2 hours ago'"


@dataclass(frozen=True)
class Version:
    """A snapshot id with its commit time."""

    id: str
    at: datetime


def parse(text: str, now: datetime) -> datetime | None:
    """The time that a WHEN denotes; None if it is an id or a ref."""
    try:
        return _moment(text, now)
    except OverflowError:
        # Before year 1 or after year 9999: no table existed, which is what the caller reports.
        return datetime.min.replace(tzinfo=UTC)


def _moment(text: str, now: datetime) -> datetime | None:
    words = " ".join(text.lower().split())
    if words in {"now", "latest", "today"}:
        return now
    if words == "yesterday":
        return now - timedelta(days=1)
    if ago := _AGO.fullmatch(words):
        count = 1 if ago["count"].startswith("a") else int(ago["count"])
        return now - timedelta(seconds=count * _SECONDS[ago["unit"]])
    return _iso(text.strip())


def _iso(text: str) -> datetime | None:
    # Python parses 20260131 as a date, but digits alone are a snapshot id or a Hudi instant here.
    if text.isdigit():
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def resolve(
    text: str, versions: Sequence[Version], refs: Mapping[str, str], now: datetime, table: str, ids: Sequence[str] = ()
) -> str:
    """Resolve a WHEN to a snapshot id.

    Args:
        versions: the table's snapshots, oldest first; a time resolves to the last one that is not younger.
        refs: tags and branches of the table, by name.
        ids: snapshots that are readable but not in `versions`, because they were rolled back.
    """
    if not versions:
        raise WhenError(f"{table} has no snapshot yet.", f"lake describe {table}")
    if text in refs:
        return refs[text]
    if text in {version.id for version in versions} or text in ids:
        return text
    moment = parse(text, now)
    if moment is None:
        raise WhenError(f"Invalid WHEN for {table}: {text!r}.", _valid(versions, refs))
    if moment > now:
        raise WhenError(f"{text!r} is in the future ({_show(moment)}).", _valid(versions, refs))
    if moment < versions[0].at:
        raise WhenError(f"{table} did not exist yet at {_show(moment)}.", _valid(versions, refs))
    return [version for version in versions if version.at <= moment][-1].id


def _valid(versions: Sequence[Version], refs: Mapping[str, str]) -> str:
    first, last = versions[0], versions[-1]
    names = f"; tags and branches: {', '.join(sorted(refs))}" if refs else ""
    return f"Use {_FORMS}. Snapshots range from {_show(first.at)} ({first.id}) to {_show(last.at)} ({last.id}){names}."


def _show(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def iso_time(nanoseconds: int) -> str:
    """Return a time since 1970 in ISO 8601, in UTC."""
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=UTC).isoformat()


def new_id() -> str:
    """Return a unique id that sorts by time, to the millisecond: small runs begin in the same second."""
    import secrets

    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")[:-3] + secrets.token_hex(2)
