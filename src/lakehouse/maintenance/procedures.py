"""`CALL … rewrite_data_files`, `rewrite_manifests` and `expire_snapshots` in SQL do what `lake maintain` does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import QueryRejectedError, StatementRefusedError
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.maintenance.policy import Policy

_STEPS = {"rewrite_data_files": "compact", "rewrite_manifests": "rewrite_manifests", "expire_snapshots": "expire"}
#: The supported arguments, in the order of Spark's positional arguments.
_ARGUMENTS = {
    "rewrite_data_files": ("table", "strategy", "sort_order"),
    "rewrite_manifests": ("table",),
    "expire_snapshots": ("table", "older_than", "retain_last"),
}
_CALL = re.compile(
    rf"\s*call\s+(?:`?{CATALOG}`?\s*\.\s*)?`?system`?\s*\.\s*`?({'|'.join(_STEPS)})`?\s*\(([^()]*)\)\s*;?\s*",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(r"(?:(\w+)\s*=>\s*)?(?:timestamp\s*)?(?:'([^']*)'|(\d+))", re.IGNORECASE)


@dataclass(frozen=True)
class MaintenanceCall:
    """A procedure and its arguments."""

    procedure: str
    arguments: dict[str, str]

    def request(self, policy_of: Callable[[TableName], Policy], now: datetime) -> MaintainRequest:
        """Return the call as a request; an error if it would expire more than the policy of the table allows."""
        table = TableName.parse(self.arguments["table"])
        request = MaintainRequest(
            (table,), only=(_STEPS[self.procedure],), sort=self.arguments.get("sort_order", ""), forced=True
        )
        if self.procedure != "expire_snapshots":
            return request
        policy = policy_of(table)
        older_than = self.arguments.get("older_than")
        keep_days = policy.keep_days if older_than is None else (now - _moment(older_than)).total_seconds() / 86_400
        retain_last = int(self.arguments.get("retain_last", policy.keep_snapshots))
        if keep_days < policy.keep_days or retain_last < policy.keep_snapshots:
            raise StatementRefusedError(
                f"The policy of {table} keeps snapshots for {policy.keep_days:g} days, and {policy.keep_snapshots} of them.",
                "Change maintenance.keep_days and keep_snapshots in lake.toml, or expire fewer.",
            )
        return MaintainRequest(request.tables, only=request.only, keep_days=keep_days, keep_snapshots=retain_last)


def parse_call(sql: str) -> MaintenanceCall | None:
    """Return the procedure that a statement calls; None if it is another statement, or has arguments for Spark alone."""
    text = _without_comments(sql)
    call = _CALL.fullmatch(text)
    if call is None:
        return None
    procedure = call[1].lower()
    known, arguments = _ARGUMENTS[procedure], {}
    for place, part in enumerate(filter(None, (argument.strip() for argument in call[2].split(",")))):
        value = _ARGUMENT.fullmatch(part)
        if value is None:
            return None
        name = (value[1] or (known[place] if place < len(known) else "")).lower()
        if name not in known:
            return None
        arguments[name] = value[2] if value[2] is not None else value[3]
    if "table" not in arguments or arguments.get("strategy", "sort") not in ("sort", "binpack"):
        return None
    return MaintenanceCall(procedure, arguments)


def _without_comments(sql: str) -> str:
    """Return a statement without the comments around it; one with comments inside is left for the guard."""
    return re.sub(r"^(?:\s*(?:--[^\n]*\n|/\*(?!\+)[^*]*\*/))*", "", sql)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise QueryRejectedError(
            f"older_than = {text!r} is not a time.", "Write it as TIMESTAMP '2026-11-01 00:00:00'."
        ) from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
