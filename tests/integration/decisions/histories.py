"""Random pasts of many jobs, and what a keeper of single events says has to come of each.

The models know ranges of ticks and newest rows. The keeper here knows neither: it holds the set of
events that each job has not consumed, changes it step by step while the past goes by, and applies
the rules to it in the end.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.integration.decisions.world import NOW, Dependency, Job, Range, Run

FIRST_ID = 10_000
JOBS = 300
ENDS = ("SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT", None)
AFTER_FAILURE = ("SUCCEEDED_ELSEWHERE", "RETRY_REQUESTED", None)


@dataclass(slots=True)
class Keeper:
    """One job as it is remembered: which events wait, and what its newest run came to."""

    waiting: dict[str, set[int]]
    all_events: dict[str, set[int]]
    newest: Run | None = None
    newest_status: str | None = None
    taken: dict[str, set[int]] = field(default_factory=dict)

    def may_start(self) -> bool:
        """Tell whether the past can hold a start at this point."""
        return self.newest_status in (None, "SUCCEEDED", "SUCCEEDED_ELSEWHERE", "RETRY_REQUESTED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the keeper says: the events of the start, or the names of the blockers."""

    events: Mapping[str, set[int]] | None
    blockers: Sequence[str]
    is_retry: bool
    statuses: Mapping[str, str | None]


def random_jobs() -> Sequence[Job]:
    """Return the same made-up jobs at every call."""
    return [job for job, _ in _histories()]


def expectations() -> Mapping[int, Expected]:
    """Return what has to come of each of those jobs."""
    return {job.job_id: expected for job, expected in _histories()}


def events_within(job: Job, consumed: Mapping[str, Range]) -> Mapping[str, set[int]]:
    """Return the single events that ranges of ticks stand for."""
    events = {each.name: each.events for each in job.dependencies}
    return {
        name: {tick for tick in events[name] if after < tick <= through}
        for name, (after, through) in consumed.items()
    }


def _histories() -> list[tuple[Job, Expected]]:
    chance = random.Random(20_260_301)
    return [_history(FIRST_ID + number, chance) for number in range(JOBS)]


def _history(job_id: int, chance: random.Random) -> tuple[Job, Expected]:
    names = [f"u{number}" for number in range(chance.randint(1, 4))]
    events = {
        name: sorted(chance.sample(range(1, NOW), chance.choice((0, 1, 2, 6)))) for name in names
    }
    dependencies = [
        Dependency(
            name=name,
            flag=chance.choice(("TRUE", "TRUE", "FALSE")),
            state=chance.choice(("UNPAUSED",) * 6 + ("PAUSED",)),
            events=events[name],
        )
        for name in names
    ]
    keeper = Keeper(
        waiting={name: set() for name in names},
        all_events={name: set(ticks) for name, ticks in events.items()},
    )
    runs = _past(keeper, chance)
    job = Job(job_id=job_id, dependencies=dependencies, runs=runs)
    return job, _expected(dependencies, keeper)


def _past(keeper: Keeper, chance: random.Random) -> list[Run]:
    runs: list[Run] = []
    tick = 0
    while keeper.may_start():
        start = tick + chance.randint(1, 30)
        if start + 20 >= NOW:
            break
        _arrive(keeper, tick, start)
        tick = start + chance.randint(0, 20)
        run = _start(keeper, start, tick, chance)
        if run is not None:
            runs.append(run)
        # What came while it went on waits for the next.
        _arrive(keeper, start, tick)
    _arrive(keeper, tick, NOW)
    return runs


def _arrive(keeper: Keeper, after: int, through: int) -> None:
    for name, ticks in keeper.all_events.items():
        keeper.waiting[name] |= {tick for tick in ticks if after < tick <= through}


def _start(keeper: Keeper, start: int, end: int, chance: random.Random) -> Run | None:
    took = {name: set(ticks) for name, ticks in keeper.waiting.items() if ticks}
    if not took:
        return None
    is_retry = keeper.newest_status == "RETRY_REQUESTED"
    previous = keeper.newest
    steps, keeper.newest_status = _life(start, end, chance)
    keeper.newest = Run(
        tick=start,
        takes={name: _range(keeper, name, ticks) for name, ticks in took.items()},
        steps=steps,
        intent=previous.intent if is_retry and previous else f"at-{start}",
        attempt=previous.attempt + 1 if is_retry and previous else 1,
    )
    for name in took:
        keeper.waiting[name] = set()
    keeper.taken |= {name: {start} for name in took}
    if keeper.newest_status == "RETRY_REQUESTED":
        for name, ticks in took.items():
            keeper.waiting[name] = ticks
    return keeper.newest


def _life(start: int, end: int, chance: random.Random) -> tuple[list[tuple[int, str]], str]:
    status = chance.choice(ENDS)
    if status is None:
        return [(start, "STARTED")], "STARTED"
    steps = [(start, "STARTED"), (end, status)]
    after = None if status == "SUCCEEDED" else chance.choice(AFTER_FAILURE)
    return ([*steps, (end, after)], after) if after else (steps, status)


def _range(keeper: Keeper, name: str, ticks: set[int]) -> Range:
    consumed = {tick for tick in keeper.all_events[name] if tick < min(ticks)}
    return max(consumed, default=-1), max(ticks)


def _expected(dependencies: Sequence[Dependency], keeper: Keeper) -> Expected:
    unpaused = [each for each in dependencies if each.state == "UNPAUSED"]
    required = [each for each in dependencies if each.flag == "TRUE"]
    news = {each.name: keeper.waiting[each.name] for each in unpaused if keeper.waiting[each.name]}
    blockers: list[str] = []
    if keeper.newest_status == "STARTED":
        blockers.append("run_in_progress")
    elif not keeper.may_start():
        blockers.append("last_run_failed")
    if not unpaused:
        blockers.append("job_paused")
    else:
        blockers += ["required_row_paused" for each in required if each not in unpaused]
        blockers += [
            "waiting_for_required_event"
            for each in required
            if each in unpaused and each.name not in news
        ]
        blockers += ["nothing_new"] if not required and not news else []
    return Expected(
        events=None if blockers else news,
        blockers=sorted(blockers),
        is_retry=keeper.newest_status == "RETRY_REQUESTED",
        statuses={each.name: _status(each.name, keeper) for each in dependencies},
    )


def _status(name: str, keeper: Keeper) -> str | None:
    newest = keeper.newest
    is_in_its_hands = newest is not None and name in newest.takes
    if is_in_its_hands and keeper.newest_status == "STARTED":
        return "IN_PROGRESS"
    if is_in_its_hands and not keeper.may_start():
        return "FAILED"
    if keeper.waiting[name]:
        return "NEW_EVENT_AVAILABLE"
    return "COMPLETED" if name in keeper.taken else None
