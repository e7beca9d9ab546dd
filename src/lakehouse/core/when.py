"""WHEN: a snapshot id, a tag or branch, an ISO timestamp, or words such as `yesterday` and `2 hours ago`.

A WHEN is read in two steps. `parse` needs no table: it tells a time from anything else. `resolve` then finds
the one snapshot that is meant in a table's history, so that every engine gets a snapshot id and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakehouse.core.errors import WhenError

#: Days and longer are calendar-free on purpose: a month is 30 days, a year 365, as in `git log --since`.
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
    """One point in a table's history, as far as resolving a WHEN needs it."""

    id: str
    at: datetime


def parse(text: str, now: datetime) -> datetime | None:
    """The moment that the text means, or None when it is not a time (then it is an id or a reference)."""
    try:
        return _moment(text, now)
    except OverflowError:
        # Before the year 1 or after the year 9999: no table was there, and saying so is all that is wanted.
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
    # Python would also read 20260131 as a date, but a run of digits is a snapshot id or a Hudi instant here.
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
    """The id of the snapshot that a WHEN means.

    Args:
        versions: what the table was, oldest first; a time means the last version that is not younger.
        refs: tags and branches of the table, by name.
        ids: snapshots that are still readable but no longer in `versions` (rolled back), if any.
    """
    if not versions:
        raise WhenError(f"{table} has no snapshot yet, so there is nothing to travel to.", f"lake describe {table}")
    if text in refs:
        return refs[text]
    if text in {version.id for version in versions} or text in ids:
        return text
    moment = parse(text, now)
    if moment is None:
        raise WhenError(f"{text!r} is not a WHEN of {table}.", _valid(versions, refs))
    if moment > now:
        raise WhenError(f"{text!r} lies in the future ({_show(moment)}).", _valid(versions, refs))
    if moment < versions[0].at:
        raise WhenError(f"{table} did not exist yet at {_show(moment)}.", _valid(versions, refs))
    return [version for version in versions if version.at <= moment][-1].id


def _valid(versions: Sequence[Version], refs: Mapping[str, str]) -> str:
    first, last = versions[0], versions[-1]
    names = f"; tags and branches: {', '.join(sorted(refs))}" if refs else ""
    return f"Valid is {_FORMS}. Snapshots reach from {_show(first.at)} ({first.id}) to {_show(last.at)} ({last.id}){names}."


def _show(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
