"""Lists what is to be reported when it begins to hold: one alarm for each problem of the status.

What is a problem is decided where `status` and `doctor` decide it; here each gets a rule, a subject
that stays the same while the problem holds, and one sentence.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from harness.config.observing import AlarmRule, Alarms
from harness.inspect.attention import (
    Job,
    ProblemKind,
    is_over,
    jobs_of,
    names_of,
    problem_of,
    reason_beside,
    waiting_for,
)
from harness.inspect.doctor.findings import Finding, Level
from harness.inspect.rhythm import Rhythm
from harness.inspect.status import Status
from harness.platform.clock import instant_from
from harness.platform.format import age, count, instant, iso, span, upstream_name
from harness.platform.masking import masked
from harness.platform.text import escaped
from harness.store.rows import Row, text_or_none

#: A job whose run starts again automatically is not held yet.
_RULES: Mapping[ProblemKind, AlarmRule] = {
    ProblemKind.HELD: AlarmRule.JOB_HELD,
    ProblemKind.LOST: AlarmRule.RUN_LOST,
    ProblemKind.LONG: AlarmRule.RUN_LONG,
}
#: As many names, and as much of a reason, as a message has room for.
_MOST_NAMED = 5
_LONGEST_REASON = 300

#: The names of the jobs that wait for an upstream, by its sensor id.
_Waiting = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One problem, as it is reported."""

    rule: AlarmRule
    #: A job's id, an upstream's, the name of a table; with the rule it identifies the problem.
    subject: str
    #: What is wrong with what, in a few words.
    what: str
    since: datetime
    why: str = ""
    #: The names of the jobs that wait because of it.
    blocks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identifies the problem while it holds."""
        return f"{self.rule}:{self.subject}"

    def sentence(self, now: datetime) -> str:
        """Return the alarm on one line, fit for a terminal and for any channel."""
        held = "" if self.since >= now else f" ({age(self.since, now)})"
        why = f": {self.why.rstrip('.')}" if self.why else ""
        return escaped(masked(f"{self.what}{held}{why}{_blocked(self.blocks)}"))

    def to_json(self) -> dict[str, object]:
        """Return what ``from_json`` reads, and what scripts get."""
        return asdict(self) | {"since": iso(self.since), "blocks": list(self.blocks)}

    @classmethod
    def from_json(cls, row: Row) -> "Alarm":
        """Read an alarm from JSON.

        Raises:
            ValueError: It is of a rule that does not exist, or has no instant.
        """
        since, blocks = instant_from(row["since"]), row["blocks"]
        if since is None or not isinstance(blocks, list):
            raise ValueError("this is not an alarm")
        return cls(
            rule=AlarmRule(str(row["rule"])),
            subject=str(row["subject"]),
            what=str(row["what"]),
            since=since,
            why=text_or_none(row["why"]) or "",
            blocks=tuple(map(str, blocks)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What those who watch have recorded beside the ledgers."""

    rhythms: Mapping[str, Rhythm] = field(default_factory=dict)
    #: The last tick that failed, unless one has succeeded since; and channels that fail.
    recorded: Sequence[Alarm] = ()


def alarms_of(status: Status, alarms: Alarms, seen: Seen) -> list[Alarm]:
    """Return every alarm that holds, by rule and name.

    Args:
        status: Where everything stands.
        alarms: The configuration.
        seen: What was recorded beside the ledgers.
    """
    jobs = jobs_of(status)
    waiting = waiting_for(jobs)
    found = [
        *_of_runs(jobs, status),
        *_of_failing(waiting, status, alarms.unreadable_minutes),
        *_of_overdue(waiting, status, alarms, seen.rhythms),
        *_of_quarantined(status),
        *seen.recorded,
    ]
    order = list(AlarmRule)
    by_key = {each.key: each for each in found}
    return sorted(by_key.values(), key=lambda each: (order.index(each.rule), each.what))


def alarm_of_ticks(status: Status, alarms: Alarms) -> Alarm | None:
    """Return the alarm that there was no tick for long; only another process can notice it."""
    ticked, now = status.last_tick_at, status.now
    if ticked is not None and not is_over(alarms.no_tick_minutes, ticked, now):
        return None
    return Alarm(
        rule=AlarmRule.NO_TICK,
        subject="",
        what="no tick" if ticked else "no tick yet",
        since=ticked or now,
        why=f"the last one was at {instant(ticked)}" if ticked else "",
    )


def alarms_of_tables(findings: Iterable[Finding], now: datetime) -> list[Alarm]:
    """Return the alarms of what `doctor` finds about the tables.

    Args:
        findings: All findings.
        now: Since when a finding holds is not known; it is reported from now on.
    """
    return [
        Alarm(
            rule=AlarmRule.LEDGER_GROWS,
            subject=each.about,
            what=f"table {each.about}" if each.level is Level.BROKEN else each.about,
            since=now,
            why=_cut(f"{each.what}; {each.todo}"),
        )
        for each in findings
        if each.level is not Level.OK
    ]


