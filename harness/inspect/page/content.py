"""Turns what was read into what the report shows, as one object for the page's script.

Everything is a pure function over rows. Each text from outside goes through ``Texts``, which hides
secrets, makes invisible characters visible, and lists each text once. Instants are seconds after
the beginning of the report.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from harness.inspect.attention import Job as JobToday
from harness.inspect.attention import (
    began,
    jobs_of,
    names_of,
    problem_of,
    reason_beside,
    reason_of_waiting,
)
from harness.inspect.explain import verdict_of
from harness.inspect.page.layout import positions
from harness.inspect.page.models import Model, Source
from harness.inspect.page.read import Recorded
from harness.inspect.rhythm import Rhythm, rhythm_of
from harness.inspect.status import Status
from harness.platform.clock import instant_from
from harness.platform.format import upstream_name
from harness.platform.masking import masked
from harness.platform.text import escaped
from harness.store.queries import blocker_from
from harness.store.rows import Blocker, ProbeOutcome, Row, integer, text_or_none
from harness.store.work_lists import Upstream

#: A longer text is cut; the tables have the rest.
LONGEST_TEXT = 1_500
#: The bars of the chart of activity.
ACTIVITY_BARS = 84

#: Stands for a run's id in the address of its page.
RUN_MARK = "{run}"

Content = dict[str, object]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many rows of history the report has at most, over all jobs and upstreams."""

    runs: int = 8_000
    decisions: int = 10_000
    arrivals: int = 30_000
    events: int = 500

    def halved(self) -> "Budget":
        """Return one with half of everything."""
        return Budget(
            runs=self.runs // 2,
            decisions=self.decisions // 2,
            arrivals=self.arrivals // 2,
            events=self.events // 2,
        )


