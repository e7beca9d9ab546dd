"""OpenTelemetry traces of runs and ingests, posted as OTLP in JSON; needs the extra `telemetry`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lakehouse.core import __version__
from lakehouse.core.errors import NotInstalledError
from lakehouse.events.delivery import HttpSink

_SCOPE = "lakehouse"
_FAILED = 2


class Tracer:
    """Opens spans, which are children of the span that the calling program has open, if it has one."""

    def __init__(self, sink: HttpSink) -> None:
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        except ImportError as exc:
            raise NotInstalledError("opentelemetry-sdk", "telemetry") from exc
        self.sink = sink
        provider = TracerProvider(resource=Resource.create({"service.name": _SCOPE}), shutdown_on_exit=False)
        # Simple: the sink has a queue and a thread already.
        provider.add_span_processor(SimpleSpanProcessor(_exporter(sink)))
        self._tracer = provider.get_tracer(_SCOPE, __version__)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """A span around a block; an error in the block marks it as failed."""
        with self._tracer.start_as_current_span(name, attributes=dict(attributes)):
            yield


def _exporter(sink: HttpSink) -> Any:
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class QueueExporter(SpanExporter):  # type: ignore[misc] # the library is optional, so it is not typed here
        """Hands spans to the sink."""

        def export(self, spans: Sequence[Any]) -> Any:
            sink.send(otlp(spans))
            return SpanExportResult.SUCCESS

    return QueueExporter()


def otlp(spans: Sequence[Any]) -> dict[str, Any]:
    """Spans in OTLP's JSON encoding."""
    resource = _attributes(spans[0].resource.attributes) if spans else []
    scope = {"name": _SCOPE, "version": __version__}
    return {
        "resourceSpans": [
            {"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": [_span(s) for s in spans]}]}
        ]
    }


def _span(span: Any) -> dict[str, Any]:
    described = {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes),
        "status": {},
    }
    if span.parent is not None:
        described["parentSpanId"] = f"{span.parent.span_id:016x}"
    if not span.status.is_ok:
        # Without the error's text, which may hold values of rows: the run's record has it.
        described["status"] = {"code": _FAILED}
    return described


def _attributes(attributes: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": str(value)}} for key, value in (attributes or {}).items()]