def check_line(status: Status, found: Sequence[Alarm]) -> str:
    """Return one line for a monitoring system.

    Args:
        status: Where everything stands.
        found: The alarms that hold.
    """
    jobs = count(len(jobs_of(status)), "job")
    ticked = status.last_tick_at
    if not found:
        return f"HEARTBEAT OK - {jobs}, last tick {age(ticked, status.now)} ago"
    listed = "; ".join(each.sentence(status.now) for each in found[:_MOST_NAMED])
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"HEARTBEAT CRITICAL - {count(len(found), 'alarm')}: {listed}{more}"


def check_as_json(status: Status, found: Sequence[Alarm]) -> dict[str, object]:
    """Return the same as one object for scripts."""
    ticked = status.last_tick_at
    return {
        "ok": not found,
        "alarms": [each.to_json() for each in found],
        "last_tick_at": ticked and iso(ticked),
    }


def _of_runs(jobs: Iterable[Job], status: Status) -> Iterator[Alarm]:
    for job in jobs:
        problem = problem_of(job.run, status) if job.run else None
        rule = _RULES.get(problem.kind) if problem else None
        if problem and rule:
            yield Alarm(
                rule=rule,
                subject=str(job.job_id),
                what=f"job {job.name}: {problem.what}",
                since=problem.since,
                why=_cut(problem.why),
            )


def _of_failing(waiting: _Waiting, status: Status, minutes: float) -> Iterator[Alarm]:
    names = names_of((each.upstream_id for each in status.failing), status.failing)
    for each in status.failing:
        if _is_at_least(minutes, each.since, status.now):
            name = upstream_name(each.upstream_id)
            yield Alarm(
                rule=AlarmRule.UPSTREAM_UNREADABLE,
                subject=each.upstream_id,
                what=f"upstream {names[each.upstream_id]} cannot be read",
                since=each.since,
                why=_cut(reason_beside(name, each.reason)),
                blocks=waiting.get(name, ()),
            )
    for trigger in status.failing_triggers:
        if _is_at_least(minutes, trigger.since, status.now):
            yield Alarm(
                rule=AlarmRule.UPSTREAM_UNREADABLE,
                subject=f"trigger:{trigger.trigger_id}",
                what=f"trigger {trigger.trigger_id} cannot be evaluated",
                since=trigger.since,
                why=_cut(trigger.reason),
            )


def _is_at_least(minutes: float, since: datetime, now: datetime) -> bool:
    return (now - since).total_seconds() >= 60 * minutes


def _of_overdue(
    waiting: _Waiting, status: Status, alarms: Alarms, rhythms: Mapping[str, Rhythm]
) -> Iterator[Alarm]:
    sensed, now = sensed_upstreams(status), status.now
    arrivals: dict[tuple[str, str], datetime] = {}
    for upstream_id, rhythm in rhythms.items():
        place = place_of(upstream_id)
        arrivals[place] = max(rhythm.last, arrivals.get(place, rhythm.last))
    expected = {
        (each.sensor_source.value, each.sensor_id.lower()): each for each in alarms.upstreams
    }
    for place, wanted in expected.items():
        last = arrivals.get(place)
        if place in sensed and last and now - last > wanted.interval:
            why = f"one is expected every {span(wanted.interval.total_seconds())}"
            yield _overdue(waiting, ":".join(place), wanted.sensor_id, last, why)
    for upstream_id, rhythm in rhythms.items():
        usual, place = rhythm.usual_gap, place_of(upstream_id)
        is_late = rhythm.is_late(now, alarms.overdue_factor)
        if usual and is_late and place in sensed and place not in expected:
            why = f"the usual gap is {span(usual.total_seconds())}"
            yield _overdue(waiting, upstream_id, upstream_name(upstream_id), rhythm.last, why)


def _overdue(waiting: _Waiting, subject: str, name: str, last: datetime, why: str) -> Alarm:
    return Alarm(
        rule=AlarmRule.UPSTREAM_OVERDUE,
        subject=subject,
        what=f"upstream {name} has had no event",
        since=last,
        why=why,
        blocks=waiting.get(name, ()),
    )


def sensed_upstreams(status: Status) -> set[tuple[str, str]]:
    """Return source and id, in lower case, of each upstream that an unpaused row needs."""
    return {
        (str(row["sensor_source"]).strip().lower(), str(row["sensor_id"]).strip().lower())
        for row in status.control
        if str(row["job_state"]).strip().lower() == "unpaused"
    }


def place_of(upstream_id: str) -> tuple[str, str]:
    """Return source and sensor id of an upstream, in lower case."""
    return upstream_id.partition(":")[0].lower(), upstream_name(upstream_id).lower()


def _of_quarantined(status: Status) -> Iterator[Alarm]:
    for each in status.quarantined:
        yield Alarm(
            rule=AlarmRule.QUARANTINED,
            # Several sentences may be about one file.
            subject=f"{Path(each.path).name}:{each.reason}"[:_LONGEST_REASON],
            what=f"{each.name} is quarantined",
            since=each.since,
            why=_cut(each.reason),
        )


def _blocked(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"; waiting: {', '.join(names[:_MOST_NAMED])}{more}"


def _cut(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= _LONGEST_REASON else first[: _LONGEST_REASON - 1] + "…"
