"""Shows one tick to a person: one line, then a table for each thing that happened in it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from harness.cli.views.terminal import Column, line, print_sentence, print_table
from harness.cli.views.words import (
    change_of,
    outcome_of,
    remedy_of_held,
    short_reason,
    short_run_id,
)
from harness.events.event import EventRow
from harness.inspect.attention import names_of, reason_beside, reason_of_waiting
from harness.inspect.tick_summary import (
    headline,
    is_noteworthy,
    main_reason,
    name_of,
    reason_in_words,
    releases_of,
    runs_of,
)
from harness.platform.format import age, count, instant, size, upstream_name
from harness.store.rows import Run, RunStatus

if TYPE_CHECKING:
    from harness.publish.publish import Publication
    from harness.tick.report import TickReport

#: More rows than this are counted, not listed: `status` has them all.
ROWS = 15


def show(console: Console, report: "TickReport", *, is_brief: bool = False) -> None:
    """Print the tick for a person: one line, then a table for each thing that happened.

    Args:
        console: Where it is printed.
        report: The tick.
        is_brief: Of the jobs that wait, list those alone whose reasons this tick has changed.
    """
    runs = runs_of(report)
    style = "bold red" if not report.is_clean else "bold" if is_noteworthy(report) else ""
    print_sentence(console, (headline(report), style))
    for warning in report.warnings:
        print_sentence(console, ("warning: ", "yellow"), warning)
    if report.publication is not None:
        _show_held(console, report.publication)
    _show_quarantined(console, report)
    _show_found(console, report)
    _show_released(console, report)
    _show_failures(console, report)
    _show_deferred(console, report)
    _show_requeued(console, runs.requeued)
    _show_discarded(console, runs.discarded)
    _show_started(console, runs.started)
    _show_ended(console, runs.ended)
    if report.publication is not None:
        _show_waiting(console, report.publication, is_brief=is_brief)


def show_blocked(console: Console, published: "Publication") -> None:
    """Print which jobs are held and which wait, when that is public later than the tick ends."""
    _show_held(console, published)
    _show_waiting(console, published)


def _show_quarantined(console: Console, report: "TickReport") -> None:
    columns = (Column(title="what", may_wrap=True), Column(title="reason", may_wrap=True))
    rows = [(each.name, each.reason) for each in report.quarantined]
    _section(console, "quarantined, the rest went on", columns, rows, style="red")


def _show_found(console: Console, report: "TickReport") -> None:
    events = report.findings.events
    by_upstream: dict[str, list[EventRow]] = {}
    for event in events:
        by_upstream.setdefault(event.upstream_id, []).append(event)
    names = names_of(by_upstream, report.sensed.upstreams)
    columns = (
        _upstream_column(names),
        Column(title="events", is_number=True),
        Column(title="rows", is_number=True),
        Column(title="size", is_number=True),
        Column(title="change"),
    )
    rows = [
        (
            names[upstream_id],
            f"{len(found):,}",
            _sum(found, ("rows_written", "rows_inserted", "rows_updated", "rows_deleted"), "{:,}"),
            _sum(found, ("bytes_written", "size"), None),
            ", ".join(sorted({change_of(event) for event in found})),
        )
        for upstream_id, found in by_upstream.items()
    ]
    _section(console, "found", columns, rows)


def _show_released(console: Console, report: "TickReport") -> None:
    columns = (
        Column(title="trigger", may_shrink=True),
        Column(title="slot"),
        Column(title="events", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            each.trigger.removeprefix("trigger "),
            ", ".join(each.slots) or "-",
            f"{each.event_count:,}",
            each.reason or "",
        )
        for each in releases_of(report)
    ]
    _section(console, "triggers", columns, rows, style="green")


def _upstream_column(names: Mapping[str, str]) -> Column:
    """A name is cut where there is no room for it; what distinguishes equal names is not."""
    disambiguated = any(name != upstream_name(each) for each, name in names.items())
    return Column(title="upstream", keeps_end=not disambiguated, may_wrap=disambiguated)


def _sum(events: Iterable[EventRow], names: Sequence[str], form: str | None) -> str:
    """Add up the counts that the sources report, as far as there are any."""
    message = [
        int(event.tags[name])
        for event in events
        for name in names
        if event.tags.get(name, "").isdigit()
    ]
    if not message:
        return "-"
    return form.format(sum(message)) if form else size(sum(message))


def _show_failures(console: Console, report: "TickReport") -> None:
    names = names_of((result.upstream_id for result in report.failures), report.sensed.upstreams)
    rows = [
        (
            names[result.upstream_id],
            reason_beside(upstream_name(result.upstream_id), result.failure or ""),
        )
        for result in report.failures
    ]
    columns = (_upstream_column(names), Column(title="why", may_wrap=True))
    _section(console, "cannot be read", columns, rows, style="red")
    failing = [(each.sensor_id, each.reason or "") for each in report.failing_triggers]
    columns = (Column(title="trigger", may_shrink=True), Column(title="why", may_wrap=True))
    _section(console, "triggers that cannot be evaluated", columns, failing, style="red")
    unanswered = report.settlement.settled.unanswered
    requested = [(str(job_id), reason) for job_id, reason in unanswered.items()]
    columns = (Column(title="job"), Column(title="why", may_wrap=True))
    _section(console, "runs without a response from the Jobs API", columns, requested, style="red")


def _show_deferred(console: Console, report: "TickReport") -> None:
    names = names_of((each.upstream_id for each in report.sensed.deferred), report.sensed.upstreams)
    rows = [
        (
            names[each.upstream_id],
            instant(each.next_probe_at, report.tick.at) if each.next_probe_at else "next tick",
            reason_beside(upstream_name(each.upstream_id), each.reason),
        )
        for each in report.sensed.deferred
    ]
    columns = (
        _upstream_column(names),
        Column(title="next try"),
        Column(title="why", may_wrap=True),
    )
    _section(console, "deferred", columns, rows, style="yellow")


def _show_requeued(console: Console, runs: Sequence[Run]) -> None:
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="events", is_number=True),
    )
    rows = [
        (name_of(row.job_id, row.job_name), short_run_id(row.run_id), f"{row.event_count:,}")
        for row in runs
    ]
    _section(console, "requeued for a retry", columns, rows)


def _show_discarded(console: Console, runs: Sequence[Run]) -> None:
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="events", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            name_of(row.job_id, row.job_name),
            short_run_id(row.run_id),
            f"{row.event_count:,}",
            row.message or "",
        )
        for row in runs
    ]
    _section(console, "released", columns, rows)


def _show_started(console: Console, started: Sequence[Run]) -> None:
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
            short_run_id(row.run_id),
            str(row.attempt),
            f"{row.event_count:,}",
            _start_in_words(row),
        )
        for row in started
    ]
    _section(console, "started", columns, rows, style="green")


def _start_in_words(row: Run) -> tuple[str, str]:
    if row.run_status is RunStatus.REFUSED:
        return f"refused: {row.message}", "red"
    if row.run_id is None and row.termination_code is not None:
        return (
            f"refused when sent again; the next tick searches for its run: {row.message}",
            "yellow",
        )
    if row.run_id is None:
        return f"no answer yet, sent again by the next tick: {row.message}", "yellow"
    return "", ""


def _show_ended(console: Console, ended: Sequence[Run]) -> None:
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="outcome"),
        Column(title="took", is_number=True),
        Column(title="", may_shrink=True),
    )
    rows = [
        (
            name_of(row.job_id, row.job_name),
            short_run_id(row.run_id),
            outcome_of(row),
            age(row.started_at, row.ended_at) if row.ended_at else "-",
            row.message or "",
        )
        for row in ended
    ]
    _section(console, "ended", columns, rows)


def _show_waiting(console: Console, published: "Publication", *, is_brief: bool = False) -> None:
    """List why jobs wait, by the names of the jobs; runs are listed above."""
    rows = _blocked(published, lambda blocker: blocker not in (HELD, "run_in_progress"))
    changed = {
        name_of(row.job_id, published.job_names.get(row.job_id, "")) for row in published.changed
    }
    news = [row for row in rows if row[0] in changed] if is_brief else rows
    _section(console, "waiting", _BLOCKED, news)
    if left := len(rows) - len(news):
        console.print(line((f"  {count(left, 'job')} more as before", "dim")))


def _show_held(console: Console, published: "Publication") -> None:
    """List the jobs that go no further on their own, and the command that helps."""
    rows = _blocked(published, lambda blocker: blocker == HELD)
    _section(console, "held", _BLOCKED, rows, style="red")
    if rows:
        print_sentence(console, (f"  {remedy_of_held([name for name, _, _ in rows])}", "bold"))


#: The blocker of a job that goes no further on its own.
HELD = "last_run_failed"
_BLOCKED = (
    Column(title="job", may_shrink=True),
    Column(title="since", is_number=True),
    Column(title="why not", may_shrink=True),
)


def _blocked(
    published: "Publication", is_meant: Callable[[str], bool]
) -> list[tuple[str, str, str]]:
    """Return the jobs whose main reason is meant, sorted by name, with since when and why."""
    main = {
        job_id: main_reason(blockers) for job_id, blockers in published.blockers.items() if blockers
    }
    rows = [
        (
            name_of(job_id, published.job_names.get(job_id, "")),
            age(reason.since, published.tick.at),
            short_reason(reason_of_waiting(reason_in_words(published.blockers[job_id]))),
        )
        for job_id, reason in main.items()
        if is_meant(reason.blocker)
    ]
    return sorted(rows, key=lambda row: row[0].lower())


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
    print_table(console, columns, rows[:ROWS])
    if len(rows) > ROWS:
        more = len(rows) - ROWS
        console.print(line((f"  and {more:,} more: python -m harness status --all", "dim")))
