"""Meters of a daemon: counts and times, as Prometheus reads them.

Labels come from closed sets only. Names of runs, systems and clients would make a new series
each, and tell strangers who they are.
"""

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from cbench_server.events import RowScored, RunAccepted, RunFinished, StateChanged, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.spec import RunState
from cbench_server.telemetry.reasons import FAILURE_REASONS
from cbench_server.telemetry.tallies import Tallies

OTHER = "OTHER"
_ORIGINS = ("system", "transport", "dataset", "evaluator", "reader", "daemon")
_CALLS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class Meters:
    """All meters of one daemon, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"cbench_{name}", text, labels, registry=registry)

        tallies = Tallies()
        tally, histogram = tallies.tally, tallies.spread

        self._runs = counter("runs_finished", "Runs that ended, by their state.", "state")
        self._accepted = counter("runs_accepted", "Runs that were taken on, by kind.", "kind")
        self._waits = tally("runs_waiting", "Times that a run began to wait.")
        self._rows = tally("rows", "Rows that were stored.")
        self._reused = tally("rows_reused", "Rows whose answer is of an earlier run.")
        self._failed = tally("rows_failed", "Rows that failed.")
        self._calls = tally("calls", "Calls of systems, those tried again included.")
        self._failures = counter(
            "row_failures", "Rows that failed, by who failed and why.", "origin", "reason"
        )
        self._usd = tally("spent_usd", "US dollars that rows have cost, as far as known.")
        self._latency = histogram("call_seconds", "Latency of answers, by our clock.", _CALLS)
        self._handler = histogram(
            "handler_seconds", "What handlers took, where an SDK says so.", _CALLS
        )
        self._scoring = histogram("scoring_seconds", "Scoring of a row.", _SHORT)
        self._commits = histogram("store_commit_seconds", "Commits, waits included.", _SHORT)
        self._served = counter(
            "rpcs", "Calls that clients made, by method and status.", "method", "code"
        )
        self.loop_lag = histogram("event_loop_lag_seconds", "How late the loop wakes up.", _SHORT)

        registry.register(tallies)
        for state in (state for state in RunState if state.is_final):
            # There from the start, so that the first of them is seen as an increase.
            self._runs.labels(state.name)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a value that is read when it is asked for."""
        Gauge(f"cbench_{name}", text, registry=self._registry).set_function(read)

    def committed(self, run_id: str, events: Sequence[StoredEvent], seconds: float) -> None:
        """Count what was stored in one commit."""
        self._commits.observe(seconds)
        rows = 0
        for event in events:
            if isinstance(event, RowScored):
                rows += 1
                self._count(event.row)
            elif isinstance(event, RunFinished):
                self._runs.labels(event.run.state.name).inc()
            elif isinstance(event, RunAccepted):
                self._accepted.labels(event.run.spec.kind).inc()
            elif isinstance(event, StateChanged) and event.state is RunState.WAITING:
                self._waits.value += 1
        if rows:
            self._rows.value += rows

    def _count(self, row: EvalRow) -> None:
        if row.reused:
            self._reused.value += 1
            return
        self._calls.value += row.attempts
        if row.failure is not None:
            self._failed.value += 1
            origin, reason = row.failure.origin, row.failure.reason
            self._failures.labels(
                origin if origin in _ORIGINS else OTHER,
                reason if reason in FAILURE_REASONS else OTHER,
            ).inc()
            return
        self._latency.observe(row.latency)
        if row.handler_seconds is not None:
            self._handler.observe(row.handler_seconds)
        self._scoring.observe(row.scoring_time)
        for dollars in row.cost_usd.values() if row.cost_usd else ():
            if dollars > 0:
                self._usd.value += dollars

    def served(self, method: str, code: str, seconds: float) -> None:
        """Count a call of a client; methods are those that are served."""
        self._served.labels(method.rpartition(".")[2], code).inc()

    def text(self) -> bytes:
        """Return all of them in the text format."""
        return bytes(generate_latest(self._registry))
