"""Shows what one tick found, started and ended, and why the other jobs wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.platform.format import count, instant, iso, took, upstream_name
from harness.store.rows import OPEN, Blocker, ProbeOutcome, Run, RunStatus

if TYPE_CHECKING:
    from harness.tick.report import TickReport

#: Of several reasons, the one that can be acted on is reported.
_ORDER = (
    "last_run_failed",
    "backing_off",
    "run_in_progress",
    "on_own_schedule",
    "over_start_limit",
    "required_row_paused",
    "waiting_for_required_event",
    "nothing_new",
    "job_paused",
)
_OF_DEPENDENCIES = frozenset({"required_row_paused", "waiting_for_required_event"})

_NO_END = OPEN | {RunStatus.RETRY_REQUESTED, RunStatus.RELEASED}

STYLES: Mapping[RunStatus, str] = {
    RunStatus.STARTED: "green",
    RunStatus.SUCCEEDED: "green",
    RunStatus.SUCCEEDED_ELSEWHERE: "green",
    RunStatus.INTENDED: "yellow",
    RunStatus.RELEASED: "yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsOfTick:
    """The runs of a tick, sorted by what happened to them in it."""

    started: tuple[Run, ...]
    ended: tuple[Run, ...]
    #: Ended in an earlier tick; their events are free again, for a retry.
    requeued: tuple[Run, ...]
    #: Ended in an earlier tick; an operator discarded their events.
    discarded: tuple[Run, ...]


def runs_of(report: "TickReport") -> RunsOfTick:
    """Distinguish starts from ends; an intent of an earlier tick sent in this one is a start."""
    settled = (*report.settlement.settled.rows, *report.settlement.pull_steps)
    resent = [row for row in settled if row.reported_by == "answer"]
    return RunsOfTick(
        started=(*report.started, *resent),
        ended=tuple(row for row in settled if row.run_status not in _NO_END and row not in resent),
        requeued=tuple(row for row in settled if row.run_status is RunStatus.RETRY_REQUESTED),
        discarded=tuple(row for row in settled if row.run_status is RunStatus.RELEASED),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What one trigger came to in a tick."""

    trigger: str
    #: The slots whose events it passes on.
    slots: tuple[str, ...]
    event_count: int
    #: Why a slot is gone, or why nothing can be determined.
    reason: str | None


def releases_of(report: "TickReport") -> list[Release]:
    """Return the triggers that released events, lost a slot or could not be evaluated."""
    released = report.findings.released
    if released is None:
        return []
    slots: dict[str, list[str]] = {}
    for event in released.events:
        slots.setdefault(event.upstream_id, []).append(event.tags["trigger_slot"])
    return [
        Release(
            trigger=upstream_name(row.upstream_id),
            slots=tuple(sorted({*slots.get(row.upstream_id, ())})),
            event_count=len(slots.get(row.upstream_id, ())),
            reason=row.reason,
        )
        for row in released.probes
        if row.outcome is not ProbeOutcome.MOVED
    ]


def problems(report: "TickReport") -> frozenset[str]:
    """Return the problems that persist until they are fixed; repeated only when they change."""
    unanswered = report.settlement.settled.unanswered
    return frozenset(
        [
            *(result.failure for result in report.failures if result.failure),
            *(each.reason for each in report.failing_triggers if each.reason),
            # It persists while the upstream is deferred.
            *(each.reason for each in report.sensed.deferred if each.is_failing),
            *(f"{job_id}: {reason}" for job_id, reason in unanswered.items()),
            *(f"{each.name}: {each.reason}" for each in report.quarantined),
        ]
    )


