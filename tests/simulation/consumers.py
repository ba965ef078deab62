"""Pull consumers: jobs whose runs fetch events by themselves and report them processed."""

import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.controls.optional_seeds import SCHEDULED_JOBS as FILE
from harness.errors import ConfigurationError, ProbeFailedError
from harness.store.inbox import FolderInbox
from harness.store.queries import SCHEDULED_JOBS, Sensor, find_sensor
from harness.store.rows import Ledger, Store
from harness.toolkit.consume import Caller, Place, acquire, processed

__all__ = ["SCHEDULED_JOBS", "Acquire", "Consumers", "Pull", "read", "write"]

Acquire = Callable[[Place, Sensor, Caller], list[dict[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """What a consumer got, or reported to be processed."""

    job_id: int
    #: The sensor id of the upstream.
    name: str
    is_processed: bool
    event_ids: frozenset[str]


def write(project: Path, jobs: Sequence[int]) -> None:
    """Save the CSV of the jobs that nobody else starts."""
    with (project / FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("job_id", "note"), *((job_id, "") for job_id in jobs)])


def read(project: Path) -> list[dict[str, object]]:
    """Read the lines of the CSV, as dbt does when it feeds them."""
    path = project / FILE
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [{**row, "job_id": int(row["job_id"])} for row in csv.DictReader(file)]


class Consumers:
    """The runs of pull consumers.

    Args:
        store: The ledgers.
        inbox: Where they leave their messages.
        wanted: Job and sensor id of each line of theirs.
        acquire_by: Passes events to a run.
    """

    def __init__(
        self,
        store: Store,
        inbox: Path,
        wanted: Sequence[tuple[int, str]],
        acquire_by: Acquire = acquire,
    ) -> None:
        self._store = store
        self._inbox = inbox
        self._wanted = wanted
        self._acquire = acquire_by
        #: What each run got, by line and run; a run without an id is that of its job.
        self._got: dict[tuple[int, str, int | None], set[str]] = {}
        self.pulls: list[Pull] = []

    def sense(self, chance: random.Random, at: datetime) -> str:
        """Let a run fetch what its job has not processed."""
        job_id, name = chance.choice(self._wanted)
        return self._fetch(job_id, name, Caller(at=at, run_id=chance.choice((None, None, 11, 12))))

    def report(self, chance: random.Random, at: datetime) -> str:
        """Let a run report that it has processed what it got, now and then once more."""
        if not self._got:
            return ""
        key = chance.choice(sorted(self._got, key=str))
        return self._report(*key, at)

    def drain(self, instant: Callable[[], datetime]) -> bool:
        """Let every job fetch and process what there is; return whether there was anything.

        Args:
            instant: Returns an instant that no message has yet.
        """
        before = len(self.pulls)
        for job_id, name in self._wanted:
            self._fetch(job_id, name, Caller(at=instant()))
            self._report(job_id, name, None, instant())
        return any(each.event_ids for each in self.pulls[before:])

    def _fetch(self, job_id: int, name: str, caller: Caller) -> str:
        sensor = self._sensor(job_id, name)
        if sensor is None or sensor.is_paused:
            return ""
        try:
            events = self._acquire(self._place(), sensor, caller)
        except (ConfigurationError, ProbeFailedError) as error:
            return f"{name} of {job_id}: {error}"
        ids = frozenset(str(each["event_id"]) for each in events)
        key = job_id, name, caller.run_id
        self._got[key] = self._got.get(key, set()) | ids
        self.pulls.append(Pull(job_id=job_id, name=name, is_processed=False, event_ids=ids))
        return f"{name} of {job_id} in run {caller.run_id}: {len(ids)} events"

    def _report(self, job_id: int, name: str, run_id: int | None, at: datetime) -> str:
        sensor = self._sensor(job_id, name)
        if sensor is None:
            return ""
        try:
            has_any = processed(self._place(), sensor, Caller(at=at, run_id=run_id))
        except ConfigurationError as error:
            return f"{name} of {job_id}: {error}"
        if not has_any:
            return f"{name} of {job_id} in run {run_id}: nothing"
        # Without an id it counts for every run of the job.
        runs = [key for key in self._got if key[:2] == (job_id, name)]
        ids = {each for key in runs if run_id in (None, key[2]) for each in self._got[key]}
        pull = Pull(job_id=job_id, name=name, is_processed=True, event_ids=frozenset(ids))
        self.pulls.append(pull)
        return f"{name} of {job_id} in run {run_id}: {len(ids)} events"

    def _sensor(self, job_id: int, name: str) -> Sensor | None:
        try:
            return find_sensor(self._store, name, str(job_id))
        except ConfigurationError:
            return None

    def _place(self) -> Place:
        ticks = self._store.read(Ledger.TICKS)
        newest = max(ticks, key=lambda row: int(str(row["tick_number"])), default={})
        compacted = int(str(newest.get("folded_through", -1)))
        return Place(store=self._store, inbox=FolderInbox(self._inbox), folded_through=compacted)