class Texts:
    """The texts of the report, each once, fit to be shown."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.shown: list[str] = []

    def __call__(self, text: str | None) -> int:
        """Return the number of a text."""
        raw = text or ""
        if raw not in self._numbers:
            self._numbers[raw] = len(self.shown)
            self.shown.append(fit(raw))
        return self._numbers[raw]


def fit(text: str) -> str:
    """Return a text from outside as it may be shown: no secret, nothing invisible, no novel."""
    # Cutting first could leave half of a secret, which nothing would recognize.
    shown = escaped(masked(text))
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 1] + "…"


def fair_share(counts: Iterable[int], budget: int) -> int:
    """Return how many rows each may keep, so that all together keep no more than the budget.

    Who has few rows keeps all of them, and what they leave is shared by the others.
    """
    ordered = sorted(counts)
    left = budget
    for number, count in enumerate(ordered):
        others = len(ordered) - number
        if count * others > left:
            return max(1, left // others)
        left -= count
    return max(ordered, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """New data of an upstream, as a tick found it."""

    at: datetime
    event_count: int
    has_gap: bool


def content_of(recorded: Recorded, *, version: str, budget: Budget) -> Content:
    """Return what the page's script shows.

    Args:
        recorded: The rows.
        version: The version of Heartbeat.
        budget: How much history there may be.
    """
    return _Report(recorded, budget).as_content(version)


class _Report:
    """Numbers the jobs and the upstreams, and makes the parts that refer to them."""

    def __init__(self, recorded: Recorded, budget: Budget) -> None:
        self._recorded = recorded
        self._status = recorded.status
        self._budget = budget
        self._texts = Texts()
        self._jobs = jobs_of(recorded.status)
        known = {job.job_id for job in self._jobs}
        self._controls = [row for row in recorded.controls if integer(row["job_id"]) in known]
        self._job_numbers = {job.job_id: number for number, job in enumerate(self._jobs)}
        ids = dict.fromkeys(str(row["upstream_id"]) for row in self._controls)
        self._upstream_ids = sorted(ids, key=lambda each: (upstream_name(each).lower(), each))
        self._upstream_numbers = {each: number for number, each in enumerate(self._upstream_ids)}

    def as_content(self, version: str) -> Content:
        """Return all parts."""
        status = self._status
        upstreams = [self._upstream(each) for each in self._upstream_ids]
        upstream_places, job_places = positions(
            sorted(self._edges), len(self._upstream_ids), len(self._jobs)
        )
        last_tick = status.last_tick_at
        return {
            "version": version,
            "origin": int(self._recorded.since.timestamp()),
            "now": self._at(status.now),
            "ticked": None if last_tick is None else self._at(last_tick),
            "decided": None if status.decision is None else self._at(status.decision.tick_at),
            "at_work": _at_work(status),
            "attention": self._attention(upstreams),
            "jobs": [
                self._job(job) | {"xy": place}
                for job, place in zip(self._jobs, job_places, strict=True)
            ],
            "upstreams": [
                upstream | {"xy": place}
                for upstream, place in zip(upstreams, upstream_places, strict=True)
            ],
            "activity": self._activity(),
            "events": self._events(),
            "models": [*map(self._model, self._recorded.models)],
            # The last: everything else adds to them.
            "texts": self._texts.shown,
        }

    def _model(self, model: Model) -> Content:
        return {
            "name": self._texts(model.name),
            "problem": self._texts(model.problem),
            "batches": [
                [
                    each.number,
                    self._texts(each.state),
                    self._at_or_none(each.received_at),
                    self._at_or_none(each.recorded_at),
                    each.row_count,
                    self._texts(each.message),
                ]
                for each in model.batches
            ],
            "sources": [
                [
                    self._texts(each.name),
                    each.partition_count,
                    self._at_or_none(each.taken_at),
                    self._at_or_none(self._newer_data_of(each)),
                    bool(self._upstreams_of(each)),
                    each.backlog and [each.backlog.count, self._texts(each.backlog.oldest)],
                ]
                for each in model.sources
            ],
        }

    def _newer_data_of(self, source: Source) -> datetime | None:
        """Return when a source had its newest event, if that was after the model took from it."""
        found = [self._latest(upstream_id) for upstream_id in self._upstreams_of(source)]
        latest = max((at for at in found if at is not None), default=None)
        is_newer = latest and (source.taken_at is None or latest > source.taken_at)
        return latest if is_newer else None

    def _upstreams_of(self, source: Source) -> list[str]:
        """Return the upstreams that sense a source by its name, with or without its catalog."""
        return [
            upstream_id
            for upstream_id, controls in self._controls_by_upstream.items()
            if f".{source.name}".endswith(f".{str(controls[0]['sensor_id']).lower()}")
        ]

    def _at(self, at: datetime) -> int:
        return round((at - self._recorded.since).total_seconds())

    def _at_or_none(self, at: object) -> int | None:
        instant = instant_from(at)
        return None if instant is None else self._at(instant)

    @cached_property
    def _edges(self) -> frozenset[tuple[int, int]]:
        return frozenset(
            (self._upstream_numbers[str(row["upstream_id"])], self._job_numbers[_job_id(row)])
            for row in self._controls
        )

    @cached_property
    def _controls_by_job(self) -> Mapping[int, Sequence[Row]]:
        return _grouped(self._controls, _job_id)

    @cached_property
    def _controls_by_upstream(self) -> Mapping[str, Sequence[Row]]:
        return _grouped(self._controls, lambda row: str(row["upstream_id"]))

    # Jobs

    def _job(self, job: JobToday) -> Content:
        controls = self._controls_by_job.get(job.job_id, ())
        blockers = job.reasons.blockers if job.reasons else None
        verdict = verdict_of(job.run, blockers, [row["job_state"] == "PAUSED" for row in controls])
        problem = problem_of(job.run, self._status) if job.run else None
        runs_on = job.run is not None and job.run.is_open
        since = began(job.run) if job.run and runs_on else job.since
        return {
            "id": str(job.job_id),
            "name": self._texts(job.name),
            "state": verdict.value,
            "why": self._texts(problem.why if problem else reason_of_waiting(job.why)),
            "since": self._at_or_none(problem.since if problem else since),
            "blocker": self._texts(job.blocker),
            "deps": [
                [
                    self._upstream_numbers[str(row["upstream_id"])],
                    int(str(row["dependency_flag"]) != "FALSE"),
                    int(row["job_state"] == "PAUSED"),
                    self._texts(text_or_none(row.get("asset_description"))),
                ]
                for row in sorted(controls, key=lambda row: str(row["dependency_flag"]) == "FALSE")
            ],
            "runs": [self._run(row) for row in self._runs.get(job.job_id, ())],
            "decisions": [self._decision(row) for row in self._decisions.get(job.job_id, ())],
            # Without a decision in the ledger's part that was read, these have held throughout.
            "now": None if blockers is None else [*map(self._blocker, blockers)],
        }

    @cached_property
    def _runs(self) -> Mapping[int, Sequence[Row]]:
        return _newest_of_each(self._recorded.runs, _job_id, self._budget.runs)

    @cached_property
    def _decisions(self) -> Mapping[int, Sequence[Row]]:
        return _newest_of_each(self._recorded.decisions, _job_id, self._budget.decisions)

    def _run(self, row: Row) -> list[object]:
        run_id = text_or_none(row["run_id"])
        consumed = self._recorded.consumed.get(str(row["intent_id"]), ())
        return [
            self._at_or_none(row["decided_at"]),
            self._at_or_none(row["started_at"]),
            self._at_or_none(row["ended_at"]),
            self._texts(str(row["run_status"])),
            run_id,
            integer(row["attempt"]),
            integer(row["event_count"]),
            self._texts(text_or_none(row["message"])),
            self._texts(_page_url(text_or_none(row["run_page_url"]), run_id)),
            sorted(
                self._upstream_numbers[each] for each in consumed if each in self._upstream_numbers
            ),
        ]

    def _decision(self, row: Row) -> list[object]:
        blockers = row["blockers"]
        assert isinstance(blockers, Sequence)
        return [
            self._at_or_none(row["recorded_at"]),
            *(self._blocker(blocker_from(each)) for each in blockers),
        ]

    def _blocker(self, blocker: Blocker) -> list[object]:
        return [
            self._texts(blocker.blocker),
            self._texts(reason_of_waiting(blocker.reason)),
            self._texts(blocker.waits_for),
            self._at_or_none(blocker.since),
        ]

    # Upstreams

    @cached_property
    def _arrivals(self) -> Mapping[str, Sequence[_Arrival]]:
        found: defaultdict[str, list[_Arrival]] = defaultdict(list)
        for row in self._recorded.probes:
            has_gap = row["outcome"] == ProbeOutcome.GAP
            if row["outcome"] == ProbeOutcome.FOUND or has_gap:
                arrival = _Arrival(
                    at=_instant(row["recorded_at"]),
                    event_count=self._recorded.found.get(_found_by(row), 0),
                    has_gap=has_gap,
                )
                found[str(row["upstream_id"])].append(arrival)
        return found

    @cached_property
    def _share_of_arrivals(self) -> int:
        return fair_share(map(len, self._arrivals.values()), self._budget.arrivals)

    @cached_property
    def _unreadable(self) -> Mapping[str, Sequence[tuple[datetime, datetime | None, str]]]:
        """Return from when until when each upstream could not be read, and why."""
        found: defaultdict[str, list[tuple[datetime, datetime | None, str]]] = defaultdict(list)
        for row in self._recorded.probes:
            spans = found[str(row["upstream_id"])]
            since = instant_from(row["failing_since"])
            if since is not None:
                if spans and spans[-1][0] == since:
                    spans.pop()
                spans.append((since, None, str(row["reason"])))
            elif spans and spans[-1][1] is None:
                first, _, reason = spans[-1]
                spans[-1] = first, _instant(row["recorded_at"]), reason
        return found

    @cached_property
    def _failing(self) -> Mapping[str, tuple[datetime, str]]:
        """Return since when each upstream or trigger cannot be read, and why."""
        status = self._status
        return {
            **{each.upstream_id: (each.since, each.reason) for each in status.failing},
            **{
                f"trigger:{each.trigger_id}": (each.since, each.reason)
                for each in status.failing_triggers
            },
        }

    @cached_property
    def _names(self) -> Mapping[str, str]:
        described = [_described(rows[0]) for rows in self._controls_by_upstream.values()]
        return names_of([*self._upstream_ids, *self._failing], [*described, *self._status.failing])

    def _upstream(self, upstream_id: str) -> Content:
        controls = self._controls_by_upstream[upstream_id]
        first = controls[0]
        arrivals = self._arrivals.get(upstream_id, ())
        rhythm = rhythm_of([each.at for each in arrivals])
        usual, late_after = self._limits(rhythm)
        latest = self._latest(upstream_id)
        failure = self._failing.get(upstream_id)
        shown = arrivals[-self._share_of_arrivals :]
        descriptions = (text_or_none(row.get("asset_description")) for row in controls)
        content: Content = {
            "name": self._texts(self._names[upstream_id]),
            "source": self._texts(str(first["sensor_source"])),
            "type": self._texts(text_or_none(first.get("sensor_read_type"))),
            "key": self._texts(text_or_none(first.get("upstream_key"))),
            "query": self._texts(text_or_none(first.get("preprocess_query"))),
            "about": self._texts(next((each for each in descriptions if each), "")),
            "latest": self._at_or_none(latest),
            "usual": usual and round(usual.total_seconds()),
            "late_after": late_after and round(late_after.total_seconds()),
            "arrivals": _differences(self._at(each.at) for each in shown),
            "counts": [each.event_count for each in shown],
            "gaps": [number for number, each in enumerate(shown) if each.has_gap],
            "unreadable": [
                [self._at(since), self._at_or_none(until), self._texts(reason)]
                for since, until, reason in self._unreadable.get(upstream_id, ())
            ],
        }
        state = "quiet" if latest is None else "ok"
        if all(row["job_state"] == "PAUSED" for row in controls):
            state = "paused"
        elif failure:
            state = "unreadable"
            why = reason_beside(upstream_name(upstream_id), failure[1])
            content |= {"why": self._texts(why), "since": self._at(failure[0])}
        elif late_after and latest and self._is_late(latest, late_after):
            state = "late"
        return content | {"state": state}

    def _latest(self, upstream_id: str) -> datetime | None:
        arrivals = self._arrivals.get(upstream_id, ())
        known = self._recorded.latest_event_at.get(upstream_id)
        return max((at for at in (known, *(each.at for each in arrivals[-1:])) if at), default=None)

    def _limits(self, rhythm: Rhythm | None) -> tuple[timedelta | None, timedelta | None]:
        """Return the usual gap of an upstream, and for how long it may be quiet, as alarms do."""
        if rhythm is None:
            return None, None
        return rhythm.usual_gap, rhythm.late_after(self._recorded.overdue_factor)

    def _is_late(self, latest: datetime, late_after: timedelta) -> bool:
        # Without a tick nothing is found, and no upstream is to blame.
        ticked = self._status.last_tick_at
        return (ticked or latest) - latest > late_after

    # What needs attention

    def _attention(self, upstreams: Sequence[Content]) -> list[Content]:
        """Return what needs a person: the bad first, then by time."""
        found = [*self._problems_of_jobs(), *self._problems_of_upstreams(upstreams)]
        for each in self._status.quarantined:
            found.append(
                {
                    "what": self._texts("quarantined"),
                    "subject": self._texts(each.name),
                    "why": self._texts(each.reason),
                    "since": self._at(each.since),
                    "bad": 1,
                }
            )
        return sorted(found, key=lambda each: (-integer(each["bad"]), integer(each["since"])))

    def _problems_of_jobs(self) -> Iterable[Content]:
        for number, job in enumerate(self._jobs):
            problem = problem_of(job.run, self._status) if job.run else None
            if problem:
                yield {
                    "job": number,
                    "what": self._texts(problem.what),
                    "why": self._texts(problem.why),
                    "since": self._at(problem.since),
                    "bad": int(problem.is_bad),
                }

    def _problems_of_upstreams(self, upstreams: Sequence[Content]) -> Iterable[Content]:
        for upstream_id, (since, reason) in self._failing.items():
            number = self._upstream_numbers.get(upstream_id)
            name = upstream_name(upstream_id)
            subject: Content = {"upstream": number}
            if number is None:
                subject = {"subject": self._texts(self._names[upstream_id])}
            yield subject | {
                "what": self._texts("unreadable"),
                "why": self._texts(reason_beside(name, reason)),
                "since": self._at(since),
                "bad": 1,
            }
        for number, upstream in enumerate(upstreams):
            if upstream["state"] == "late":
                due = integer(upstream["latest"]) + integer(upstream["late_after"])
                yield {
                    "upstream": number,
                    "what": self._texts("late"),
                    "since": due,
                    "bad": 0,
                }

    # Events and ticks

    def _events(self) -> list[list[object]]:
        """Return the newest events, newest first."""
        newest = sorted(
            self._recorded.events, key=lambda row: integer(row["event_ts"]), reverse=True
        )
        origin = self._recorded.since.timestamp()
        return [
            [
                round(integer(row["event_ts"]) / 1000 - origin),
                self._upstream_numbers.get(str(row["upstream_id"]), -1),
                self._texts(text_or_none(row["table"])),
                self._texts(_listed(row["partition"])),
                self._texts(str(row["operation_type"])),
                self._texts(text_or_none(row["snapshot_id"])),
                self._texts(_tags(row["tags"])),
            ]
            for row in newest[: self._budget.events]
        ]

    def _activity(self) -> Content:
        """Return events, starts and failed probes of equal stretches of time."""
        total = max(1.0, (self._status.now - self._recorded.since).total_seconds())
        step = total / ACTIVITY_BARS
        bars = {name: [0] * ACTIVITY_BARS for name in ("event", "started", "failed_look")}
        for row in self._recorded.ticks:
            at = (_instant(row["tick_at"]) - self._recorded.since).total_seconds()
            bar = min(ACTIVITY_BARS - 1, max(0, int(at / step)))
            for name, counts in bars.items():
                counts[bar] += integer(row[f"{name}_count"])
        return {
            "step": round(step),
            "events": bars["event"],
            "starts": bars["started"],
            "failed": bars["failed_look"],
        }


def _at_work(status: Status) -> str | None:
    """Return the command that holds the lock; most often a tick does, to write the report."""
    holder = status.holder
    return fit(holder.command) if holder and holder.command != "tick" else None


def _job_id(row: Row) -> int:
    return integer(row["job_id"])


def _instant(value: object) -> datetime:
    at = instant_from(value)
    assert at is not None
    return at


def _grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    grouped: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[key(row)].append(row)
    return grouped


def _newest_of_each(
    rows: Iterable[Row], key: Callable[[Row], Key], budget: int
) -> dict[Key, list[Row]]:
    """Return each one's newest rows, oldest first, as far as the budget goes."""
    grouped = _grouped(rows, key)
    share = fair_share(map(len, grouped.values()), budget)
    return {each: found[-share:] for each, found in grouped.items()}


