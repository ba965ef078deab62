"""Checks what ticks have left open: what cannot be read, what is held, and the time between."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from harness.config.model import Attention
from harness.inspect.attention import (
    began,
    blockers_of,
    is_over,
    names_of,
    retry_of,
    unreachable_of,
)
from harness.inspect.doctor.findings import Finding, attention, ok
from harness.inspect.doctor.installation import Patient
from harness.inspect.status import OLD_AFTER_SECONDS
from harness.platform.format import age, count, instant, span
from harness.sense.backoff import load_back_off
from harness.settle.unreachable_runs import load_unreachable
from harness.store.queries import (
    folded_through,
    last_decision,
    last_tick_at,
    newest_by_job,
    runs_now,
)
from harness.store.rows import Ledger, RunStatus
from harness.store.trigger_queries import failing_triggers

#: A tick that is a little ahead of this process is no clock that went back.
_TOLERANCE_SECONDS = 5.0
_MOST_NAMED = 3


def clock(patient: Patient) -> Iterator[Finding]:
    """The clock goes on from the newest tick, which is not long ago."""
    now, newest = patient.clock.now(), _newest_tick(patient)
    if newest is None:
        return
    ahead = (newest - now).total_seconds()
    if ahead > _TOLERANCE_SECONDS:
        yield attention(
            "clock",
            f"is {span(ahead)} behind the newest tick, of {instant(newest)}",
            todo="set the machine's clock right; nothing is lost meanwhile, since order is by the "
            "numbers of ticks",
        )
    elif -ahead > OLD_AFTER_SECONDS:
        yield attention(
            "ticks",
            f"none for {span(-ahead)}, since {instant(newest)}",
            todo="check what starts them: the scheduler, or the service that runs `run`",
        )
    else:
        yield ok("clock", f"the last tick was {age(newest, now)} ago")


def _newest_tick(patient: Patient) -> datetime | None:
    decision = last_decision(patient.home.status)
    listed = last_tick_at(patient.home.folder, decision)
    found = [listed] if listed else []
    if patient.is_local:
        number = decision.tick_number if decision else 0
        after = [("tick_number", ">=", number)]
        rows = patient.store.read(Ledger.TICKS, where=after, columns=["tick_at"])
        found += [at for row in rows if isinstance(at := row["tick_at"], datetime)]
    return max(found, default=None)


def upstreams(patient: Patient) -> Iterator[Finding]:
    """Every upstream that is sensed could be read."""
    now = patient.clock.now()
    failing = sorted(
        load_back_off(patient.home.back_off).failing.values(), key=lambda each: each.since
    )
    if failing:
        names = names_of((each.upstream_id for each in failing), failing)
        listed = (f"{names[each.upstream_id]} for {age(each.since, now)}" for each in failing)
        yield attention(
            "upstreams",
            f"{count(len(failing), 'upstream')} cannot be read: {_listed(listed)}",
            todo="correct what `python -m harness status` names as the reason; the next tick that "
            "is due probes again, or at once after `python -m harness try-again`",
        )
    else:
        yield ok("upstreams", "none failed at its last probe")


def triggers(patient: Patient) -> Iterator[Finding]:
    """Every event trigger could be evaluated."""
    if not patient.is_local or not patient.is_set_up:
        return
    compacted = folded_through(patient.store, last_decision(patient.home.status))
    failing = failing_triggers(patient.store, compacted)
    if failing:
        now = patient.clock.now()
        listed = (f"{each.trigger_id} for {age(each.since, now)}" for each in failing)
        yield attention(
            "triggers",
            f"{count(len(failing), 'trigger')} cannot be evaluated: {_listed(listed)}",
            todo="correct what `python -m harness status` names as the reason; the next tick "
            "evaluates them again",
        )


def runs(patient: Patient) -> Iterator[Finding]:
    """No job is held, parked or without an answer."""
    if not patient.is_local or not patient.is_set_up:
        return
    store, now = patient.store, patient.clock.now()
    decision = last_decision(patient.home.status)
    compacted = folded_through(store, decision)
    newest = newest_by_job(runs_now(store, folded_through=compacted, only_relevant=True)).values()
    answered = [run for run in newest if run.is_open and not run.is_unanswered]
    unreachable = load_unreachable(patient.home.folder)
    bounds = patient.settings.jobs.attention if patient.settings else Attention()
    kinds = {
        "parked": [run for run in newest if run.run_status is RunStatus.PARKED],
        "held": [
            run
            for run in newest
            if run.holds_job
            and run.run_status is not RunStatus.PARKED
            and retry_of(run, blockers_of(run, decision)) is None
        ],
        "unanswered": [run for run in newest if run.is_unanswered],
        "long": [run for run in answered if is_over(bounds.running_minutes, began(run), now)],
        "unreachable": [
            run
            for run in answered
            if (since := unreachable_of(run, unreachable.get(run.job_id)))
            and is_over(bounds.unasked_minutes, since.since, now)
        ],
    }
    for kind, found in kinds.items():
        if found:
            what, todo = _WORDS[kind]
            message = what.format(count(len(found), "job"))
            yield attention(
                "runs", f"{message}: {_listed(run.job_name for run in found)}", todo=todo
            )
    if not any(kinds.values()):
        yield ok("runs", "no job is held, and every start has its answer")


_WORDS = {
    "parked": (
        "{} PARKED, and it is unknown whether a run of it exists",
        "check the job in the workspace: its run there ends it, `retry` starts it again, "
        "`complete` counts it as done",
    ),
    "held": (
        "{} held after a run that ended badly",
        "`python -m harness explain JOB` shows why; fix it, then `retry JOB`",
    ),
    "unanswered": (
        "{} started without an answer from the Jobs API",
        "nothing: every tick sends it again with the same token; check the Jobs API",
    ),
    "long": (
        "{} with a long-running run",
        "check the run in the Jobs API; cancel it there if it hangs",
    ),
    "unreachable": (
        "{} with an unreachable run",
        "check that the Jobs API answers and the login is valid; each tick polls again",
    ),
}


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    return ", ".join(every[:_MOST_NAMED]) + more
