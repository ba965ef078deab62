"""Harnesses that are wrong in one way each: the checker has to see it, or it proves nothing.

Each is a part put into the wiring in the place of the right one; the product has no such switch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from harness.platform.databricks.api import JobsApi, Refused, RunNowAnswer, RunReport, Unknown
from harness.platform.format import iso
from harness.sense.probe import ProbeResult
from harness.store.inbox import FolderInbox
from harness.store.queries import Sensor
from harness.store.rows import FencingToken, Ledger, LedgerRow, Run, RunStatus
from harness.store.work_lists import Upstream
from harness.toolkit.consume import Caller, Place, acquire, processed
from tests.simulation.fate import Fate
from tests.simulation.machine import Ledgers, SkewedClock, Wiring
from tests.simulation.models import POLICIES, Models, Row, Verdict
from tests.simulation.policies import Policy, policy_of
from tests.simulation.sources import ProbePool, Sources, change
from tests.support.fake_clock import FakeClock
from tests.support.keeper import Keeper
from tests.support.trigger_keeper import Trigger


class _Jobs:
    """Passes everything on."""

    def __init__(self, jobs: JobsApi) -> None:
        self._jobs = jobs

    @property
    def workspace(self) -> str:
        return self._jobs.workspace

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        return self._jobs.run_now(job_id=job_id, token=token, parameters=parameters)

    def declared_parameters(self, job_id: int) -> frozenset[str] | None:
        return self._jobs.declared_parameters(job_id)

    def get_run(self, run_id: int) -> RunReport | None:
        return self._jobs.get_run(run_id)

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        return self._jobs.list_runs(job_id, since=since)

    def cancel_run(self, run_id: int) -> None:
        self._jobs.cancel_run(run_id)


class _WithoutToken(_Jobs):
    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        return self._jobs.run_now(job_id=job_id, token="", parameters=parameters)


class _UnknownIsFailure(_Jobs):
    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        answer = self._jobs.run_now(job_id=job_id, token=token, parameters=parameters)
        if isinstance(answer, Unknown):
            return Refused(error_code="INTERNAL_ERROR", message=answer.message)
        return answer


class _EffectBeforeIntent(Ledgers):
    """Keeps intents in memory until the first answer is recorded."""

    def __init__(self, fate: Fate, world_clock: FakeClock) -> None:
        super().__init__(fate, world_clock)
        self._kept: list[LedgerRow] = []
        self._deaths = 0

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None = None
    ) -> None:
        if self._fate.deaths > self._deaths:
            self._deaths, self._kept = self._fate.deaths, []
        if ledger is Ledger.RUNS and rows and all(map(_is_decision, rows)):
            self._kept += rows
        elif ledger is Ledger.RUNS and rows:
            kept, self._kept = self._kept, []
            super().append(ledger, [*kept, *rows])
        else:
            super().append(ledger, rows)


def _is_decision(row: LedgerRow) -> bool:
    return (
        isinstance(row, Run)
        and row.run_status is RunStatus.INTENDED
        and row.reported_by == "decision"
    )


def _consumed_at_completion(ticks: Mapping[str, set[int]], steps: Sequence[Row]) -> Keeper:
    """Take whatever is there when the run ends, and nothing when it begins."""
    keeper = Keeper(all_events={name: set(each) for name, each in ticks.items()})
    keeper.arrive(-1, 2**62)
    attempt = None
    for row in steps:
        if attempt != (row["intent_id"], row["attempt"]):
            attempt = (row["intent_id"], row["attempt"])
            keeper.take({}, str(row["run_status"]))
        else:
            keeper.become(str(row["run_status"]))
        if str(row["run_status"]).startswith("SUCCEEDED"):
            consumed = row["consumed"]
            assert isinstance(consumed, list)
            for each in consumed:
                waiting = keeper.waiting.get(each["upstream_id"], set())
                later = {tick for tick in waiting if tick > int(str(row["tick_number"]))}
                keeper.waiting[each["upstream_id"]] = later
    return keeper


class _ByWallClock(ProbePool):
    """Finds what was committed since the last probe by our clock."""

    def __init__(self, sources: Sources, clock: SkewedClock) -> None:
        super().__init__(sources, clock.right)
        self._clock = clock

    def probe(self, upstream: Upstream, at: datetime) -> ProbeResult:
        source = self._sources.by_id[upstream.sensor_id]
        if upstream.position is None or source.is_down:
            right = self._sources.probe(upstream, self._clock.now())
            return replace(right, position=right.position and self._position())
        since = datetime.fromisoformat(json.loads(upstream.position)["at"])
        events = [
            change(upstream, number)
            for number, (brings, instant) in enumerate(source.versions)
            if brings and instant > since
        ]
        cursor = self._position() if events else upstream.position
        return ProbeResult(upstream_id=upstream.upstream_id, position=cursor, events=tuple(events))

    def _position(self) -> str:
        return json.dumps({"at": self._clock.now().isoformat()})


_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class _WithoutBackOff(Models):
    """Starts failed runs again as soon as they have failed."""

    def retries(self) -> dict[int, datetime]:
        newest = self.newest_runs()
        return {
            job_id: cast(datetime, newest[job_id]["recorded_at"]) for job_id in super().retries()
        }


class _WithoutEnd(Models):
    """Starts failed runs again for ever, where a policy starts them again at all."""

    def retries(self) -> dict[int, datetime]:
        held = [row for row in self.newest_runs().values() if row["run_status"] == "FAILED"]
        lines = [Policy.from_cells(row) for row in self._store.read(POLICIES)]
        allowed = {cast(int, row["job_id"]): policy_of(lines, row["job_id"]) for row in held}
        return {job_id: _LONG_AGO for job_id, policy in allowed.items() if policy}


class _Impatient(Models):
    """Decides that what backs off may start, and requires no step of the failed run."""

    def verdicts(self) -> list[Verdict]:
        again = self.retries()
        return [
            replace(each, blockers=[name for name in each.blockers if name != "last_run_failed"])
            if each.job_id in again
            else each
            for each in super().verdicts()
        ]


class _ReleasesAgain(Models):
    """Lets a slot wait on after its release."""

    def trigger_looks(self) -> list[Row]:
        return [_with_place(row, _back) for row in super().trigger_looks()]


class _DropsWhatMustWait(Models):
    """Drops the slots that have all they need and have to wait."""

    def trigger_looks(self) -> list[Row]:
        return [_with_place(row, _dropped) for row in super().trigger_looks()]


class _OfNewestChange(Models):
    """Releases the newest change alone, as if nothing had come between."""

    def trigger_looks(self) -> list[Row]:
        results = super().trigger_looks()
        return [row | {"matched": cast(Sequence[Row], row["matched"])[-1:]} for row in results]


class _OfFirstTable(Models):
    """Waits for the first table of each trigger."""

    def triggers(self) -> list[Trigger]:
        return [replace(each, parts=each.parts[:1]) for each in super().triggers()]


def _with_place(row: Row, change: Callable[[dict[str, Any], Row], None]) -> Row:
    place = json.loads(str(row["position"]))
    change(place, row)
    return row | {"position": json.dumps(place)}


def _back(place: dict[str, Any], row: Row) -> None:
    slots = {iso(each["slot"]) for each in cast(Sequence[Mapping[str, datetime]], row["matched"])}
    if "missing" in place:
        place["waiting"] += slots
        place["missing"] += [[] for _ in slots]
        place["is_ready"] = True


def _dropped(place: dict[str, Any], row: Row) -> None:
    kept = [
        (slot, missing)
        for slot, missing in zip(place["waiting"], place.get("missing", ()), strict=False)
        if missing
    ]
    place["waiting"], place["missing"] = [slot for slot, _ in kept], [each for _, each in kept]


class _WithoutMemory(Ledgers):
    """Finds no event again by the change that it reports."""

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        if any(column in ("change_id", "snapshot_id") for column, _, _ in where):
            return []
        return super().read(table, where=where, columns=columns)


class _AppliesTwice(Ledgers):
    """Appends each step of an operator twice in the same tick."""

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None = None
    ) -> None:
        by_operator = [
            replace(row, step_number=row.step_number + 1000)
            for row in rows
            if isinstance(row, Run) and row.reported_by == "operator"
        ]
        super().append(ledger, [*rows, *by_operator], stamp)


def _without_the_inbox(place: Place, sensor: Sensor, caller: Caller) -> list[dict[str, object]]:
    """Return what the ledgers contain, whatever the job has reported since."""
    assert isinstance(place.inbox, FolderInbox)
    inbox = place.inbox.folder
    apart = inbox.parent / "apart"
    for folder in (apart, inbox):
        folder.mkdir(exist_ok=True)
    events = acquire(replace(place, inbox=FolderInbox(apart)), sensor, caller)
    for message in apart.iterdir():
        message.rename(inbox / message.name)
    return events


def _processed_when_fetched(
    place: Place, sensor: Sensor, caller: Caller
) -> list[dict[str, object]]:
    """Take what a job got for what it has processed."""
    events = acquire(place, sensor, caller)
    processed(place, sensor, caller)
    return events


#: Each wrong harness, and the rules of which at least one has to be broken.
WRONG: Mapping[str, tuple[Wiring, frozenset[str]]] = {
    "without_the_token": (
        Wiring(jobs=_WithoutToken),
        frozenset({"one_run_per_attempt"}),
    ),
    "with_the_effect_before_the_intent": (
        Wiring(store=_EffectBeforeIntent),
        frozenset({"no_start_without_an_intent"}),
    ),
    "with_500_read_as_failure": (
        Wiring(jobs=_UnknownIsFailure),
        frozenset({"what_is_refused_has_no_run"}),
    ),
    "with_consumption_at_completion": (
        Wiring(models=lambda store: Models(store, _consumed_at_completion)),
        frozenset({"no_event_is_lost"}),
    ),
    "without_a_back_off": (
        Wiring(models=_WithoutBackOff),
        frozenset({"a_policy_starts_no_more_and_no_sooner_than_it_says"}),
    ),
    "without_an_end_of_attempts": (
        Wiring(models=_WithoutEnd),
        frozenset({"a_policy_starts_no_more_and_no_sooner_than_it_says"}),
    ),
    "with_a_retry_that_is_no_step": (
        Wiring(models=_Impatient),
        frozenset({"a_job_has_one_start_at_a_time"}),
    ),
    "that_releases_a_slot_again": (
        Wiring(models=_ReleasesAgain),
        frozenset({"a_slot_is_released_once"}),
    ),
    "that_forgets_slots_whose_turn_has_not_come": (
        Wiring(models=_DropsWhatMustWait),
        frozenset({"a_slot_that_is_satisfied_is_released"}),
    ),
    "that_releases_the_newest_change_alone": (
        Wiring(models=_OfNewestChange),
        frozenset({"a_trigger_of_snapshots_releases_every_change"}),
    ),
    "that_waits_for_the_first_table_of_a_trigger": (
        Wiring(models=_OfFirstTable),
        frozenset({"a_slot_is_released_with_all_it_waits_for"}),
    ),
    "that_knows_no_registered_event_again": (
        Wiring(store=_WithoutMemory),
        frozenset({"a_registered_event_is_recorded_once"}),
    ),
    "that_does_not_see_what_a_consumer_has_just_processed": (
        Wiring(acquire=_without_the_inbox),
        frozenset({"a_consumer_gets_no_event_after_it_is_processed"}),
    ),
    "that_applies_a_message_twice": (
        Wiring(store=_AppliesTwice),
        frozenset({"a_message_is_applied_at_most_once"}),
    ),
    "that_hands_each_event_over_once": (
        Wiring(acquire=_processed_when_fetched),
        frozenset({"a_consumer_gets_an_event_until_it_is_processed"}),
    ),
    "with_the_wall_clock_as_position": (
        Wiring(probe_pool=_ByWallClock),
        frozenset({"every_change_is_an_event"}),
    ),
}