def _described(row: Row) -> Upstream:
    """Return what distinguishes an upstream from others of its name; a trigger has only a name."""
    return Upstream(
        upstream_id=str(row["upstream_id"]),
        source=str(row["sensor_source"]),
        sensor_id=str(row["sensor_id"]),
        read_type=str(row.get("sensor_read_type") or ""),
        upstream_key=text_or_none(row.get("upstream_key")),
        preprocess_query=text_or_none(row.get("preprocess_query")),
    )


def _found_by(probe: Row) -> tuple[int, str]:
    return integer(probe["tick_number"]), str(probe["upstream_id"])


def _differences(instants: Iterable[int]) -> list[int]:
    """Return the first instant, and how much later than the one before each other one is."""
    before, found = 0, []
    for at in instants:
        found.append(at - before)
        before = at
    return found


def _page_url(url: str | None, run_id: str | None) -> str:
    """Return a run's page, if it is one of the web, with a mark for the id: few texts are kept."""
    if url is None or not url.lower().startswith(("https://", "http://")):
        return ""
    return url.replace(run_id, RUN_MARK) if run_id else url


def _listed(partition: object) -> str:
    return " / ".join(map(str, partition)) if isinstance(partition, Sequence) else ""


def _tags(tags: object) -> str:
    pairs = tags.items() if isinstance(tags, Mapping) else tags or ()
    assert isinstance(pairs, Iterable)
    return ", ".join(f"{name}={value}" for name, value in pairs)
