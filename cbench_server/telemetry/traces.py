"""Traces for OpenTelemetry: a run, its batches and its calls as spans, sent by OTLP.

All of it is said by OpenTelemetry's own environment variables. Nothing of its library is imported
unless they ask for it.
"""

import hashlib
import importlib
import logging
import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan

log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS = {
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
}
_EXPORTER = "OTEL_TRACES_EXPORTER"
_SERVICE = "cbench-server"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Tell whether the environment asks for traces to be sent."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if chosen := _chosen_exporters(environment):
        return "otlp" in chosen
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


def _chosen_exporters(environment: Mapping[str, str]) -> list[str]:
    chosen = [name.strip() for name in environment.get(_EXPORTER, "").split(",")]
    return [name for name in chosen if name]


def tracer_from_environment(version: str) -> "Traces | None":
    """Return what keeps traces where the environment asks for it, else None.

    A daemon goes on without traces that it cannot send, and says so: such variables are often set
    for all programs of a machine.
    """
    if not is_wanted(os.environ):
        others = [name for name in _chosen_exporters(os.environ) if name not in ("otlp", "none")]
        if others and os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() != "true":
            said = "no traces are sent: %s is %r, and only otlp is known here"
            log.warning(said, _EXPORTER, ",".join(others))
        return None
    variable = next((name for name in _PROTOCOLS if os.environ.get(name)), _PROTOCOLS[-1])
    protocol = os.environ.get(variable, "grpc").strip() or "grpc"
    module = _EXPORTERS.get(protocol)
    if module is None:
        known = " and ".join(_EXPORTERS)
        log.warning("no traces are sent: %s is %r, which is none of %s", variable, protocol, known)
        return None
    try:
        return Traces(importlib.import_module(module).OTLPSpanExporter(), version)
    except ImportError as error:
        hint = 'install the extra: pip install "cbench-server[otel]"'
        log.warning("no traces are sent, since %s is not installed; %s", error.name, hint)
    except (ValueError, TypeError) as error:
        log.warning("no traces are sent: %s", error)
    return None


class Traces:
    """Keeps traces and sends them by an exporter, in a thread of its own.

    The trace of a run has an id made of the run's, so that all of a run is in one trace, however
    often it is resumed.
    """

    def __init__(self, exporter: Any, version: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._ids = _new_ids()
        # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins over this.
        named = Resource({"service.name": _SERVICE, "service.version": version})
        said = {
            name: value
            for name, value in Resource.create().attributes.items()
            if not (name == "service.name" and str(value).startswith("unknown_service"))
        }
        resource = named.merge(Resource(said))
        self._provider = TracerProvider(
            resource=resource,
            id_generator=self._ids,
            shutdown_on_exit=False,
            sampler=_installed_sampler(),
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SERVICE, version)

    def run(self, run_id: str, attributes: dict[str, str | int]) -> "TraceSpan":
        """Begin the span of a run."""
        from opentelemetry.context import Context

        self._ids.next_trace = trace_id_of(run_id)
        about = {"cbench.run_id": run_id, **attributes}
        return TraceSpan(
            self._tracer, self._tracer.start_span("run", context=Context(), attributes=about)
        )

    def close(self) -> None:
        """Send what is not yet sent; waits for that, so not for the event loop."""
        self._provider.shutdown()


class TraceSpan:
    """A span that is under way."""

    __slots__ = ("_span", "_tracer", "headers", "traceparent")

    def __init__(self, tracer: Any, span: "OtelSpan") -> None:
        self._tracer = tracer
        self._span = span
        context = span.get_span_context()
        self.traceparent = (
            f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
        )
        self.headers = {"traceparent": self.traceparent}
        # Samplers keep there what those who are called need to decide likewise.
        if state := context.trace_state.to_header():
            self.headers["tracestate"] = state

    def child(
        self, name: str, attributes: dict[str, str | int], *, calls: bool = False
    ) -> "TraceSpan":
        """Begin a part of it."""
        from opentelemetry.trace import SpanKind, set_span_in_context

        span = self._tracer.start_span(
            name,
            context=set_span_in_context(self._span),
            kind=SpanKind.CLIENT if calls else SpanKind.INTERNAL,
            attributes=attributes,
        )
        return TraceSpan(self._tracer, span)

    def note(self, **attributes: str | int | float) -> None:
        """Add what became known of it."""
        self._span.set_attributes(attributes)

    def end(self, failure: str = "") -> None:
        """End it, as failed if a reason is given."""
        if failure:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", failure)
            self._span.set_status(Status(StatusCode.ERROR, failure))
        self._span.end()


def _installed_sampler() -> Any:
    """Return the sampler of another package that OTEL_TRACES_SAMPLER names, else None.

    OpenTelemetry's own are known to its library by name. Others announce themselves under this
    group, and are made of the variable's argument.
    """
    name = os.environ.get("OTEL_TRACES_SAMPLER", "").strip()
    for point in entry_points(group="opentelemetry_traces_sampler", name=name) if name else ():
        return point.load()(os.environ.get("OTEL_TRACES_SAMPLER_ARG", ""))
    return None


def trace_id_of(run_id: str) -> int:
    """Return the id of a run's trace."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16], "big")


def _new_ids() -> Any:
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class RunIds(RandomIdGenerator):
        """Random ids, but for a trace that is announced. Belongs to one event loop."""

        next_trace = 0

        def generate_trace_id(self) -> int:
            chosen, self.next_trace = self.next_trace, 0
            return chosen or super().generate_trace_id()

        def is_trace_id_random(self) -> bool:
            return False

    return RunIds()
