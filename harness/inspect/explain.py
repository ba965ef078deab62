"""Explains why a job runs, waits or is held."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from harness.inspect.attention import (
    EVENT_OF,
    instant_of,
    reason_of_waiting,
    retry_of,
    unreachable_of,
    waits,
    words_of,
)
from harness.inspect.catch_up import Healing
from harness.inspect.job_history import Dependency, History
from harness.inspect.tick_summary import main_reason
from harness.platform.format import count, instant, iso
from harness.store.rows import Blocker, Run, RunStatus

#: Reasons that the newest run may have made untrue since the decision.
OF_RUNS = frozenset({"run_in_progress", "last_run_failed", "backing_off"})


class Verdict(StrEnum):
    """How a job stands, in one word."""

    RUNNING = "running"
    #: The start is sent, and the Jobs API has not answered.
    STARTING = "starting"
    HELD = "held"
    #: Its last run failed, and starts again automatically.
    BACKING_OFF = "backing_off"
    PAUSED = "paused"
    READY = "ready"
    WAITING = "waiting"
    UNDECIDED = "undecided"
    NOT_IN_CONTROLS = "not_in_controls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer in one sentence, and what must happen next."""

    verdict: Verdict
    sentence: str
    since: datetime | None
    next_steps: tuple[str, ...]


def answer_to(history: History) -> Answer:
    """Return the answer in words."""
    verdict = _verdict(history)
    run = history.last_run
    match verdict:
        case Verdict.NOT_IN_CONTROLS:
            return _not_in_controls(history)
        case Verdict.UNDECIDED:
            return Answer(
                verdict=verdict,
                sentence="no tick has decided about it yet",
                since=None,
                next_steps=("a tick: python -m harness tick",),
            )
        case Verdict.RUNNING | Verdict.STARTING:
            assert run is not None
            return _running(history, run, verdict)
        case Verdict.BACKING_OFF:
            return _backing_off(history)
        case Verdict.HELD:
            assert run is not None
            return _held(history, run)
        case _:
            return _blocked(history, verdict)


def _verdict(history: History) -> Verdict:
    paused = [each.is_paused for each in history.dependencies]
    return verdict_of(history.last_run, history.blockers, paused)


def verdict_of(
    run: Run | None, blockers: Sequence[Blocker] | None, paused: Sequence[bool]
) -> Verdict:
    """Return how a job stands.

    Args:
        run: Its newest run.
        blockers: Those of the newest decision; nothing when there was none.
        paused: Of each of its dependencies, whether it is paused.
    """
    if not paused:
        return Verdict.NOT_IN_CONTROLS
    if run and run.is_open and run.run_status is not RunStatus.ACQUIRED:
        return Verdict.STARTING if run.run_id is None else Verdict.RUNNING
    if run and run.holds_job:
        return Verdict.HELD if retry_of(run, blockers) is None else Verdict.BACKING_OFF
    if all(paused):
        return Verdict.PAUSED
    if blockers is None:
        return Verdict.UNDECIDED
    names = {each.blocker for each in blockers} - OF_RUNS
    return Verdict.WAITING if names - {"over_start_limit"} else Verdict.READY


def _not_in_controls(history: History) -> Answer:
    run = history.last_run
    return Answer(
        verdict=Verdict.NOT_IN_CONTROLS,
        sentence="it has no row in the controls and no trigger"
        + (", so nothing starts it; its history is kept" if run else ""),
        since=None,
        next_steps=("a row of it in seeds/heartbeat_controls.csv",),
    )


def _running(history: History, run: Run, verdict: Verdict) -> Answer:
    payload = count(run.event_count, "event")
    if verdict is Verdict.STARTING:
        message = f" ({run.message})" if run.message else ""
        sentence = (
            f"its start with {payload} is decided, and the Jobs API has not answered yet{message}"
        )
        steps = ["the Jobs API's answer; every tick sends the same token again, so it starts once"]
    else:
        goes_on = "waits" if waits(run) else "goes on"
        words = f" ({words_of(run)})" if words_of(run) else ""
        message = f": {run.message}" if run.message else ""
        sentence = f"run {run.run_id} {goes_on}{words}{message}; it received {payload}"
        unreachable = unreachable_of(run, history.unreachable)
        if unreachable:
            requested = f"it has been unreachable since {instant(unreachable.since, history.at)}"
            sentence = f"{sentence}; {requested} ({unreachable.reason})"
        steps = ["the end of that run"]
    changes = [each.sensor_id for each in history.dependencies if each.has_news]
    if changes:
        steps.append(f"then what has come since: {_listed(changes)}")
    return Answer(
        verdict=verdict,
        sentence=sentence,
        since=run.started_at or run.decided_at,
        next_steps=tuple(steps),
    )


def _held(history: History, run: Run) -> Answer:
    which = f"its last run {run.run_id}" if run.run_id else "its last start"
    reason = f": {run.message}" if run.message else ""
    return Answer(
        verdict=Verdict.HELD,
        sentence=f"{which} ended {run.run_status.value}{reason}",
        since=run.ended_at or run.recorded_at,
        next_steps=(
            "one successful run of it, started by anyone",
            "or the same events once more, with any newer ones: "
            f"python -m harness retry {history.job_id}",
            f"or without those events: python -m harness release {history.job_id} --reason TEXT",
            *([f"the run's output: python -m harness logs {run.run_id}"] if run.run_id else []),
            *([f"the run's own page: {run.run_page_url}"] if run.run_page_url else []),
        ),
    )


