"""Harnesses that are wrong in one way each: the checker has to see it, or it proves nothing.

Each is a part put into the wiring in the place of the right one; the product has no such switch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from harness.clock import FakeClock
from harness.jobs.types import JobsApi, Refused, RunNowAnswer, RunReport, Unknown
from harness.sense.types import Look, Upstream
from harness.tables import Ledger, LedgerRow, RunRow, RunStatus, Stamp
from tests.keeper import Keeper
from tests.simulation.fate import Fate
from tests.simulation.machine import Ledgers, SkewedClock, Wiring
from tests.simulation.models import POLICIES, Models, Row, Verdict
from tests.simulation.policies import Policy, policy_of
from tests.simulation.sources import Sources, change


class _Jobs:
    """Hands everything on."""

    def __init__(self, jobs: JobsApi) -> None:
        self._jobs = jobs

    @property
    def workspace(self) -> str:
        return self._jobs.workspace

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        return self._jobs.run_now(job_id=job_id, token=token, parameters=parameters)

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

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: Stamp | None = None) -> None:
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
        isinstance(row, RunRow)
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


class _ByWallClock:
    """Looks for what was committed since our clock's last look."""

    def __init__(self, sources: Sources, clock: SkewedClock) -> None:
        self._sources, self._clock = sources, clock

    def look_at_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_look: Callable[[Look], None] | None = None,
    ) -> list[Look]:
        return [self._look(each) for each in upstreams]

    def _look(self, upstream: Upstream) -> Look:
        source = self._sources.by_id[upstream.sensor_id]
        if upstream.position is None or source.is_down:
            right = self._sources.look(upstream, self._clock.now())
            return replace(right, position=right.position and self._position())
        since = datetime.fromisoformat(json.loads(upstream.position)["at"])
        events = [
            change(upstream, number)
            for number, (brings, instant) in enumerate(source.versions)
            if brings and instant > since
        ]
        position = self._position() if events else upstream.position
        return Look(upstream_id=upstream.upstream_id, position=position, events=tuple(events))

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
    """Decides that what backs off may start, and asks nobody for a step of the failed run."""

    def verdicts(self) -> list[Verdict]:
        again = self.retries()
        return [
            replace(each, blockers=[name for name in each.blockers if name != "last_run_failed"])
            if each.job_id in again
            else each
            for each in super().verdicts()
        ]


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
    "with_the_wall_clock_as_position": (
        Wiring(looker=_ByWallClock),
        frozenset({"every_change_is_an_event"}),
    ),
}
