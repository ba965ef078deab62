"""Shows what one tick found, started and ended, and why the other jobs wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from harness.show.terminal import Column, line, table
from harness.show.words import age, count, instant, size, took, upstream_name
from harness.tables import OPEN, Blocker, EventRow, RunRow, RunStatus

if TYPE_CHECKING:
    from harness.tick import TickReport

#: More rows than this are counted, not listed: `status` has them all.
ROWS = 15

#: Of several reasons the one that somebody can do something about is told.
_ORDER = (
    "last_run_failed",
    "run_in_progress",
    "over_start_limit",
    "required_row_paused",
    "waiting_for_required_event",
    "nothing_new",
    "job_paused",
)
_OF_DEPENDENCIES = frozenset({"required_row_paused", "waiting_for_required_event"})

STYLES: Mapping[RunStatus, str] = {
    RunStatus.STARTED: "green",
    RunStatus.SUCCEEDED: "green",
    RunStatus.SUCCEEDED_ELSEWHERE: "green",
    RunStatus.INTENDED: "yellow",
    RunStatus.RETRY_REQUESTED: "yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The runs of a tick, sorted by what happened to them in it."""

    started: tuple[RunRow, ...]
    ended: tuple[RunRow, ...]


def runs_of(report: "TickReport") -> Told:
    """Tell starts from ends; a start that an earlier tick intended and this one sent is a start."""
    settled = report.settled.rows if report.settled else ()
    resent = [row for row in settled if row.reported_by == "answer"]
    return Told(
        started=(*report.started, *resent),
        ended=tuple(row for row in settled if row.run_status not in OPEN and row not in resent),
    )


def failed(report: "TickReport") -> bool:
    """Tell whether something failed that an operator should look at."""
    refused = any(row.run_status is RunStatus.REFUSED for row in runs_of(report).started)
    return refused or not report.is_clean


def as_json(report: "TickReport", waiting: int) -> dict[str, object]:
    """Return the tick as one object for scripts; ids are strings.

    Args:
        report: The tick.
        waiting: How many jobs have a reason not to run.
    """
    runs = runs_of(report)
    return {
        "tick_id": report.tick.id,
        "tick_at": report.tick.at.isoformat().replace("+00:00", "Z"),
        "sensed": report.sensed,
        "events": report.event_count,
        "failed_looks": len(report.failures),
        "failures": [
            {"sensor_id": upstream_name(look.upstream_id), "reason": look.failure}
            for look in report.failures
        ],
        "fired": [_run_as_json(row) for row in runs.started],
        "settled": len(runs.ended),
        "settled_runs": [_run_as_json(row) for row in runs.ended],
        "waiting": waiting,
        "skipped": list(report.skipped),
        "seconds": dict(report.seconds),
        "warnings": list(report.warnings),
    }


def _run_as_json(row: RunRow) -> dict[str, object]:
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


def has_news(report: "TickReport") -> bool:
    """Tell whether a tick did anything that a person wants to read."""
    runs = runs_of(report)
    return bool(
        report.event_count
        or runs.started
        or runs.ended
        or report.control_changes
        or report.warnings
        or failed(report)
    )


def headline(report: "TickReport") -> str:
    """Return one line: what the tick came to."""
    runs = runs_of(report)
    told = [f"looked at {count(report.sensed, 'upstream')}"]
    told += [count(report.event_count, "event")] if report.event_count else []
    told += [f"{len(report.failures)} cannot be read"] if report.failures else []
    told += [f"{count(report.control_changes, 'control row')} changed"] * bool(
        report.control_changes
    )
    told += [f"{count(len(runs.ended), 'run')} ended"] if runs.ended else []
    told += [f"{count(len(runs.started), 'job')} started"] if runs.started else []
    told += [] if has_news(report) else ["nothing new"]
    spent = took(sum(report.seconds.values()))
    return f"tick {report.tick.number}  {instant(report.tick.at)}  {', '.join(told)}  ({spent})"


def show(console: Console, report: "TickReport") -> None:
    """Print the tick for a person: one line, then a table for each thing that happened."""
    runs = runs_of(report)
    style = "bold red" if failed(report) else "bold" if has_news(report) else ""
    console.print(line((headline(report), style)), soft_wrap=True)
    for warning in report.warnings:
        console.print(line(("warning: ", "yellow"), warning), soft_wrap=True)
    _show_found(console, report.recorded.events if report.recorded else ())
    _show_failures(console, report)
    _show_started(console, runs.started)
    _show_ended(console, runs.ended)
    _show_waiting(console, report)


