"""The decisions that people argue about: one job each, its past, and the expected outcome.

The events of a job's hard and soft dependencies, the state of its rows and the life of its runs
decide. A case's id is the rule as a sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.decisions.world import Dependency, Job, Range, Run

WAITING = "waiting_for_required_event"
PAUSED_ROW = "required_row_paused"
RUNNING = "run_in_progress"
FAILED = "last_run_failed"
BACKING_OFF = "backing_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job and what is expected: what its start consumes, or the names of its blockers."""

    sentence: str
    job: Job
    consumes: Mapping[str, Range] | None = None
    attempt: int = 1
    waits: Sequence[str] = ()


def hard(name: str, *events: int, **options: object) -> Dependency:
    """Return a hard dependency whose upstream had events in these ticks."""
    return Dependency(name=name, events=events, **options)  # type: ignore[arg-type]


def soft(name: str, *events: int, **options: object) -> Dependency:
    """Return a soft dependency whose upstream had events in these ticks."""
    return Dependency(name=name, events=events, flag="FALSE", **options)  # type: ignore[arg-type]


def ran(tick: int, ended: str | None, *later: tuple[int, str], **takes: Range) -> Run:
    """Return a run: intended, started in the same tick and, if so, ended five ticks later."""
    end = [(tick + 5, ended)] if ended else []
    return Run(tick=tick, takes=takes, steps=[(tick, "STARTED"), *end, *later])


_OK = "SUCCEEDED"
_BOTH_DONE = ran(10, _OK, a=(-1, 10), b=(-1, 10))

