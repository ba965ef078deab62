"""The rules of a decision in Python, for a keeper of single events: what the SQL has to agree with.

The models read ranges of ticks and newest rows. The keeper uses neither: it holds the set of events
that a job has not consumed, changes it step by step, and applies the rules to it. Random pasts are
put to both; the simulation lets the keeper decide where there is no SQL.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.store.rows import HOLDING, OPEN

#: The first and the last tick of events: after the one, up to the other.
Range = tuple[int, int]


class Row(Protocol):
    """One control row of a job."""

    @property
    def name(self) -> str: ...

    @property
    def flag(self) -> str: ...

    @property
    def state(self) -> str: ...


@dataclass(slots=True)
class Keeper:
    """The state of one job: which events wait, and what its newest run came to."""

    #: The ticks with events of each upstream.
    all_events: dict[str, set[int]]
    waiting: dict[str, set[int]] = field(default_factory=dict)
    newest_status: str | None = None
    #: What the newest run consumed.
    newest_took: dict[str, set[int]] = field(default_factory=dict)
    #: The upstreams of which some run has consumed something.
    ever_taken: set[str] = field(default_factory=set)

    def arrive(self, after: int, through: int) -> None:
        """Let the events of some ticks wait."""
        for name, ticks in self.all_events.items():
            arrived = {tick for tick in ticks if after < tick <= through}
            self.waiting[name] = self.waiting.get(name, set()) | arrived

    def take(self, events: Mapping[str, set[int]], status: str) -> None:
        """Let a run begin that consumes these events."""
        self.newest_took = {name: set(ticks) for name, ticks in events.items()}
        for name, ticks in events.items():
            self.waiting[name] = self.waiting.get(name, set()) - ticks
        self.ever_taken |= set(events)
        self.newest_status = status

    def become(self, status: str) -> None:
        """Let the newest run take a further step; a retry requeues what it consumed."""
        self.newest_status = status
        if status == "RETRY_REQUESTED":
            for name, ticks in self.newest_took.items():
                self.waiting[name] = self.waiting.get(name, set()) | ticks

    @property
    def has_open_run(self) -> bool:
        return self.newest_status in OPEN

    @property
    def is_held(self) -> bool:
        return self.newest_status in HOLDING

    @property
    def is_retry(self) -> bool:
        return self.newest_status == "RETRY_REQUESTED"

    def news(self, rows: Iterable[Row]) -> dict[str, set[int]]:
        """Return what a start would consume now, of the rows that are not paused."""
        unpaused = (row for row in rows if row.state == "UNPAUSED")
        return {row.name: self.waiting[row.name] for row in unpaused if self.waiting.get(row.name)}

    def blockers(self, rows: Sequence[Row]) -> list[str]:
        """Return every reason why the job may not run, by name."""
        unpaused = [row for row in rows if row.state == "UNPAUSED"]
        required = [row for row in rows if row.flag == "TRUE"]
        new = self.news(rows)
        blockers: list[str] = []
        if self.has_open_run:
            blockers.append("run_in_progress")
        elif self.is_held:
            blockers.append("last_run_failed")
        if not unpaused:
            blockers.append("job_paused")
        else:
            blockers += ["required_row_paused" for row in required if row not in unpaused]
            blockers += [
                "waiting_for_required_event"
                for row in required
                if row in unpaused and row.name not in new
            ]
            blockers += ["nothing_new"] if not required and not new else []
        return sorted(blockers)

    def range_of(self, name: str, ticks: set[int]) -> Range:
        """Return the range of ticks in which these events of an upstream are the only ones."""
        before = {tick for tick in self.all_events[name] if tick < min(ticks)}
        return max(before, default=-1), max(ticks)

    def status_of(self, name: str) -> str | None:
        """Return the public status of a row."""
        if name in self.newest_took and self.has_open_run:
            return "IN_PROGRESS"
        if name in self.newest_took and self.is_held:
            return "FAILED"
        if self.waiting.get(name):
            return "NEW_EVENT_AVAILABLE"
        return "COMPLETED" if name in self.ever_taken else None
