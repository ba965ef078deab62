"""Shows where everything stands on one screen: what needs attention, what runs, what waits."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Console

from harness.cli.views.terminal import Cell, Column, line, print_table
from harness.inspect.attention import (
    CANNOT_BE_READ,
    Job,
    began,
    jobs_of,
    names_of,
    problem_of,
    waits,
    words_of,
)
from harness.inspect.status import OLD_AFTER_SECONDS, Status
from harness.inspect.tick_summary import name_of
from harness.platform.format import age, count, instant

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
#: As much of a message as two or three lines hold.
_MESSAGE_LENGTH = 160


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
        self._section(
            ("needs attention", "bold red"),
            ("job", "what", "since", "why"),
            [
                (*row[:-1], self._cut(row[-1]))
                for row in (
                    *self._rows_of_attention(),
                    *self._rows_of_unreadable(),
                    *self._rows_of_triggers(),
                )
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
            ("recently released", "bold yellow"),
            ("job", "run", "since", "why"),
            [*self._rows_of_discarded()],
        )

    def _show_head(self) -> None:
        now = self._status.now
        running = sum(job.run is not None and job.run.is_open for job in self._jobs)
        failed = sum(job.run is not None and job.run.holds_job for job in self._jobs)
        summary = [count(len(self._jobs), "job")]
        summary += [f"{failed} failed"] if failed else []
        summary += [f"{running} running"] if running else []
        self._print((", ".join(summary), "bold"), "   ", self._last_change())
        holder, ticked = self._status.holder, self._status.last_tick_at
        if holder:
            since = age(holder.since, now)
            self._print((f"`{holder.command}` is at work, since {since} (pid {holder.pid})", "dim"))
        elif ticked and (now - ticked).total_seconds() > OLD_AFTER_SECONDS:
            self._print(
                (f"no tick for {age(ticked, now)}: this is how things stood then", "yellow")
            )

    def _last_change(self) -> Cell:
        decision, now = self._status.decision, self._status.now
        if decision is None:
            return "no tick has decided anything yet: python -m harness tick", "yellow"
        when = f"{age(decision.tick_at, now)} ago, at {instant(decision.tick_at, now)}"
        return f"last change {when} (tick {decision.tick_number})", "dim"

    def _rows_of_attention(self) -> Iterator[tuple[str, Cell, str, str]]:
        now = self._status.now
        for job in self._jobs:
            problem = problem_of(job.run, self._status) if job.run else None
            if problem:
                style = "red" if problem.is_bad else "yellow"
                yield job.name, (problem.what, style), age(problem.since, now), problem.why

    def _rows_of_unreadable(self) -> Iterator[tuple[str, Cell, str, str]]:
        """Return one row per upstream that cannot be read, with the jobs that wait for it."""
        waiting: dict[str, list[tuple[datetime | None, str]]] = {}
        for job in self._jobs:
            for each in job.reasons.blockers if job.reasons else ():
                if CANNOT_BE_READ in each.reason:
                    why = each.reason.split(CANNOT_BE_READ, 1)[1]
                    waiting.setdefault(why, []).append((each.since, job.name))
        for why, jobs in waiting.items():
            since = min((at for at, _ in jobs if at), default=None)
            more = f" +{len(jobs) - 1}" if len(jobs) > 1 else ""
            yield self._unreadable(jobs[0][1] + more, since, why)
        names = names_of((each.upstream_id for each in self._status.failing), self._status.failing)
        for failing in self._status.failing:
            # No job waits for it, or none is known yet.
            if failing.reason not in waiting:
                name = names[failing.upstream_id]
                yield self._unreadable(f"({name})", failing.since, failing.reason)

    def _rows_of_triggers(self) -> Iterator[tuple[str, Cell, str, str]]:
        """Return one row per trigger that cannot be evaluated and that no job waits for."""
        reasons = [
            each.reason for job in self._jobs if job.reasons for each in job.reasons.blockers
        ]
        for each in self._status.failing_triggers:
            if not any(reason.endswith(CANNOT_BE_READ + each.reason) for reason in reasons):
                since = age(each.since, self._status.now)
                yield f"({each.trigger_id})", ("trigger", "red"), since, each.reason

    def _unreadable(self, who: str, since: datetime | None, why: str) -> tuple[str, Cell, str, str]:
        now = self._status.now
        tries = [each.next_probe(now) for each in self._status.failing if each.reason == why]
        later = [at for at in tries if at is not None]
        when = ""
        if len(later) < len(tries):
            when = "tried again by the next tick; "
        elif later:
            when = f"next try {instant(min(later), now)}; "
        # In front: a long reason is cut.
        return who, ("unreadable", "red"), age(since, now), when + why

    def _rows_of_running(self) -> Iterator[tuple[str, Cell, str, str]]:
        now = self._status.now
        for job in self._jobs:
            run = job.run
            if run and run.is_open and problem_of(run, self._status) is None:
                payload = count(run.event_count, "event")
                if waits(run):
                    payload += f", {words_of(run)} for {age(run.recorded_at, now)}"
                yield job.name, str(run.run_id or "its own"), age(began(run), now), payload

    def _rows_of_quarantined(self) -> Iterator[tuple[str, str, str]]:
        for each in self._status.quarantined:
            yield each.name, age(each.since, self._status.now), self._cut(each.reason)

    def _rows_of_discarded(self) -> Iterator[tuple[str, str, str, str]]:
        for run in self._status.discarded:
            since = age(run.recorded_at, self._status.now)
            name = name_of(run.job_id, run.job_name)
            yield name, str(run.run_id or "-"), since, self._cut(run.message or "")

    def _show_waiting(self) -> None:
        waiting = [job for job in self._jobs if job.blocker in _WAITING and not _is_reported(job)]
        order = list(_WAITING)
        late = datetime.max.replace(tzinfo=self._status.now.tzinfo)
        waiting.sort(key=lambda job: (order.index(job.blocker), job.since or late, job.name))
        counts = {name: sum(job.blocker == name for job in waiting) for name in order}
        summary = [f"{number} {_WAITING[name]}" for name, number in counts.items() if number]
        self._section(
            ("waiting", "bold yellow"),
            ("job", "since", "why not"),
            [(job.name, age(job.since, self._status.now), job.why) for job in waiting],
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
        wraps = "why" in columns
        self._lines -= (2 * shown if wraps else shown) + 3

    def _cut(self, why: str) -> str:
        """Leave the beginning of a long message, which states its subject."""
        first = why.strip().split("\n", 1)[0]
        is_short = self._is_complete or len(first) <= _MESSAGE_LENGTH
        return first if is_short else first[:_MESSAGE_LENGTH] + "…"

    def _print(self, *parts: Cell) -> None:
        self._console.print(line(*parts), soft_wrap=True)


def _column(name: str, is_complete: bool) -> Column:
    return Column(
        title=name,
        is_number=name in {"since", "for", "payload"},
        may_shrink=name == "job" or (name == "why not" and not is_complete),
        may_wrap=name == "why" or (name == "why not" and is_complete),
    )


def _is_reported(job: Job) -> bool:
    """Return whether the page already shows why the job does not start."""
    has_run = job.run is not None and (job.run.holds_job or job.run.is_open)
    return has_run or CANNOT_BE_READ in job.why
