"""Random pasts of many jobs, and the outcome of each that a keeper of single events computes."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.decisions.world import NOW, Dependency, Job, Range, Run
from tests.support.keeper import Keeper

FIRST_ID = 10_000
JOBS = 300
ENDS = ("SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT", None)
AFTER_FAILURE = ("SUCCEEDED_ELSEWHERE", "RETRY_REQUESTED", "RELEASED", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The keeper's decision: the events of the start, or the names of the blockers."""

    events: Mapping[str, set[int]] | None
    blockers: Sequence[str]
    is_retry: bool
    statuses: Mapping[str, str | None]


def random_jobs() -> Sequence[Job]:
    """Return the same made-up jobs at every call."""
    return [job for job, _ in _histories()]


def expectations() -> Mapping[int, Expected]:
    """Return the expected outcome of each of those jobs."""
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
    keeper = Keeper(all_events={name: set(ticks) for name, ticks in events.items()})
    runs = _past(keeper, chance)
    job = Job(job_id=job_id, dependencies=dependencies, runs=runs)
    return job, _expected(dependencies, keeper)


def _past(keeper: Keeper, chance: random.Random) -> list[Run]:
    runs: list[Run] = []
    tick = 0
    while not keeper.has_open_run and not keeper.is_held:
        start = tick + chance.randint(1, 30)
        if start + 20 >= NOW:
            break
        keeper.arrive(tick, start)
        tick = start + chance.randint(0, 20)
        run = _start(keeper, runs[-1] if runs else None, (start, tick), chance)
        if run is not None:
            runs.append(run)
        # What came while it went on waits for the next.
        keeper.arrive(start, tick)
    keeper.arrive(tick, NOW)
    return runs


def _start(
    keeper: Keeper, previous: Run | None, lasts: tuple[int, int], chance: random.Random
) -> Run | None:
    took = {name: set(ticks) for name, ticks in keeper.waiting.items() if ticks}
    if not took:
        return None
    is_retry = keeper.is_retry
    start, end = lasts
    steps = _life(start, end, chance)
    run = Run(
        tick=start,
        takes={name: keeper.range_of(name, ticks) for name, ticks in took.items()},
        steps=steps,
        intent=previous.intent if is_retry and previous else f"at-{start}",
        attempt=previous.attempt + 1 if is_retry and previous else 1,
    )
    keeper.take(took, "INTENDED")
    for _, status in steps:
        keeper.become(status)
    return run


def _life(start: int, end: int, chance: random.Random) -> list[tuple[int, str]]:
    status = chance.choice(ENDS)
    if status is None:
        return [(start, "STARTED")]
    steps = [(start, "STARTED"), (end, status)]
    after = None if status == "SUCCEEDED" else chance.choice(AFTER_FAILURE)
    return [*steps, (end, after)] if after else steps


def _expected(dependencies: Sequence[Dependency], keeper: Keeper) -> Expected:
    blockers = keeper.blockers(dependencies)
    return Expected(
        events=None if blockers else keeper.news(dependencies),
        blockers=blockers,
        is_retry=keeper.is_retry,
        statuses={each.name: keeper.status_of(each.name) for each in dependencies},
    )