def as_json(report: "TickReport", waiting: int) -> dict[str, object]:
    """Return the tick as one object for scripts; ids are strings.

    Args:
        report: The tick.
        waiting: How many jobs have a reason not to run.
    """
    runs = runs_of(report)
    settled = (*runs.ended, *runs.requeued, *runs.discarded)
    return {
        "tick_id": report.tick.id,
        "tick_at": report.tick.at.isoformat().replace("+00:00", "Z"),
        "sensed": len(report.results),
        "events": report.event_count,
        "failed_looks": len(report.failures),
        "failures": [
            {"sensor_id": upstream_name(result.upstream_id), "reason": result.failure}
            for result in report.failures
        ],
        "put_off": len(report.sensed.deferred),
        "put_off_looks": [
            {
                "sensor_id": upstream_name(each.upstream_id),
                "reason": each.reason,
                "next_look_at": each.next_probe_at and iso(each.next_probe_at),
            }
            for each in report.sensed.deferred
        ],
        "released": [
            {
                "trigger_id": each.trigger.removeprefix("trigger "),
                "slots": list(each.slots),
                "events": each.event_count,
                "reason": each.reason,
            }
            for each in releases_of(report)
        ],
        "failing_triggers": [
            {
                "trigger_id": each.sensor_id,
                "reason": each.reason,
                "failing_since": each.failing_since and iso(each.failing_since),
            }
            for each in report.failing_triggers
        ],
        "fired": [_run_as_json(row) for row in runs.started],
        "settled": len(settled),
        "settled_runs": [_run_as_json(row) for row in settled],
        "waiting": waiting,
        "skipped": list(report.skipped),
        "seconds": dict(report.seconds),
        "warnings": list(report.warnings),
        "quarantined": [
            {"name": each.name, "reason": each.reason, "path": str(each.path)}
            for each in report.quarantined
        ],
    }


def _run_as_json(row: Run) -> dict[str, object]:
    return {
        "job": str(row.job_id),
        "job_name": row.job_name,
        "run_id": None if row.run_id is None else str(row.run_id),
        "intent_id": row.intent_id,
        "attempt": row.attempt,
        "events": row.event_count,
        "run_status": row.run_status.value,
        "message": row.message,
    }


def is_noteworthy(report: "TickReport", known: frozenset[str] = frozenset()) -> bool:
    """Return whether a tick did anything worth reporting.

    Args:
        report: The tick.
        known: Problems that were reported already.
    """
    runs = runs_of(report)
    return bool(
        report.event_count
        or releases_of(report)
        or runs.started
        or runs.ended
        or runs.requeued
        or runs.discarded
        or report.control_changes
        or report.warnings
        or problems(report) != known
    )


def headline(report: "TickReport") -> str:
    """Return one line: what the tick came to."""
    runs = runs_of(report)
    parts = [f"probed {count(len(report.results), 'upstream')}"]
    parts += [count(report.event_count, "event")] if report.event_count else []
    parts += [f"{len(report.failures)} cannot be read"] if report.failures else []
    parts += [f"{len(report.sensed.deferred)} deferred"] if report.sensed.deferred else []
    failing = report.failing_triggers
    parts += [f"{count(len(failing), 'trigger')} cannot be evaluated"] if failing else []
    parts += [f"{len(report.quarantined)} quarantined"] if report.quarantined else []
    parts += (
        [f"{count(len(releases_of(report)), 'trigger')} evaluated"] if releases_of(report) else []
    )
    parts += [
        f"{count(number, 'control row')} {change}"
        for change, number in sorted(report.control_changes.items())
    ]
    parts += [f"{count(len(runs.ended), 'run')} ended"] if runs.ended else []
    parts += [f"{count(len(runs.requeued), 'run')} requeued"] if runs.requeued else []
    parts += [f"{count(len(runs.discarded), 'run')} released"] if runs.discarded else []
    parts += [f"{count(len(runs.started), 'job')} started"] if runs.started else []
    parts += [] if is_noteworthy(report) else ["nothing new"]
    spent = took(report.wall_seconds)
    return f"tick {report.tick.number}  {instant(report.tick.at)}  {', '.join(parts)}  ({spent})"


def name_of(job_id: int, job_name: str) -> str:
    """Return what people call a job; its id when it has no name."""
    return job_name or str(job_id)


def main_reason(blockers: Sequence[Blocker]) -> Blocker:
    """Return the reason that is reported when there is room for one."""
    return min(blockers, key=lambda each: rank(each.blocker))


def reason_in_words(blockers: Sequence[Blocker]) -> str:
    """Return the reason that is reported, and how many more dependencies the job waits for."""
    reason = main_reason(blockers)
    if reason.blocker not in _OF_DEPENDENCIES:
        return reason.reason
    more = sum(each.blocker in _OF_DEPENDENCIES for each in blockers) - 1
    return f"{reason.reason} (and {more} more)" if more else reason.reason


def rank(blocker: str) -> int:
    """Return the place of a reason among those that are reported; an unknown one is the first."""
    return _ORDER.index(blocker) if blocker in _ORDER else 0
