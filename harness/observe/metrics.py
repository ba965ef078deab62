"""Publishes metrics for Prometheus: a text file after each tick, and an endpoint of ``run``."""

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError
from harness.inspect.attention import began
from harness.inspect.tick_summary import is_noteworthy, runs_of
from harness.observe.totals import Histogram, Totals, load_totals, save_totals
from harness.platform.masking import masked
from harness.platform.text import escaped, first_line
from harness.sense.backoff import load_back_off
from harness.store.rows import Ledger, Row, Store, integer

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from harness.context import Context
    from harness.tick.report import TickReport

#: What pip installs for it.
EXTRA = "metrics"
#: The newest event of a start is searched for in so many ticks before the decision at most.
_TICKS_BEFORE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What holds after the last tick."""

    held_jobs: int = 0
    open_runs: int = 0
    failing_upstreams: int = 0
    last_tick_at: datetime | None = None


class MetricsOfTicks:
    """Counts after each tick, and publishes.

    Args:
        context: The services.
    """

    def __init__(self, context: "Context") -> None:
        _require_client()
        from prometheus_client import CollectorRegistry

        self._context, self._settings = context, context.settings.metrics
        self._totals, self._present = load_totals(context.home.metrics), Present()
        self._registry = CollectorRegistry()
        # The collector reads what is current whenever it is called, from the endpoint's thread.
        self._registry.register(_Collector(lambda: (self._totals, self._present)))
        self._close = _nothing
        self._is_served = False

    def after(self, report: "TickReport") -> None:
        """Count a tick that came to its end, and publish."""
        lags = lags_of(report, self._context.store)
        totals = self._totals.after(report).with_lags(lags, self._settings.upstreams)
        failing = load_back_off(self._context.home.back_off).failing
        self._present = Present(
            held_jobs=sum(run.holds_job for run in report.followed),
            open_runs=sum(run.is_open for run in report.followed),
            failing_upstreams=len(failing) + len(report.failing_triggers),
            last_tick_at=report.tick.at,
        )
        self._publish(totals, is_kept=self._context.files is None or is_noteworthy(report))

    def failed(self, error: Exception) -> None:
        """Count a tick that failed, and publish."""
        failed_ticks = self._totals.failed_ticks + 1
        self._publish(replace(self._totals, failed_ticks=failed_ticks), is_kept=True)

    def wait(self) -> None:
        """Close the endpoint."""
        self._close()
        self._close, self._is_served = _nothing, False

    def _publish(self, totals: Totals, *, is_kept: bool) -> None:
        self._totals = totals
        if is_kept:
            # In a workspace each change is a statement, and idle ticks make none.
            save_totals(self._context.home.metrics, totals)
        if self._settings.textfile is not None:
            self._write(Path(self._context.settings.project, self._settings.textfile))
        if self._context.is_resident and not self._is_served:
            self._serve()

    def _write(self, path: Path) -> None:
        from prometheus_client import write_to_textfile

        path.parent.mkdir(parents=True, exist_ok=True)
        write_to_textfile(str(path), self._registry)

    def _serve(self) -> None:
        from prometheus_client import start_http_server

        port, address = self._settings.port, self._settings.address
        if port is None:
            return
        try:
            server, _ = start_http_server(port, addr=address, registry=self._registry)
        except OSError as error:
            reason = first_line(error, "no reason")
            raise ConfigurationError(
                f"metrics.port: {address}:{port} cannot be opened ({reason})"
            ) from error

        def close() -> None:
            server.shutdown()
            server.server_close()

        self._close, self._is_served = close, True


def _nothing() -> None:
    """Do nothing: there is no endpoint."""


def _require_client() -> None:
    try:
        import prometheus_client  # noqa: F401 (only whether it is there)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package prometheus-client is missing; pip install 'heartbeat[{EXTRA}]'"
        ) from error


def lags_of(report: "TickReport", store: Store) -> list[tuple[str, float]]:
    """Return for each start and upstream how long after its newest commit the run began.

    Args:
        report: The tick.
        store: Has the events that an earlier tick recorded.
    """
    started = [run for run in runs_of(report).started if run.run_id is not None]
    taken = {(each.upstream_id, each.through_tick) for run in started for each in run.consumed}
    if not taken:
        return []
    rows: list[Row] = [
        {
            "upstream_id": each.upstream_id,
            "tick_number": each.tick_number,
            "snapshot_ts": each.snapshot_ts,
        }
        for each in report.findings.events
    ]
    earlier = taken - {(each.upstream_id, each.tick_number) for each in report.findings.events}
    commits = _newest([*rows, *(_recorded(earlier, store) if earlier else ())])
    return [
        (each.upstream_id, max(0.0, began(run).timestamp() - commits[place] / 1000))
        for run in started
        for each in run.consumed
        if (place := (each.upstream_id, each.through_tick)) in commits
    ]


def _recorded(taken: Set[tuple[str, int]], store: Store) -> list[dict[str, object]]:
    """Read the newest events that were consumed: those of the ticks up to which they were."""
    return store.read(
        Ledger.EVENTS,
        where=[
            ("tick_number", "in", sorted({tick for _, tick in taken})),
            ("upstream_id", "in", sorted({upstream_id for upstream_id, _ in taken})),
        ],
        columns=["upstream_id", "tick_number", "snapshot_ts"],
    )


def _newest(rows: Iterable[Row]) -> dict[tuple[str, int], int]:
    """Return the newest commit of each upstream and tick, in milliseconds since the epoch."""
    newest: dict[tuple[str, int], int] = {}
    for row in rows:
        place = (str(row["upstream_id"]), integer(row["tick_number"]))
        if row["snapshot_ts"] is not None:
            newest[place] = max(integer(row["snapshot_ts"]), newest.get(place, 0))
    return newest


class _Collector:
    """Renders what is current.

    Args:
        current: Returns it.
    """

    def __init__(self, current: Callable[[], tuple[Totals, Present]]) -> None:
        self._current = current

    def collect(self) -> Iterator["Metric"]:
        """Yield every metric."""
        totals, present = self._current()
        yield from _counters(totals)
        yield from _histograms(totals)
        yield from _gauges(present)
        yield _lag_by_upstream(totals)


def _counters(totals: Totals) -> Iterator["Metric"]:
    from prometheus_client.metrics_core import CounterMetricFamily

    for name, value, words in (
        ("ticks", totals.ticks, "Ticks that came to their end."),
        ("failed_ticks", totals.failed_ticks, "Ticks that failed."),
        ("events", totals.events, "Data-change events recorded."),
        ("starts", totals.starts, "Jobs started."),
    ):
        yield CounterMetricFamily(f"heartbeat_{name}", words, value=value)
    ends = CounterMetricFamily("heartbeat_run_ends", "Runs that ended.", labels=["status"])
    for status, value in sorted(totals.ends.items()):
        ends.add_metric([status], value)
    yield ends


def _histograms(totals: Totals) -> Iterator["Metric"]:
    from prometheus_client.metrics_core import HistogramMetricFamily

    for name, histogram, words in (
        ("decision_seconds", totals.decision, "Time that the decision took."),
        ("tick_seconds", totals.tick, "Time that the steps of a tick took."),
        (
            "commit_to_start_seconds",
            totals.lag,
            "From the newest commit of an upstream to a start.",
        ),
    ):
        yield HistogramMetricFamily(
            f"heartbeat_{name}", words, buckets=_buckets(histogram), sum_value=histogram.sum
        )


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(str, histogram.bounds), "+Inf"]
    return [(bound, count) for bound, count in zip(bounds, histogram.cumulative, strict=True)]


def _gauges(present: Present) -> Iterator["Metric"]:
    from prometheus_client.metrics_core import GaugeMetricFamily

    at = present.last_tick_at
    if at is None:
        # No tick of this process has shown yet what holds.
        return
    for name, value, words in (
        ("held_jobs", present.held_jobs, "Jobs that a run holds."),
        ("open_runs", present.open_runs, "Runs that go on."),
        ("failing_upstreams", present.failing_upstreams, "Upstreams that cannot be read."),
        ("last_tick_timestamp_seconds", at.timestamp(), "When the last tick was."),
    ):
        yield GaugeMetricFamily(f"heartbeat_{name}", words, value=value)


def _lag_by_upstream(totals: Totals) -> "Metric":
    from prometheus_client.metrics_core import SummaryMetricFamily

    family = SummaryMetricFamily(
        "heartbeat_upstream_commit_to_start_seconds",
        "From the newest commit of an upstream to a start, by upstream.",
        labels=["upstream"],
    )
    for upstream_id, lag in sorted(totals.lags.items()):
        name = escaped(masked(upstream_id))
        family.add_metric([name], count_value=lag.count, sum_value=lag.sum)
    return family
