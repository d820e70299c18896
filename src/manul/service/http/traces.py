"""Traces for OpenTelemetry: spans of requests, write transactions and learning turns, if an endpoint is configured."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from manul.errors import MissingDependency, ParameterError
from manul.service.http.route_table import OPERATIONS

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("manul.service")
# The standard variables; other programs on the machine may use them too.
VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# Time to send the last spans when the service stops, and seconds between two log lines about spans that cannot be sent.
STOP_SECONDS, QUIET_SECONDS = 2.0, 60.0
ROUTES = {each.name: each for each in OPERATIONS}
# The longest traceparent and name of a loop to record.
LONGEST = 80


class Traces:
    """Collects spans and sends them in the background; if they cannot be sent, they are dropped."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider, self._tracer = provider, provider.get_tracer("manul.service")
        self._extract = TraceContextTextMapPropagator().extract
        self._server, self._failed = SpanKind.SERVER, Status(StatusCode.ERROR)

    def span(self, name: str, **attributes: str | int) -> AbstractContextManager[Any]:
        """A span of work in a thread of the engine."""
        named = {f"manul.{key}": value for key, value in attributes.items()}
        span: AbstractContextManager[Any] = self._tracer.start_span(name, attributes=named)
        return span

    def add_request(
        self,
        route: str,
        status: int,
        seconds: float,
        request_id: bytes,
        *,
        loop: str | None,
        traceparent: bytes | None,
    ) -> None:
        """Add the span of a request that has been answered."""
        end, operation = time.time_ns(), ROUTES.get(route)
        attributes: dict[str, str | int] = {
            "http.response.status_code": status,
            "manul.request_id": request_id.decode(),
        }
        if operation is not None:
            attributes |= {"http.request.method": operation.method, "http.route": operation.path}
        if loop is not None:
            attributes["manul.loop"] = loop[:LONGEST]
        name = route if operation is None else f"{operation.method} {operation.path}"
        span = self._tracer.start_span(
            name,
            self._parent(traceparent),
            self._server,
            attributes,
            start_time=end - int(1e9 * seconds),
        )
        if status >= 500:
            span.set_status(self._failed)
        span.end(end)

    def _parent(self, traceparent: bytes | None) -> Context | None:
        """The caller's span; a header that is too long or malformed is ignored."""
        if traceparent is None or len(traceparent) > LONGEST:
            return None
        parent: Context = self._extract({"traceparent": traceparent.decode("latin-1")})
        return parent

    def stop(self) -> None:
        """Send the last spans, but do not wait long for a collector that is down."""
        stopping = threading.Thread(target=self._provider.shutdown, name="manul-traces-stop", daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)


class SeldomLog(logging.Handler):
    """Logs the warnings of the exporter, but seldom: a collector that is down would cause several for every batch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._quiet_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            log.warning("traces cannot be sent and are dropped", extra={"why": record.getMessage()[:300]})


@contextmanager
def open_traces(endpoint: str | None) -> Iterator[Traces | None]:
    """Traces for an endpoint, or for that of the environment; None if there is none."""
    traces = _start(endpoint)
    if traces is None:
        yield None
        return
    exporter, seldom = logging.getLogger("opentelemetry"), SeldomLog()
    exporter.addHandler(seldom)
    exporter.propagate = False
    try:
        yield traces
    finally:
        traces.stop()
        exporter.removeHandler(seldom)
        exporter.propagate = True


def _start(endpoint: str | None) -> Traces | None:
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise ParameterError(
            f"otel_endpoint must be a URL such as http://127.0.0.1:4318, got {endpoint!r}", "otel_endpoint"
        )
    if endpoint is None and not any(os.environ.get(name) for name in VARIABLES):
        return None
    try:
        traces = _connect(endpoint)
    except ImportError as error:
        missing = f"traces need {error.name}. Install it: pip install 'manul[otel]'."
        if endpoint is not None:
            raise MissingDependency(missing) from None
        log.warning("an OpenTelemetry endpoint is set, but no traces are sent", extra={"why": missing})
        return None
    log.info("sending traces")
    return traces


def _connect(endpoint: str | None) -> Traces:
    """Start to send spans. The exporter reads all other settings from the standard environment variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "manul"}))
    exporter = OTLPSpanExporter() if endpoint is None else OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traces(provider)
