"""Counts and latencies of requests for Prometheus, kept in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

# Upper bounds of the histogram's buckets.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"


class RequestMetrics:
    """Responses by route and status, and a histogram of latencies by route."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._counts: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def add(self, route: str, status: int, seconds: float) -> None:
        self._answers[route, status] += 1
        if route not in self._counts:
            self._counts[route] = [0] * (len(SECONDS) + 1)
        self._counts[route][bisect_left(SECONDS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]

    def lines(self) -> Iterator[str]:
        """The metrics in the text format of Prometheus."""
        yield from ("# HELP manul_requests_total Responses by route and status.", "# TYPE manul_requests_total counter")
        for (route, status), count in sorted(self._answers.items()):
            yield f'manul_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# HELP manul_request_seconds Time from the headers of a request to the end of its response."
        yield "# TYPE manul_request_seconds histogram"
        for route in sorted(self._counts):
            yield from self._histogram(route)

    def _histogram(self, route: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*SECONDS, "+Inf"), self._counts[route], strict=True):
            total += count
            yield f'manul_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'manul_request_seconds_sum{{route="{route}"}} {self._sums[route]!r}'
        yield f'manul_request_seconds_count{{route="{route}"}} {total}'
