"""Summarizes for one job or upstream why it waits, and which problem needs a person."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from harness.config.model import Attention
from harness.inspect.tick_summary import main_reason, name_of, reason_in_words
from harness.platform.databricks.run_states import WAITING_WORDS
from harness.platform.format import upstream_name
from harness.settle.run_progress import NO_STATE, NOT_KNOWN
from harness.settle.unreachable_runs import Unreachable
from harness.store.queries import JobReasons, LastDecision, newest_by_job
from harness.store.rows import Blocker, Run, RunStatus, integer
from harness.store.work_lists import Upstream

if TYPE_CHECKING:
    from harness.inspect.status import Status
    from harness.sense.backoff import Failing

#: What the reason of a job has between an upstream's name and why it fails.
CANNOT_BE_READ = " cannot be read: "
#: Nearly every query begins with it.
_USUAL_START = re.compile(r"^select \* from sensor_new_data\b\s*", re.IGNORECASE)
#: The part of a query that distinguishes it from another one.
_QUERY_LENGTH = 60


#: What distinguishes one upstream from another of the same name.
Described: TypeAlias = "Upstream | Failing"


def names_of(upstream_ids: Iterable[str], upstreams: Iterable[Described]) -> dict[str, str]:
    """Name each upstream; those of one name, by what distinguishes them: source, key, query.

    Args:
        upstream_ids: The upstreams that are to be reported, side by side.
        upstreams: All that is known of upstreams; one that is missing is reported by its id.
    """
    known = {each.upstream_id: each for each in upstreams if each.source}
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for upstream_id in dict.fromkeys(upstream_ids):
        by_name[upstream_name(upstream_id)].append(upstream_id)
    names: dict[str, str] = {}
    for name, alike in by_name.items():
        found = [known[each] for each in alike if each in known]
        if len(alike) == 1:
            names[alike[0]] = name
        elif len(found) < len(alike):
            names.update({each: each for each in alike})
        else:
            names.update(_disambiguated(name, found))
    return names


def _disambiguated(name: str, upstreams: Sequence[Described]) -> dict[str, str]:
    aspects = [(_aspects(each), each.upstream_id) for each in upstreams]
    differing = [
        place
        for place in range(len(aspects[0][0]))
        if len({words[place] for words, _ in aspects}) > 1
    ]
    return {
        upstream_id: ", ".join([name, *(_cut(words[place]) for place in differing)])
        for words, upstream_id in aspects
    }


def _aspects(upstream: Described) -> tuple[str, ...]:
    query = " ".join((upstream.preprocess_query or "").split())
    return (
        upstream.source,
        upstream.read_type,
        f"key {upstream.upstream_key}" if upstream.upstream_key else "no key",
        (_USUAL_START.sub("", query) or "any new row") if query else "no query",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _QUERY_LENGTH else text[: _QUERY_LENGTH - 1] + "…"


def reason_beside(name: str, failure: str) -> str:
    """Return why a probe failed, as it may stand beside the upstream's name: without that name."""
    message = re.escape(name)
    reason = re.sub(
        rf"^(?:The(?: \w+){{1,2}}|\w+) {message} (?:cannot be sensed: )?", "", failure, count=1
    )
    # "the folder /data/orders does not exist" adds nothing to "the folder does not exist".
    end = r"(?=[\s,:;]|\.?$)"
    reason = re.sub(rf"\b(folder|table) {message}{end}", r"\1", reason)
    return re.sub(rf"(?:(?<=^)|(?<=\s)){message}{end}", "it", reason)


def reason_of_waiting(reason: str) -> str:
    """Return why a job waits, without an upstream's name in the second half as well."""
    head, cannot, why = reason.partition(CANNOT_BE_READ)
    return f"{head}{cannot}{reason_beside(head.rpartition(' ')[2], why)}" if cannot else reason


#: How long Databricks leaves a run in a queue.
QUEUE_HOURS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, as the page has it."""

    job_id: int
    name: str
    reasons: JobReasons | None
    run: Run | None

    @property
    def blocker(self) -> str:
        """The name of the reason that is reported; empty when the last decision had none."""
        reasons = self.reasons.blockers if self.reasons else ()
        return main_reason(reasons).blocker if reasons else ""

    @property
    def since(self) -> datetime | None:
        """Since when the reason that is reported has held, if it is known."""
        reasons = self.reasons.blockers if self.reasons else ()
        return main_reason(reasons).since if reasons else None

    @property
    def why(self) -> str:
        """The reason that is reported, without the words that every line would begin with."""
        reasons = self.reasons.blockers if self.reasons else ()
        message = reason_in_words(reasons) if reasons else ""
        return message.removeprefix("its hard dependency ")


def name_of_run(run: Run) -> str:
    """Name a run; one that the job began on its own may have no id."""
    return f"run {run.run_id}" if run.run_id else "its own run has not reported `processed`"


def began(run: Run) -> datetime:
    """Return when a run began, as far as it is known."""
    return run.started_at or run.decided_at


def jobs_of(status: "Status") -> list[Job]:
    """Return every job of the controls, by id."""
    runs = newest_by_job(status.runs)
    reasons = {job.job_id: job for job in (status.decision.jobs if status.decision else ())}
    # A job that only a trigger starts has no control row.
    names = {job_id: job.job_name for job_id, job in reasons.items()}
    names |= {
        integer(row["trigger_job_id"]): str(row["trigger_job_name"]) for row in status.control
    }
    return [
        Job(
            job_id=job_id,
            name=name_of(job_id, name),
            reasons=reasons.get(job_id),
            run=runs.get(job_id),
        )
        for job_id, name in sorted(names.items())
    ]


class ProblemKind(StrEnum):
    """What about a run needs a person, in one word."""

    #: Its job goes no further on its own.
    HELD = "held"
    #: It starts again automatically.
    RETRIES = "retries"
    #: What became of it is unknown.
    LOST = "lost"
    #: It waits or runs for long.
    LONG = "long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What about a run needs a person."""

    kind: ProblemKind
    what: str
    since: datetime
    why: str
    #: The job goes no further on its own.
    is_bad: bool = False


