"""Events of a lake: OpenLineage, a log in JSON, webhooks and traces. None of them can fail a run or slow it down."""

from __future__ import annotations

from lakehouse.core.dataclass import dataclass
from lakehouse.core.setting import setting


@dataclass(frozen=True)
class EventSettings:
    """`[events]` in lake.toml, `LAKE_EVENTS__*` in the environment."""

    log: bool = setting(True, "Write runs and ingests as JSON lines to logs/lake.jsonl in the lake's folder.")
    log_megabytes: float = setting(
        10.0, "Size at which an event file is rotated; the last five are kept, as lake.jsonl.1 and so on."
    )
    file: str = setting("", "File for OpenLineage events, one per line (default: none).")
    url: str = setting("", "Address that OpenLineage events are posted to (default: none).", hidden=True)
    api_key: str = setting("", "Bearer token for events.url (default: none).", secret=True)
    namespace: str = setting("lakehouse", "Namespace of the jobs in OpenLineage events.")
    webhook: str = setting(
        "", "Address that gets a JSON message for each failed run and stale table (default: none).", secret=True
    )
    timeout_s: float = setting(2.0, "Seconds after which a receiver of events is given up.")
    traces: str = setting(
        "",
        "OTLP/HTTP address for OpenTelemetry traces, e.g. http://127.0.0.1:4318/v1/traces (default: none).",
        hidden=True,
    )
