"""Shows listings of jobs, upstreams and runs: one line per row, and how many there are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console

from harness.cli.views.terminal import Cell, Column, print_sentence, print_table
from harness.cli.views.words import outcome_of, short_paths, short_reason, short_run_id
from harness.inspect.attention import reason_beside, reason_of_waiting
from harness.inspect.listings import JobState, ListedJob, ListedUpstream
from harness.inspect.tick_summary import name_of
from harness.platform.format import age, count
from harness.platform.text import first_line
from harness.store.rows import Run

_STATES = {
    JobState.HELD: "bold red",
    JobState.ATTENTION: "yellow",
    JobState.RUNNING: "green",
    JobState.READY: "green",
    JobState.PAUSED: "dim",
    JobState.PULL: "dim",
}
_UPSTREAM_STATES = {"unreadable": "bold red", "paused": "dim", "ok": "green", "new": "dim"}


_JOBS = (
    Column(title="state"),
    Column(title="job", may_shrink=True),
    Column(title="since", is_number=True),
    Column(title="last run"),
    Column(title="why not", may_shrink=True),
)
_UPSTREAMS = (
    Column(title="state"),
    Column(title="upstream", keeps_end=True),
    Column(title="what it is", may_shrink=True),
    Column(title="last event", is_number=True),
    Column(title="jobs", is_number=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table with a heading."""

    noun: str
    states: Counter[str]
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    @property
    def heading(self) -> Sequence[Cell]:
        """How many rows there are, and how many in each state."""
        summary = ", ".join(f"{number:,} {state}" for state, number in self.states.items())
        heading = (count(len(self.rows), self.noun), "bold")
        return (heading, (f"  {summary}", "dim")) if summary else (heading,)

    def show(self, console: Console) -> None:
        """Print it."""
        print_sentence(console, *self.heading)
        if self.rows:
            print_table(console, self.columns, self.rows)


def listing_of_jobs(jobs: Sequence[ListedJob], now: datetime) -> Listing:
    """Return a line per job, and how many there are in each state."""
    rows = [
        (
            (each.state.value, _STATES.get(each.state, "")),
            each.job.name,
            age(each.since, now),
            outcome_of(each.job.run) if each.job.run else ("-", "dim"),
            short_reason(reason_of_waiting(first_line(each.why, ""))),
        )
        for each in jobs
    ]
    states = Counter(each.state.value for each in jobs)
    return Listing(noun="job", states=states, columns=_JOBS, rows=rows)


def listing_of_upstreams(upstreams: Sequence[ListedUpstream], now: datetime) -> Listing:
    """Return a line per upstream, with what its users call it."""
    rows = [
        (
            (each.state, _UPSTREAM_STATES.get(each.state, "")),
            each.sensor_id,
            _what_it_is(each),
            age(each.last_event_at, now),
            f"{len(each.jobs):,}",
        )
        for each in upstreams
    ]
    states = Counter(each.state for each in upstreams)
    return Listing(noun="upstream", states=states, columns=_UPSTREAMS, rows=rows)


def _what_it_is(each: ListedUpstream) -> Cell:
    if each.failure is not None and not each.is_paused:
        return short_paths(reason_beside(each.sensor_id, first_line(each.failure, ""))), "red"
    return "; ".join(each.descriptions) or each.sensor_source


_RUNS = (
    Column(title="run"),
    Column(title="job", may_shrink=True),
    Column(title="outcome"),
    Column(title="started", is_number=True),
    Column(title="took", is_number=True),
    Column(title="events", is_number=True),
    Column(title="", may_shrink=True),
)


def listing_of_runs(runs: Sequence[Run], now: datetime) -> Listing:
    """Return a line per run."""
    rows = [
        (
            short_run_id(run.run_id),
            name_of(run.job_id, run.job_name),
            outcome_of(run),
            age(run.started_at or run.decided_at, now),
            age(run.started_at, run.ended_at or now) if run.started_at else "-",
            f"{run.event_count:,}",
            short_paths(first_line(run.message or "", "")),
        )
        for run in runs
    ]
    states = Counter(outcome_of(run)[0] for run in runs)
    return Listing(noun="run", states=states, columns=_RUNS, rows=rows)