#: What a job waits for whose hard dependency has no unconsumed event.
EVENT_OF = "a new data-change event of "

_LOST = ProblemKind.LOST
#: How such a run ended could not be established.
_UNKNOWN_END = frozenset({RunStatus.LOST, RunStatus.PARKED})


def problem_of(run: Run, status: "Status") -> Problem | None:
    """Return what about a job's newest run needs a person; most often nothing."""
    if run.holds_job:
        what = run.run_status.value.lower().replace("_", " ")
        why, since = run.message or _without_a_word(run), run.ended_at or run.recorded_at
        retry = retry_of(run, blockers_of(run, status.decision))
        if retry is None:
            kind = ProblemKind.LOST if run.run_status in _UNKNOWN_END else ProblemKind.HELD
            return Problem(kind=kind, what=what, since=since, why=why, is_bad=True)
        # In front: a long reason is cut.
        why = f"attempt {run.attempt + 1} starts automatically from {instant_of(retry)} on; {why}"
        return Problem(kind=ProblemKind.RETRIES, what=what, since=since, why=why)
    if run.is_unanswered:
        why = run.message or "the Jobs API has not answered; every tick retries"
        return Problem(kind=_LOST, what="no answer", since=run.decided_at, why=why)
    if not run.is_open:
        return None
    return _unreachable(run, status) or _problem_of_open(run, status.now, status.attention)


def retry_of(run: Run, blockers: Sequence[Blocker] | None) -> Blocker | None:
    """Return the reason of a job whose run failed and starts again automatically; else nothing.

    Args:
        run: The newest run of the job.
        blockers: The job's in the newest decision, which may be about another run.
    """
    found = (each for each in blockers or () if each.blocker == "backing_off")
    return next((each for each in found if each.since == run.recorded_at), None)


def instant_of(retry: Blocker) -> str:
    """Return from when on a failed run may start again, as the decision has it."""
    return retry.waits_for.partition(" ")[0]


def blockers_of(run: Run, decision: LastDecision | None) -> Sequence[Blocker]:
    """Return the blockers of the run's job in the newest decision."""
    jobs = decision.jobs if decision else ()
    return next((job.blockers for job in jobs if job.job_id == run.job_id), ())


def is_over(minutes: float, since: datetime, now: datetime) -> bool:
    """Return whether more than so many minutes have passed."""
    return (now - since).total_seconds() > 60 * minutes


def unreachable_of(run: Run, unreachable: Unreachable | None) -> Unreachable | None:
    """Return since when this run has been unreachable; nothing if it was reached."""
    return unreachable if unreachable and run.is_open and unreachable.run_id == run.run_id else None


def _unreachable(run: Run, status: "Status") -> Problem | None:
    unreachable = unreachable_of(run, status.unreachable.get(run.job_id))
    if unreachable is None:
        return None
    if not is_over(status.attention.unasked_minutes, unreachable.since, status.now):
        return None
    why = f"the state of {name_of_run(run)} is unknown: {unreachable.reason}"
    return Problem(kind=_LOST, what="unreachable", since=unreachable.since, why=why)


def _problem_of_open(run: Run, now: datetime, attention: Attention) -> Problem | None:
    if run.message in (NOT_KNOWN, NO_STATE):
        why = f"{name_of_run(run)}: {run.message}"
        return Problem(kind=_LOST, what="unknown state", since=run.recorded_at, why=why)
    if waits(run):
        is_long = is_over(attention.queued_minutes, run.recorded_at, now)
        message = f" ({run.message})" if run.message else ""
        why = (
            f"{name_of_run(run)} waits{message}; Databricks cancels queued runs after "
            f"{QUEUE_HOURS} hours"
        )
        waiting = Problem(kind=ProblemKind.LONG, what=words_of(run), since=run.recorded_at, why=why)
        return waiting if is_long else None
    if words_of(run):
        message = f": {run.message}" if run.message else ""
        why = (
            f"{name_of_run(run)} has a state this version does not recognize "
            f"({words_of(run)}){message}"
        )
        return Problem(kind=_LOST, what="unknown state", since=run.recorded_at, why=why)
    if is_over(attention.running_minutes, began(run), now):
        what = "runs long"
        return Problem(kind=ProblemKind.LONG, what=what, since=began(run), why=name_of_run(run))
    return None


def waits(run: Run) -> bool:
    """Return whether a run was last seen waiting in a queue, or to be tried again."""
    return run.is_open and any(word in WAITING_WORDS for word in run.words)


def words_of(run: Run) -> str:
    """Return the Jobs API's words for a run, as far as they were worth a row."""
    return ", ".join(dict.fromkeys(word for word in run.words if word))


def waiting_for(jobs: Iterable[Job]) -> dict[str, tuple[str, ...]]:
    """Return by sensor id the names of the jobs that wait for an event of such an upstream."""
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        for waits_for in {each.waits_for for each in (job.reasons.blockers if job.reasons else ())}:
            if waits_for.startswith(EVENT_OF):
                waiting[waits_for.removeprefix(EVENT_OF)].append(job.name)
    return {sensor_id: tuple(names) for sensor_id, names in waiting.items()}


def _without_a_word(run: Run) -> str:
    if run.run_status is RunStatus.SKIPPED:
        return "too many runs went on at once"
    return f"run {run.run_id}" if run.run_id else "the Jobs API gave no reason"