def _show_found(console: Console, events: Sequence[EventRow]) -> None:
    if not events:
        return
    by_upstream: dict[str, list[EventRow]] = {}
    for event in events:
        by_upstream.setdefault(event.upstream_id, []).append(event)
    columns = (
        Column(title="upstream", may_shrink=True),
        Column(title="events", is_number=True),
        Column(title="rows", is_number=True),
        Column(title="size", is_number=True),
        Column(title="change"),
    )
    rows = [
        (
            upstream_name(upstream_id),
            f"{len(found):,}",
            _sum(found, ("rows_written", "rows_inserted", "rows_updated", "rows_deleted"), "{:,}"),
            _sum(found, ("bytes_written", "size"), None),
            ", ".join(sorted({event.operation_type for event in found})),
        )
        for upstream_id, found in by_upstream.items()
    ]
    _section(console, "found", columns, rows)


def _sum(events: Iterable[EventRow], names: Sequence[str], form: str | None) -> str:
    """Add up what the sources say of their changes, as far as they say anything."""
    said = [
        int(event.tags[name])
        for event in events
        for name in names
        if event.tags.get(name, "").isdigit()
    ]
    if not said:
        return "-"
    return form.format(sum(said)) if form else size(sum(said))


def _show_failures(console: Console, report: "TickReport") -> None:
    rows = [(upstream_name(look.upstream_id), look.failure or "") for look in report.failures]
    columns = (Column(title="upstream", may_shrink=True), Column(title="why", may_wrap=True))
    _section(console, "cannot be read", columns, rows, style="red")
    unanswered = report.settled.unanswered if report.settled else {}
    asked = [(str(job_id), reason) for job_id, reason in unanswered.items()]
    columns = (Column(title="job"), Column(title="why", may_wrap=True))
    _section(console, "runs that could not be asked about", columns, asked, style="red")


def _show_started(console: Console, started: Sequence[RunRow]) -> None:
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="attempt", is_number=True),
        Column(title="events", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            name_of(row.job_id, row.job_name),
            str(row.run_id or "-"),
            str(row.attempt),
            f"{row.event_count:,}",
            _start_in_words(row),
        )
        for row in started
    ]
    _section(console, "started", columns, rows, style="green")


def _start_in_words(row: RunRow) -> tuple[str, str]:
    if row.run_status is RunStatus.REFUSED:
        return f"refused: {row.message}", "red"
    if row.run_id is None:
        return f"no answer yet, sent again by the next tick: {row.message}", "yellow"
    return "", ""


def _show_ended(console: Console, ended: Sequence[RunRow]) -> None:
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="outcome"),
        Column(title="took", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            name_of(row.job_id, row.job_name),
            str(row.run_id or "-"),
            (row.run_status.value, STYLES.get(row.run_status, "red")),
            age(row.started_at, row.ended_at) if row.ended_at else "-",
            row.message or "",
        )
        for row in ended
    ]
    _section(console, "ended", columns, rows)


def _show_waiting(console: Console, report: "TickReport") -> None:
    """List why jobs wait, those whose reasons have just changed first; runs are listed above."""
    if report.publication is None:
        return
    published = report.publication
    told = {row.job_id for row in published.changed}
    waiting = [
        (job_id not in told, main_reason(blockers), job_id)
        for job_id, blockers in published.blockers.items()
        if blockers and main_reason(blockers).blocker != "run_in_progress"
    ]
    waiting.sort(key=lambda each: (each[0], _rank(each[1].blocker), each[2]))
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="since", is_number=True),
        Column(title="why not", may_wrap=True),
    )
    rows = [
        (
            name_of(job_id, published.job_names.get(job_id, "")),
            age(reason.since, report.tick.at),
            reason_in_words(published.blockers[job_id]),
        )
        for _, reason, job_id in waiting
    ]
    _section(console, "waiting", columns, rows, style="yellow")


def name_of(job_id: int, job_name: str) -> str:
    """Return what people call a job; its id when it has no name."""
    return job_name or str(job_id)


def main_reason(blockers: Sequence[Blocker]) -> Blocker:
    """Return the reason that is told when there is room for one."""
    return min(blockers, key=lambda each: _rank(each.blocker))


def reason_in_words(blockers: Sequence[Blocker]) -> str:
    """Return the reason that is told, and how many more dependencies the job waits for."""
    reason = main_reason(blockers)
    if reason.blocker not in _OF_DEPENDENCIES:
        return reason.reason
    more = sum(each.blocker in _OF_DEPENDENCIES for each in blockers) - 1
    return f"{reason.reason} (and {more} more)" if more else reason.reason


def _rank(blocker: str) -> int:
    return _ORDER.index(blocker) if blocker in _ORDER else 0


def _section(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | tuple[str, str]]],
    style: str = "",
) -> None:
    if not rows:
        return
    console.print(line((f"{title} {len(rows):,}", f"bold {style}".strip())))
    console.print(table(columns, rows[:ROWS]))
    if len(rows) > ROWS:
        more = len(rows) - ROWS
        console.print(line((f"  and {more:,} more: python -m harness status --all", "dim")))