_CASES: Sequence[tuple[str, Sequence[Dependency], Sequence[Run], Mapping[str, Range] | list[str]]] = [
    # -- Hard and soft, as the rows of one job.
    ("both_hard_dependencies_new_fires", [hard("a", 60), hard("b", 61)], [], {"a": (-1, 60), "b": (-1, 61)}),
    ("one_hard_dependency_of_two_new_waits", [hard("a", 60), hard("b")], [], [WAITING]),
    ("one_new_and_its_hard_sibling_completed_waits", [hard("a", 10, 60), hard("b", 10)], [_BOTH_DONE], [WAITING]),
    (
        "a_soft_event_alone_waits_when_both_hard_ones_are_completed",
        [hard("a", 10), hard("b", 10), soft("c", 60)],
        [_BOTH_DONE],
        [WAITING, WAITING],
    ),
    ("a_soft_event_alone_waits_when_the_hard_one_was_never_seen", [hard("a"), soft("c", 60)], [], [WAITING]),
    (
        "a_soft_event_alone_waits_while_the_hard_one_is_in_progress",
        [hard("a", 10), soft("c", 60)],
        [ran(10, None, a=(-1, 10))],
        [RUNNING, WAITING],
    ),
    ("only_a_soft_dependency_with_an_event_fires", [soft("c", 60)], [], {"c": (-1, 60)}),
    ("one_of_two_soft_dependencies_with_an_event_fires", [soft("c", 60), soft("d")], [], {"c": (-1, 60)}),
    ("only_soft_dependencies_without_an_event_wait", [soft("c"), soft("d")], [], ["nothing_new"]),
    ("a_hard_event_fires_without_a_soft_one", [hard("a", 60), soft("c")], [], {"a": (-1, 60)}),
    ("a_soft_event_is_consumed_with_the_hard_one", [hard("a", 60), soft("c", 40)], [], {"a": (-1, 60), "c": (-1, 40)}),
    # -- Paused rows.
    (
        "a_hard_dependency_new_and_its_hard_sibling_paused_is_blocked_with_that_reason",
        [hard("a", 10, 60), hard("b", 10, state="PAUSED")],
        [_BOTH_DONE],
        [PAUSED_ROW],
    ),
    ("a_paused_hard_row_with_an_event_blocks_as_well", [hard("a", 60), hard("b", 60, state="PAUSED")], [], [PAUSED_ROW]),
    ("a_paused_soft_row_is_ignored_and_keeps_its_event", [hard("a", 60), soft("c", 60, state="PAUSED")], [], {"a": (-1, 60)}),
    ("a_job_whose_rows_are_all_paused_is_paused", [hard("a", 60, state="PAUSED"), soft("c", 60, state="PAUSED")], [], ["job_paused"]),
    # -- How the row is written.
    ("a_source_written_in_capitals_is_the_same_source", [hard("a", 60, source="KAFKA")], [], {"a": (-1, 60)}),
    ("a_padded_flag_on_a_row_without_an_event_does_not_fire", [Dependency(name="a", flag="TRUE "), soft("c", 60)], [], [WAITING]),
    ("a_padded_flag_on_a_row_with_an_event_fires", [Dependency(name="a", flag=" true ", events=[60])], [], {"a": (-1, 60)}),
    ("an_empty_flag_is_hard", [Dependency(name="a", flag=""), soft("c", 60)], [], [WAITING]),
    ("a_small_false_is_soft", [Dependency(name="a", flag="false "), soft("c", 60)], [], {"c": (-1, 60)}),
    ("a_state_in_small_letters_pauses", [hard("a", 60, state=" paused ")], [], ["job_paused"]),
    # -- What is consumed.
    ("an_event_that_a_run_took_does_not_fire_again", [hard("a", 10)], [ran(10, _OK, a=(-1, 10))], [WAITING]),
    ("an_event_after_the_run_fires_again", [hard("a", 10, 60)], [ran(10, _OK, a=(-1, 10))], {"a": (10, 60)}),
    ("all_events_since_the_last_run_are_consumed_at_once", [hard("a", 10, 20, 45, 60)], [ran(10, _OK, a=(-1, 10))], {"a": (10, 60)}),
    ("an_event_that_came_while_the_run_went_on_fires_the_next", [hard("a", 48, 51)], [ran(48, _OK, a=(-1, 48))], {"a": (48, 51)}),
    ("what_other_jobs_consumed_is_theirs", [hard("shared_a", 47)], [], {"shared_a": (-1, 47)}),
    ("what_this_job_consumed_is_its_own", [hard("shared_a", 47)], [ran(60, _OK, shared_a=(-1, 47))], [WAITING]),
    ("an_upstream_put_back_goes_on_where_it_was", [hard("a", 10, 60)], [ran(10, _OK, a=(-1, 10))], {"a": (10, 60)}),
    # -- Runs that go on, or ended badly.
    ("a_run_that_goes_on_blocks_although_all_is_new", [hard("a", 10, 60)], [ran(10, None, a=(-1, 10))], [RUNNING]),
    (
        "a_start_without_an_answer_blocks",
        [hard("a", 60, 61)],
        [Run(tick=60, takes={"a": (-1, 60)})],
        [RUNNING],
    ),
    (
        "a_run_goes_on_blocking_when_its_dependency_has_left_the_controls",
        [hard("a", 60), hard("gone", 10, in_controls=False)],
        [ran(10, None, gone=(-1, 10))],
        [RUNNING],
    ),
    *(
        (f"a_run_that_ended_as_{status.lower()}_holds_its_job", [hard("a", 10, 60)], [ran(10, status, a=(-1, 10))], [FAILED])
        for status in ("FAILED", "CANCELED", "TIMED_OUT", "SKIPPED", "LOST")
    ),
    (
        "a_start_that_was_refused_holds_its_job",
        [hard("a", 60, 61)],
        [Run(tick=60, takes={"a": (-1, 60)}, steps=[(60, "REFUSED")])],
        [FAILED],
    ),
    (
        "a_start_of_which_nobody_can_say_whether_it_runs_holds_its_job",
        [hard("a", 60, 61)],
        [Run(tick=60, takes={"a": (-1, 60)}, steps=[(60, "PARKED")])],
        [FAILED],
    ),
    ("a_failed_job_without_news_tells_both_reasons", [hard("a", 10)], [ran(10, "FAILED", a=(-1, 10))], [FAILED, WAITING]),
    (
        "a_success_that_somebody_else_started_releases_the_job",
        [hard("a", 10, 60)],
        [ran(10, "FAILED", (55, "SUCCEEDED_ELSEWHERE"), a=(-1, 10))],
        {"a": (10, 60)},
    ),
    (
        "a_release_does_not_bring_the_failed_events_back",
        [hard("a", 10)],
        [ran(10, "FAILED", (55, "SUCCEEDED_ELSEWHERE"), a=(-1, 10))],
        [WAITING],
    ),
    (
        "what_an_operator_gave_up_holds_nothing_and_what_came_since_starts_the_job",
        [hard("a", 10, 60), soft("c", 10)],
        [ran(10, "FAILED", (55, "RELEASED"), a=(-1, 10), c=(-1, 10))],
        {"a": (10, 60)},
    ),
    (
        "an_old_failure_before_a_success_holds_nothing",
        [hard("a", 10, 30, 60)],
        [
            ran(10, "FAILED", (20, "SUCCEEDED_ELSEWHERE"), a=(-1, 10)),
            Run(tick=30, takes={"a": (10, 30)}, steps=[(30, "STARTED"), (35, _OK)], intent="second"),
        ],
        {"a": (30, 60)},
    ),
    # -- Probes that fail.
    ("an_event_found_before_the_look_failed_still_fires", [hard("a", 60, failed_at=70)], [], {"a": (-1, 60)}),
    ("a_failed_look_is_no_event", [hard("a", failed_at=70)], [], [WAITING]),
]  # fmt: skip


