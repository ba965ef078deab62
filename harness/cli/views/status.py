"""Shows where everything stands on one screen: what needs attention, what runs, what waits."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Console

from harness.cli.views.terminal import Cell, Column, print_sentence, print_table
from harness.cli.views.words import remedy_of_held, short_reason, short_run_id
from harness.controls.findings import WITHOUT_ROWS
from harness.inspect.attention import (
    CANNOT_BE_READ,
    Job,
    began,
    jobs_of,
    names_of,
    problem_of,
    reason_beside,
    waits,
    words_of,
)
from harness.inspect.status import OLD_AFTER_SECONDS, Status
from harness.inspect.tick_summary import name_of
from harness.platform.format import age, count, instant
from harness.platform.text import first_line

#: A screen has so many lines at least; a taller one is not filled to its end.
_LINES_MIN, _LINES_MAX = 24, 40
#: The head, the headings, and the line for the next command.
_LINES_FOR_FRAME = 9

#: Reasons for which jobs wait, in the order in which they are shown, and their short names.
_WAITING: Mapping[str, str] = {
    "over_start_limit": "ready, over the limit of starts",
    "required_row_paused": "behind a PAUSED row",
    "waiting_for_required_event": "waiting for an event",
    "nothing_new": "with nothing new",
    "job_paused": "paused",
    "on_own_schedule": "on their own schedule",
}


class Page:
    """The status as a page.

    Args:
        console: Where it is shown.
        status: What is shown.
        every_job: Show every job, however long the page gets.
    """

    def __init__(self, console: Console, status: Status, *, every_job: bool) -> None:
        self._console = console
        self._status = status
        self._jobs = jobs_of(status)
        self._is_complete = every_job
        height = min(max(console.height, _LINES_MIN), _LINES_MAX)
        self._lines = height - _LINES_FOR_FRAME

    def show(self) -> None:
        """Print the page."""
        self._show_head()
        self._show_held()
        self._section(
            ("needs attention", "bold yellow"),
            ("what", "name", "since", "next try", "why"),
            [
                *self._rows_of_attention(),
                *self._rows_of_unreadable(),
                *self._rows_of_triggers(),
            ],
        )
        self._section(
            ("running", "bold green"), ("job", "run", "for", "payload"), [*self._rows_of_running()]
        )
        self._section(
            ("quarantined", "bold red"),
            ("what", "since", "why"),
            [*self._rows_of_quarantined()],
        )
        self._show_waiting()
        self._section(
            ("recently released", "bold"),
            ("job", "run", "since", "why"),
            [*self._rows_of_discarded()],
        )

    def _show_head(self) -> None:
        now = self._status.now
        running = sum(job.run is not None and job.run.is_open for job in self._jobs)
        failed = sum(job.run is not None and job.run.holds_job for job in self._jobs)
        summary = [count(len(self._jobs), "job")]
        summary += [f"{failed} held"] if failed else []
        summary += [f"{running} running"] if running else []
        self._print((", ".join(summary), "bold"))
        self._print(self._last_change())
        holder, ticked = self._status.holder, self._status.last_tick_at
        if holder:
            since = age(holder.since, now)
            at_work = f"`{holder.command}` has been at work for {since} (pid {holder.pid})"
            self._print((at_work, "dim"))
        elif ticked and (now - ticked).total_seconds() > OLD_AFTER_SECONDS:
            self._print(
                (f"no tick for {age(ticked, now)}: this is how things stood then", "yellow")
            )

    def _last_change(self) -> Cell:
        decision, now = self._status.decision, self._status.now
        if not self._jobs:
            return WITHOUT_ROWS, "yellow"
        if decision is None:
            return "no tick has decided anything yet: python -m harness tick", "yellow"
        when = f"{age(decision.tick_at, now)} ago, at {instant(decision.tick_at, now)}"
        return f"last change {when} (tick {decision.tick_number})", "dim"

    def _show_held(self) -> None:
        """List the jobs that go no further on their own, and the commands that help."""
        problems = [(job, problem_of(job.run, self._status)) for job in self._jobs if job.run]
        held = [(job.name, problem) for job, problem in problems if problem and problem.is_bad]
        now = self._status.now
        rows: list[Sequence[Cell]] = [
            ((name, "red"), each.what, age(each.since, now), self._short(each.why))
            for name, each in held
        ]
        self._section(("held", "bold red"), ("job", "outcome", "since", "why"), rows)
        if held:
            self._print((f"  {remedy_of_held([name for name, _ in held])}", "bold"))

    def _rows_of_attention(self) -> Iterator[Sequence[Cell]]:
        now = self._status.now
        for job in self._jobs:
            problem = problem_of(job.run, self._status) if job.run else None
            if problem and not problem.is_bad:
                since, why = age(problem.since, now), self._short(problem.why)
                yield (problem.what, "yellow"), job.name, since, "-", why

    def _rows_of_unreadable(self) -> Iterator[Sequence[Cell]]:
        """Return one row per upstream that cannot be read, with the jobs that wait for it."""
        waiting: dict[tuple[str, str], list[tuple[datetime | None, str]]] = {}
        for job in self._jobs:
            for each in job.reasons.blockers if job.reasons else ():
                head, cannot, why = each.reason.partition(CANNOT_BE_READ)
                if cannot:
                    name = head.rpartition(" ")[2]
                    waiting.setdefault((name, why), []).append((each.since, job.name))
        for (name, why), jobs in waiting.items():
            since = min((at for at, _ in jobs if at), default=None)
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            blocks = f" (blocks {jobs[0][1]}{more})"
            yield self._unreadable(name, since, why, blocks)
        names = names_of((each.upstream_id for each in self._status.failing), self._status.failing)
        reported = {why for _, why in waiting}
        for failing in self._status.failing:
            # No job waits for it, or none is known yet.
            if failing.reason not in reported:
                name = names[failing.upstream_id]
                yield self._unreadable(name, failing.since, failing.reason, "")

    def _rows_of_triggers(self) -> Iterator[Sequence[Cell]]:
        """Return one row per trigger that cannot be evaluated and that no job waits for."""
        reasons = [
            each.reason for job in self._jobs if job.reasons for each in job.reasons.blockers
        ]
        for each in self._status.failing_triggers:
            if not any(reason.endswith(CANNOT_BE_READ + each.reason) for reason in reasons):
                since = age(each.since, self._status.now)
                name = f"trigger {each.trigger_id}"
                yield ("unreadable", "yellow"), name, since, "-", self._short(each.reason)

    def _unreadable(
        self, name: str, since: datetime | None, why: str, blocks: str
    ) -> Sequence[Cell]:
        now = self._status.now
        tries = [each.next_probe(now) for each in self._status.failing if each.reason == why]
        later = [at for at in tries if at is not None]
        is_next = len(later) < len(tries) or not later
        when = "next tick" if is_next else instant(min(later), now)
        reason = self._short(reason_beside(name, why)) + blocks
        return ("unreadable", "yellow"), name, age(since, now), when, reason

    def _rows_of_running(self) -> Iterator[tuple[str, Cell, str, str]]:
        now = self._status.now
        for job in self._jobs:
            run = job.run
            if run and run.is_open and problem_of(run, self._status) is None:
                payload = count(run.event_count, "event")
                if waits(run):
                    payload += f", {words_of(run)} for {age(run.recorded_at, now)}"
                yield (
                    job.name,
                    short_run_id(run.run_id) if run.run_id else "its own",
                    age(began(run), now),
                    payload,
                )

    def _rows_of_quarantined(self) -> Iterator[tuple[str, str, str]]:
        for each in self._status.quarantined:
            yield each.name, age(each.since, self._status.now), self._short(each.reason)

    def _rows_of_discarded(self) -> Iterator[tuple[str, str, str, str]]:
        for run in self._status.discarded:
            since = age(run.recorded_at, self._status.now)
            name = name_of(run.job_id, run.job_name)
            yield name, short_run_id(run.run_id), since, self._short(run.message or "")

    def _show_waiting(self) -> None:
        waiting = [job for job in self._jobs if job.blocker in _WAITING and not _is_reported(job)]
        order = list(_WAITING)
        waiting.sort(key=lambda job: (job.blocker != "over_start_limit", job.name.lower()))
        counts = {name: sum(job.blocker == name for job in waiting) for name in order}
        summary = [f"{number} {_WAITING[name]}" for name, number in counts.items() if number]
        self._section(
            ("waiting", "bold"),
            ("job", "since", "why not"),
            [(job.name, age(job.since, self._status.now), self._short(job.why)) for job in waiting],
            summary=", ".join(summary),
        )

    def _section(
        self,
        title: tuple[str, str],
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        summary: str = "",
    ) -> None:
        if not rows:
            return
        text, style = title
        self._print((f"{text} {len(rows)}", style), (f"  {summary}" if summary else "", "dim"))
        shown = len(rows) if self._is_complete else min(len(rows), max(3, self._lines))
        shape = [_column(name, self._is_complete) for name in columns]
        print_table(self._console, shape, rows[:shown])
        if shown < len(rows):
            self._print((f"  and {len(rows) - shown:,} more: --all shows every job", "dim"))
        self._lines -= shown + 3

    def _short(self, why: str) -> str:
        """Return the first line of a message, which states its subject; the page has one line."""
        first = first_line(why, "")
        return first if self._is_complete else short_reason(first)

    def _print(self, *parts: Cell) -> None:
        print_sentence(self._console, *parts)


def _column(name: str, is_complete: bool) -> Column:
    is_prose = name in {"why", "why not"}
    return Column(
        title=name,
        is_number=name in {"since", "for", "payload"},
        may_shrink=name == "job" or (is_prose and not is_complete),
        may_wrap=is_prose and is_complete,
        keeps_end=name == "name",
    )


def _is_reported(job: Job) -> bool:
    """Return whether the page already shows why the job does not start."""
    has_run = job.run is not None and (job.run.holds_job or job.run.is_open)
    return has_run or CANNOT_BE_READ in job.why