def _backing_off(history: History) -> Answer:
    assert history.last_run is not None
    retry = retry_of(history.last_run, history.blockers)
    assert retry is not None
    return Answer(
        verdict=Verdict.BACKING_OFF,
        sentence=retry.reason,
        since=history.last_run.ended_at or history.last_run.recorded_at,
        next_steps=(
            f"the next attempt, automatic: from {instant_of(retry)} on, if no other run goes on",
            f"or at once: python -m harness retry {history.job_id}",
            "or one successful run of it, started by anyone",
            f"or without those events: python -m harness release {history.job_id} --reason TEXT",
        ),
    )


def _blocked(history: History, verdict: Verdict) -> Answer:
    reasons = history.blockers or ()
    if verdict is Verdict.PAUSED and not reasons:
        sentence, since = "every row of the job is PAUSED", None
        steps = ["job_state UNPAUSED in the controls"]
    elif reasons:
        sentence = _joined([reason_of_waiting(each.reason) for each in _reported(reasons)])
        since = main_reason(reasons).since or history.decided_at
        failing = {each.sensor_id for each in history.dependencies if each.failure}
        waited_for = dict.fromkeys(each.waits_for for each in _reported(reasons))
        steps = [_readable(each, failing) for each in waited_for]
    else:
        sentence, since, steps = "nothing stands against it", history.decided_at, ["the next tick"]
    return Answer(verdict=verdict, sentence=sentence, since=since, next_steps=tuple(steps))


def _readable(waits_for: str, failing: Collection[str]) -> str:
    """Return what comes first where the upstream of an event that is waited for cannot be read."""
    name = waits_for.removeprefix(EVENT_OF)
    if name not in failing:
        return waits_for
    return (
        f"a change of {name}: make it readable, or correct its sensor_id in"
        " seeds/heartbeat_controls.csv; the next tick probes it again"
    )


def _reported(reasons: Sequence[Blocker]) -> Sequence[Blocker]:
    """Leave out what the newest run has made untrue since the decision."""
    return [each for each in reasons if each.blocker not in OF_RUNS] or reasons


def _joined(parts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(part.rstrip(".") for part in parts))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def as_json(history: History) -> dict[str, object]:
    """Return the answer as one object for scripts."""
    answer = answer_to(history)
    return {
        "job_id": str(history.job_id),
        "job_name": history.job_name,
        "at": iso(history.at),
        "tick_number": history.tick_number,
        "tick_at": _iso(history.tick_at),
        "verdict": answer.verdict.value,
        "reason": answer.sentence,
        "since": _iso(answer.since),
        "next": list(answer.next_steps),
        "blockers": [
            {**asdict(each), "since": _iso(each.since)} for each in history.blockers or ()
        ],
        "dependencies": [_dependency_as_json(each) for each in history.dependencies],
        "runs": [_run_as_json(run) for run in history.runs],
        "caught_up": None if history.healing is None else _healing_as_json(history.healing),
    }


def _healing_as_json(healing: Healing) -> dict[str, object]:
    return {
        "run_id": _id(healing.run),
        "attempt": healing.run.attempt,
        "failed_run_ids": [_id(run) for run in healing.failed],
        "first_event_at": _iso(healing.first_at),
        "last_event_at": _iso(healing.last_at),
        "event_ids_of_failed_runs": list(healing.event_ids_of_failed),
        "event_ids_since": list(healing.event_ids_since),
        "tables": [
            {
                "table": each.table,
                "events_of_failed_runs": each.of_failed,
                "events_since": each.since,
                "first_event_at": iso(each.first_at),
                "last_event_at": iso(each.last_at),
            }
            for each in healing.tables
        ],
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


def _dependency_as_json(each: Dependency) -> dict[str, object]:
    event = each.event or {}
    return {
        "sensor_source": each.sensor_source,
        "sensor_id": each.sensor_id,
        "is_required": each.is_required,
        "is_paused": each.is_paused,
        "last_event_at": _iso(each.event_at),
        "last_event_id": event.get("event_id"),
        "last_event_operation": event.get("operation_type"),
        "last_event_snapshot_id": event.get("snapshot_id"),
        "is_consumed": each.event_at is not None and not each.has_news,
        "consumed_by_run_id": _id(each.consumed_by),
        "failing_since": _iso(each.failing_since),
        "failure": each.failure,
        "waiting": [{"slot": slot.slot, "missing": list(slot.missing)} for slot in each.waiting],
    }


def _id(run: Run | None) -> str | None:
    return None if run is None or run.run_id is None else str(run.run_id)


def _run_as_json(run: Run) -> dict[str, object]:
    return {
        "run_id": _id(run),
        "intent_id": run.intent_id,
        "attempt": run.attempt,
        "run_status": run.run_status.value,
        "decided_at": iso(run.decided_at),
        "started_at": _iso(run.started_at),
        "ended_at": _iso(run.ended_at),
        "event_count": run.event_count,
        "message": run.message,
        "run_page_url": run.run_page_url,
    }