def retried(end: str) -> list[Run]:
    """Return a run that failed and its second attempt."""
    return [
        ran(10, "FAILED", (60, "RETRY_REQUESTED"), a=(-1, 10)),
        Run(tick=60, takes={"a": (-1, 10)}, steps=[(60, "STARTED"), (65, end)], attempt=2),
    ]


_RETRIES: Sequence[Case] = [
    Case(
        sentence="a_retry_takes_the_same_events_again_and_those_that_came_since",
        job=Job(
            job_id=901,
            dependencies=[hard("a", 10, 60), soft("c", 10)],
            runs=[ran(10, "FAILED", (70, "RETRY_REQUESTED"), a=(-1, 10), c=(-1, 10))],
        ),
        consumes={"a": (-1, 60), "c": (-1, 10)},
        attempt=2,
    ),
    Case(
        sentence="a_retry_that_failed_again_holds_its_job",
        job=Job(
            job_id=902,
            dependencies=[hard("a", 10)],
            runs=retried("FAILED"),
        ),
        waits=[FAILED, WAITING],
    ),
    Case(
        sentence="a_retry_that_succeeded_has_consumed_its_events",
        job=Job(
            job_id=903,
            dependencies=[hard("a", 10)],
            runs=retried(_OK),
        ),
        waits=[WAITING],
    ),
]

_POLICIES: Sequence[Case] = [
    *(
        Case(
            sentence=f"a_run_that_ended_{when}_backs_off_where_its_policy_allows_a_second_attempt",
            job=Job(
                job_id=job_id,
                dependencies=[hard("a", tick, 99)],
                runs=[ran(tick, "FAILED", a=(-1, tick))],
                max_attempts=2,
            ),
            waits=[BACKING_OFF],
        )
        for job_id, when, tick in ((911, "long_ago", 10), (912, "just_now", 60))
    ),
    Case(
        sentence="what_a_policy_wants_again_is_handed_the_failed_events_and_those_that_came_since",
        job=Job(
            job_id=913,
            dependencies=[hard("a", 10, 60), soft("c", 70)],
            runs=[ran(10, "FAILED", (70, "RETRY_REQUESTED"), a=(-1, 10))],
            max_attempts=2,
        ),
        consumes={"a": (-1, 60), "c": (-1, 70)},
        attempt=2,
    ),
    Case(
        sentence="the_last_attempt_that_a_policy_allows_holds_its_job_when_it_fails",
        job=Job(
            job_id=914,
            dependencies=[hard("a", 10)],
            runs=retried("FAILED"),
            max_attempts=2,
        ),
        waits=[FAILED, WAITING],
    ),
    Case(
        sentence="what_was_cancelled_holds_its_job_whatever_its_policy_allows",
        job=Job(
            job_id=915,
            dependencies=[hard("a", 10, 60)],
            runs=[ran(10, "CANCELED", a=(-1, 10))],
            max_attempts=5,
        ),
        waits=[FAILED],
    ),
]

CASES: Sequence[Case] = [
    *(
        Case(
            sentence=sentence,
            job=Job(job_id=number, dependencies=dependencies, runs=runs),
            consumes=expected if isinstance(expected, dict) else None,
            waits=expected if isinstance(expected, list) else (),
        )
        for number, (sentence, dependencies, runs, expected) in enumerate(_CASES, start=1)
    ),
    *_RETRIES,
    *_POLICIES,
]
