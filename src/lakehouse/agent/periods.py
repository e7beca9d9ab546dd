"""Periods of calendar days in a question: last month, in March 2026, between 2026-01-02 and 2026-01-05, since Monday's date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from lakehouse.agent.refusal import Refusal
from lakehouse.agent.words import Token
from lakehouse.core.dataclass import dataclass

_MONTHS = "january february march april may june july august september october november december".split()
UNITS = ("day", "week", "month", "quarter", "year")
_LAST = {"last", "previous", "past"}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_NUMBERS = {
    word: n for n, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}


@dataclass(frozen=True)
class Period:
    """Calendar days from `start` to before `end`; None is open."""

    start: date | None
    end: date | None
    label: str
    unit: str = ""
    """The unit that the period is one of, such as month; empty for a range."""

    def previous(self) -> Period:
        """The period of the same length before this one."""
        assert self.start is not None and self.end is not None
        if self.unit:
            return of_unit(self.unit, self.start - timedelta(days=1))
        start = self.start - (self.end - self.start)
        return Period(start, self.start, span_label(start, self.start))


def of_unit(unit: str, day: date) -> Period:
    """The day, week, month, quarter or year of a day. Weeks begin on Monday."""
    start = _start(unit, day)
    label = {
        "day": f"{start}",
        "week": f"the week of {start}",
        "month": f"{_MONTHS[start.month - 1].title()} {start.year}",
        "quarter": f"Q{(start.month + 2) // 3} {start.year}",
        "year": f"{start.year}",
    }[unit]
    return Period(start, _after(unit, start), label, unit)


def _start(unit: str, day: date) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3, "year": 1}[unit]
    return day.replace(month=month, day=1)


def _after(unit: str, start: date) -> date:
    if unit in ("day", "week"):
        return start + timedelta(days=1 if unit == "day" else 7)
    return add_months(start, {"month": 1, "quarter": 3, "year": 12}[unit])


def add_months(day: date, months: int) -> date:
    """The first day of a later or earlier month."""
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(years, month + 1, 1)


def span_label(start: date, end: date) -> str:
    """The days from one to before another, in words."""
    last = end - timedelta(days=1)
    return f"{start}" if last == start else f"{start} to {last}"


class PeriodParser:
    """Finds the period that begins at a token."""

    def __init__(self, tokens: Sequence[Token], today: date) -> None:
        self._tokens, self._today = tokens, today

    def at(self, place: int) -> tuple[Period, int] | None:
        """A period and the place after it; None if none begins here. Raises Refusal if it is not clear which is meant."""
        word = self._word(place)
        if word in ("between", "from"):
            return self._range(place, "and" if word == "between" else "to")
        if word in ("since", "before", "after", "until", "till", "through"):
            return self._open(word, place)
        if word in ("in", "on", "during", "for", "of", "within", "at"):
            return self._after_preposition(place)
        return self._single(place)

    def _after_preposition(self, place: int) -> tuple[Period, int] | None:
        begin = place + 1 + (self._word(place + 1) == "the")
        period = self._single(begin)
        if period is None and self._is_year(begin):
            period = of_unit("year", date(int(self._tokens[begin].text), 1, 1)), begin + 1
        return period

    def _range(self, place: int, link: str) -> tuple[Period, int] | None:
        first = self._bound(place + 1)
        if first is None:
            return None
        start, then = first
        links = {"to", "until", "till", "through"} if link == "to" else {link}
        if self._word(then) not in links:
            if link == "to" and self._word(then) in ("on", "onward", "onwards"):
                return Period(start.start, None, f"since {start.label}"), then + 1
            return None
        last = self._bound(then + 1)
        if last is None:
            return None
        end, after = last
        assert start.start is not None and end.end is not None
        if end.end <= start.start:
            raise Refusal(f"The period from {start.label} to {end.label} ends before it begins.")
        return Period(start.start, end.end, f"{start.label} to {end.label}"), after

    def _open(self, word: str, place: int) -> tuple[Period, int] | None:
        bound = self._bound(place + 1)
        if bound is None:
            return None
        period, after = bound
        if word == "since":
            return Period(period.start, None, f"since {period.label}"), after
        if word == "after":
            return Period(period.end, None, f"after {period.label}"), after
        end = period.start if word == "before" else period.end
        return Period(None, end, f"{'before' if word == 'before' else 'until'} {period.label}"), after

    def _bound(self, place: int) -> tuple[Period, int] | None:
        """One end of a range; here a plain year counts."""
        begin = place + (self._word(place) == "the")
        if self._is_year(begin):
            return of_unit("year", date(int(self._tokens[begin].text), 1, 1)), begin + 1
        return self._single(begin)

    def _single(self, place: int) -> tuple[Period, int] | None:
        if place >= len(self._tokens):
            return None
        token = self._tokens[place]
        if token.kind == "date":
            return self._iso(token), place + 1
        if token.kind == "yearmonth":
            year, month = map(int, token.text.split("-"))
            return of_unit("month", date(year, month, 1)), place + 1
        for rule in (self._relative, self._month_name, self._day_then_month, self._quarter):
            if (period := rule(place)) is not None:
                return period
        return None

    def _iso(self, token: Token) -> Period:
        try:
            return of_unit("day", date.fromisoformat(token.text))
        except ValueError as exc:
            raise Refusal(f"{token.text} is not a calendar day.", ["2026-01-31"]) from exc

    def _relative(self, place: int) -> tuple[Period, int] | None:
        word, following = self._word(place), self._word(place + 1)
        if word in ("today", "yesterday"):
            return of_unit("day", self._today - timedelta(days=word == "yesterday")), place + 1
        if word == "this" and following in UNITS:
            return of_unit(following, self._today), place + 2
        if word in _LAST and following in UNITS:
            if word == "past":
                days = {"week": "7 days", "month": "30 days", "year": "365 days"}.get(following, f"2 {following}s")
                raise Refusal(
                    f'"past {following}" may be the last {following} or this one.',
                    [f"last {following}", f"the last {days}"],
                )
            if following == "day" and word != "previous":
                raise Refusal(f'"{word} day" may be yesterday or the last day with data.', ["yesterday"])
            current = of_unit(following, self._today)
            return current.previous(), place + 2
        count = self._count(place + 1)
        if word in _LAST and count and (unit := self._word(place + 2)) in UNITS:
            return self._last_units(count, unit), place + 3
        return None

    def _last_units(self, count: int, unit: str) -> Period:
        """The last N days include today; of longer units, only complete ones count."""
        if not 0 < count <= 1000:
            raise Refusal(f"The last {count} {unit}s are not a period.")
        if unit == "day":
            end = self._today + timedelta(days=1)
            start = end - timedelta(days=count)
            return Period(start, end, f"{span_label(start, end)} (today included)")
        period = current = of_unit(unit, self._today)
        for _ in range(count):
            period = period.previous()
        assert period.start is not None and current.start is not None
        return Period(period.start, current.start, f"{span_label(period.start, current.start)} (complete {unit}s)")

    def _month_name(self, place: int) -> tuple[Period, int] | None:
        month = self._month(place)
        if not month:
            return None
        # "May" is a verb as well: it is a month only with a year or a day.
        day = self._day_number(place + 1)
        year_place = place + 1 + bool(day)
        if day and year_place < len(self._tokens) and self._tokens[year_place].kind == "comma":
            year_place += 1
        year_place += self._word(year_place) == "of" and self._is_year(year_place + 1)
        if not self._is_year(year_place):
            raise Refusal(
                f"The year of {self._tokens[place].text} is missing.",
                [f"{_MONTHS[month - 1].title()} {year}" for year in (self._today.year, self._today.year - 1)],
            )
        return self._dated(int(self._tokens[year_place].text), month, day), year_place + 1

    def _day_then_month(self, place: int) -> tuple[Period, int] | None:
        day = self._day_number(place)
        month_place = place + 1 + (self._word(place + 1) == "of")
        month = self._month(month_place)
        if not day or not month or not self._is_year(month_place + 1):
            return None
        return self._dated(int(self._tokens[month_place + 1].text), month, day), month_place + 2

    def _dated(self, year: int, month: int, day: int) -> Period:
        try:
            return of_unit("day", date(year, month, day)) if day else of_unit("month", date(year, month, 1))
        except ValueError as exc:
            raise Refusal(f"{_MONTHS[month - 1].title()} {year} has no day {day}.") from exc

    def _quarter(self, place: int) -> tuple[Period, int] | None:
        word = self._word(place)
        number = int(word[1]) if len(word) == 2 and word[0] == "q" and word[1] in "1234" else 0
        after = place + 1
        if word in _ORDINALS and self._word(place + 1) == "quarter":
            number, after = _ORDINALS[word], place + 2
        after += self._word(after) == "of" and self._is_year(after + 1)
        if not number or not self._is_year(after):
            return None
        return of_unit("quarter", date(int(self._tokens[after].text), 3 * number - 2, 1)), after + 1

    def _word(self, place: int) -> str:
        return self._tokens[place].stem if place < len(self._tokens) and self._tokens[place].kind == "word" else ""

    def _is_year(self, place: int) -> bool:
        if place >= len(self._tokens):
            return False
        token = self._tokens[place]
        return (
            token.kind == "number" and len(token.text) == 4 and token.text.isdigit() and 1900 <= int(token.text) < 2100
        )

    def _month(self, place: int) -> int:
        word = self._word(place)
        if len(word) < 3:
            return 0
        names = [
            n for n, name in enumerate(_MONTHS, 1) if name == word or name[:3] == word or word == "sept" == name[:4]
        ]
        return names[0] if names else 0

    def _day_number(self, place: int) -> int:
        if place >= len(self._tokens) or self._tokens[place].kind != "number":
            return 0
        digits = self._tokens[place].text.rstrip("stndrh")
        return int(digits) if digits.isdigit() and 1 <= int(digits) <= 31 else 0

    def _count(self, place: int) -> int:
        if place < len(self._tokens) and self._tokens[place].text.isdigit():
            return int(self._tokens[place].text)
        return _NUMBERS.get(self._word(place), 0)


#: Words that periods are made of.
PERIOD_STEMS = frozenset(
    [*_MONTHS, *(name[:3] for name in _MONTHS), "sept", *UNITS, *_LAST, *_ORDINALS, *_NUMBERS]
    + "today yesterday this since before after until till through from to between and".split()
)
