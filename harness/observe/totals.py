"""Counts what ticks did, across processes: the values of the metrics, without their format."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.inspect.tick_summary import runs_of
from harness.platform.json_file import load, save
from harness.tick.report import TickReport

VERSION = 1

SECONDS_OF_STEPS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SECONDS_OF_LAG = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21_600.0, 86_400.0)
#: Stands for all upstreams that have no series of their own.
OTHERS = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values lie up to each bound, and their sum."""

    bounds: tuple[float, ...]
    #: One more than there are bounds: the last one has what lies above all of them.
    counts: tuple[int, ...]
    sum: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        """Return a histogram without a value."""
        return cls(bounds=bounds, counts=(0,) * (len(bounds) + 1))

    def after(self, value: float) -> "Histogram":
        """Return a copy with one more value."""
        place = sum(value > bound for bound in self.bounds)
        counts = tuple(count + (at == place) for at, count in enumerate(self.counts))
        return replace(self, counts=counts, sum=self.sum + value)

    @property
    def cumulative(self) -> list[int]:
        """How many values lie up to each bound, and in all."""
        return [sum(self.counts[: place + 1]) for place in range(len(self.counts))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How long after their commits the events of one upstream started jobs."""

    count: int = 0
    sum: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Everything that was counted since the metrics were configured."""

    ticks: int = 0
    failed_ticks: int = 0
    events: int = 0
    starts: int = 0
    #: Ended runs, by status.
    ends: Mapping[str, int] = field(default_factory=dict)
    decision: Histogram = field(default_factory=lambda: Histogram.empty(SECONDS_OF_STEPS))
    tick: Histogram = field(default_factory=lambda: Histogram.empty(SECONDS_OF_STEPS))
    lag: Histogram = field(default_factory=lambda: Histogram.empty(SECONDS_OF_LAG))
    #: By upstream; there are never more than were configured.
    lags: Mapping[str, Lag] = field(default_factory=dict)

    def after(self, report: TickReport) -> "Totals":
        """Return a copy after a tick that came to its end."""
        runs = runs_of(report)
        ends = dict(self.ends)
        for run in runs.ended:
            ends[run.run_status.value] = ends.get(run.run_status.value, 0) + 1
        decided = report.seconds.get("decide")
        return replace(
            self,
            ticks=self.ticks + 1,
            events=self.events + report.event_count,
            starts=self.starts + sum(run.run_id is not None for run in runs.started),
            ends=ends,
            tick=self.tick.after(sum(report.seconds.values())),
            decision=self.decision if decided is None else self.decision.after(decided),
        )

    def with_lags(self, lags: Iterable[tuple[str, float]], most: int) -> "Totals":
        """Return a copy with the lags of starts.

        Args:
            lags: The upstream and the seconds of each.
            most: An upstream keeps the series that it got while there were fewer than so many.
        """
        of, histogram = dict(self.lags), self.lag
        for upstream_id, seconds in lags:
            own = sum(name != OTHERS for name in of)
            name = upstream_id if upstream_id in of or own < most else OTHERS
            before = of.get(name, Lag())
            of[name] = Lag(count=before.count + 1, sum=before.sum + seconds)
            histogram = histogram.after(seconds)
        return replace(self, lags=of, lag=histogram)


def load_totals(path: Path) -> Totals:
    """Read the file; nothing was counted when it is missing, broken or of other bounds."""
    return load(path, _totals_in) or Totals()


def save_totals(path: Path, totals: Totals) -> None:
    """Write the file, whole or not at all.

    Raises:
        StateError: It cannot be written.
    """
    save(path, asdict(totals) | {"version": VERSION})


def _totals_in(content: Any) -> Totals | None:
    if content.pop("version") != VERSION:
        return None
    known = Totals()
    found = {
        name: Histogram(
            bounds=tuple(content[name]["bounds"]),
            counts=tuple(map(int, content[name]["counts"])),
            sum=float(content[name]["sum"]),
        )
        for name in ("decision", "tick", "lag")
    }
    if any(each.bounds != getattr(known, name).bounds for name, each in found.items()):
        return None
    lags = {str(name): Lag(**each) for name, each in content["lags"].items()}
    return Totals(**content | found | {"lags": lags})
