"""Reads the two vocabularies in which the Jobs API reports a run's state and its result.

``state`` is the older one (life cycle and result), ``status`` the newer one (state and termination
code). Either may be missing, and either may hold a word that is newer than this module: such a word
is kept as it came and never guessed into a success.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from harness.platform.databricks.api import Outcome, RunReport
from harness.platform.masking import masked
from harness.platform.text import storable

#: A run in one of these is over; TERMINATING is not among them, its result is still open.
TERMINAL_LIFE_CYCLES = frozenset({"TERMINATED", "SKIPPED", "INTERNAL_ERROR"})
TERMINAL_STATES = frozenset({"TERMINATED"})

ACTIVE_LIFE_CYCLES = frozenset(
    {"QUEUED", "PENDING", "BLOCKED", "WAITING_FOR_RETRY", "RUNNING", "TERMINATING"}
)
ACTIVE_STATES = frozenset({"QUEUED", "PENDING", "BLOCKED", "WAITING", "RUNNING", "TERMINATING"})

#: A run in one of these is not at work: it waits for its turn, for another run, or to try again.
WAITING_WORDS = frozenset({"QUEUED", "BLOCKED", "WAITING_FOR_RETRY", "WAITING"})

#: Some tasks of the run failed, yet the run itself was completed; see ``outcome_of``.
PARTIAL_SUCCESS = "SUCCESS_WITH_FAILURES"

OUTCOME_OF_RESULT: Mapping[str, Outcome] = {
    "SUCCESS": Outcome.SUCCEEDED,
    "FAILED": Outcome.FAILED,
    "TIMEDOUT": Outcome.TIMED_OUT,
    "CANCELED": Outcome.CANCELED,
    "MAXIMUM_CONCURRENT_RUNS_REACHED": Outcome.SKIPPED,
    "EXCLUDED": Outcome.SKIPPED,
    "DISABLED": Outcome.SKIPPED,
    "UPSTREAM_FAILED": Outcome.FAILED,
    "UPSTREAM_CANCELED": Outcome.CANCELED,
}

OUTCOME_OF_CODE: Mapping[str, Outcome] = {
    "SUCCESS": Outcome.SUCCEEDED,
    "USER_CANCELED": Outcome.CANCELED,
    "CANCELED": Outcome.CANCELED,
    "SKIPPED": Outcome.SKIPPED,
    "DISABLED": Outcome.SKIPPED,
    "MAX_CONCURRENT_RUNS_EXCEEDED": Outcome.SKIPPED,
    "MAX_JOB_QUEUE_SIZE_EXCEEDED": Outcome.SKIPPED,
    "BREAKING_CHANGE": Outcome.FAILED,
    "BUDGET_POLICY_LIMIT_EXCEEDED": Outcome.FAILED,
    "CLOUD_FAILURE": Outcome.FAILED,
    "CLUSTER_ERROR": Outcome.FAILED,
    "CLUSTER_REQUEST_LIMIT_EXCEEDED": Outcome.FAILED,
    "CLUSTER_TERMINATED_BY_USER": Outcome.FAILED,
    "DRIVER_ERROR": Outcome.FAILED,
    "FEATURE_DISABLED": Outcome.FAILED,
    "INTERNAL_ERROR": Outcome.FAILED,
    "INVALID_CLUSTER_REQUEST": Outcome.FAILED,
    "INVALID_RUN_CONFIGURATION": Outcome.FAILED,
    "LIBRARY_INSTALLATION_ERROR": Outcome.FAILED,
    "MAX_SPARK_CONTEXTS_EXCEEDED": Outcome.FAILED,
    "REPOSITORY_CHECKOUT_FAILED": Outcome.FAILED,
    "RESOURCE_NOT_FOUND": Outcome.FAILED,
    "RUN_EXECUTION_ERROR": Outcome.FAILED,
    "STORAGE_ACCESS_ERROR": Outcome.FAILED,
    "UNAUTHORIZED_ERROR": Outcome.FAILED,
    "WORKSPACE_RUN_LIMIT_EXCEEDED": Outcome.FAILED,
}

#: A termination of one of these types failed, whatever its code.
FAILING_TYPES = frozenset({"INTERNAL_ERROR", "CLIENT_ERROR", "CLOUD_FAILURE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWords:
    """What the API reports of one run, in its own words."""

    life_cycle_state: str | None = None
    result_state: str | None = None
    state: str | None = None
    termination_code: str | None = None
    termination_type: str | None = None
    message: str | None = None

    @property
    def is_over(self) -> bool:
        """Return whether either vocabulary reports that the run is over."""
        return self.life_cycle_state in TERMINAL_LIFE_CYCLES or self.state in TERMINAL_STATES


def outcome_of(words: RunWords, *, partial_success: Outcome = Outcome.SUCCEEDED) -> Outcome | None:
    """Report how a run ended; ``None`` while it goes on or while its words are not known.

    Where the two vocabularies contradict each other, the one that reports no success prevails.

    Args:
        words: The run in the API's words.
        partial_success: What ``SUCCESS_WITH_FAILURES`` counts as. Databricks completes such a run
            and starts what depends on it, so it is a success unless the operator sets it otherwise.
    """
    if not words.is_over:
        return None
    reported = [
        outcome
        for outcome in (
            _lookup(OUTCOME_OF_RESULT, words.result_state, partial_success),
            _outcome_of_life_cycle(words.life_cycle_state),
            _outcome_of_termination(words, partial_success),
        )
        if outcome is not None
    ]
    unsuccessful = [outcome for outcome in reported if outcome is not Outcome.SUCCEEDED]
    if unsuccessful:
        return unsuccessful[0]
    if reported and not _has_unknown_result(words):
        return Outcome.SUCCEEDED
    return None


def is_over(report: RunReport) -> bool:
    """Return whether either vocabulary reports that the run is over."""
    return report.life_cycle_state in TERMINAL_LIFE_CYCLES or report.state in TERMINAL_STATES


def is_waiting(report: RunReport) -> bool:
    """Return whether the run waits in a queue, or to be tried again."""
    return report.life_cycle_state in WAITING_WORDS or report.state in WAITING_WORDS


def is_understood(report: RunReport) -> bool:
    """Return whether it is clear from known words that the run goes on, or how it ended."""
    known_life_cycles = ACTIVE_LIFE_CYCLES | TERMINAL_LIFE_CYCLES | {None}
    known_states = ACTIVE_STATES | TERMINAL_STATES | {None}
    has_no_state = report.life_cycle_state is None and report.state is None
    are_known = report.life_cycle_state in known_life_cycles and report.state in known_states
    return are_known and not has_no_state and (report.outcome is not None or not is_over(report))


def _outcome_of_life_cycle(life_cycle_state: str | None) -> Outcome | None:
    match life_cycle_state:
        case "SKIPPED":
            return Outcome.SKIPPED
        case "INTERNAL_ERROR":
            return Outcome.FAILED
        case _:
            return None


def _outcome_of_termination(words: RunWords, partial_success: Outcome) -> Outcome | None:
    outcome = _lookup(OUTCOME_OF_CODE, words.termination_code, partial_success)
    if outcome is None and words.termination_type in FAILING_TYPES:
        return Outcome.FAILED
    return outcome


def _lookup(table: Mapping[str, Outcome], word: str | None, partial: Outcome) -> Outcome | None:
    if word == PARTIAL_SUCCESS:
        return partial
    return table.get(word) if word is not None else None


def _has_unknown_result(words: RunWords) -> bool:
    """A success of one vocabulary does not stand beside a word of the other that is unknown."""
    result, code = words.result_state, words.termination_code
    known_results = OUTCOME_OF_RESULT.keys() | {PARTIAL_SUCCESS, None}
    known_codes = OUTCOME_OF_CODE.keys() | {PARTIAL_SUCCESS, None}
    return result not in known_results or code not in known_codes


def words_of(run: Mapping[str, object]) -> RunWords:
    """Pick a run's words out of the API's JSON; what is missing or no text is ``None``."""
    state = _part(run, "state")
    status = _part(run, "status")
    details = _part(status, "termination_details")
    queue = _part(status, "queue_details")
    message = _text(details, "message") or _text(state, "state_message")
    return RunWords(
        life_cycle_state=_text(state, "life_cycle_state"),
        result_state=_text(state, "result_state"),
        state=_text(status, "state"),
        termination_code=_text(details, "code"),
        termination_type=_text(details, "type"),
        message=_readable(message or _text(queue, "message")),
    )


def report_of(
    run: Mapping[str, object], *, partial_success: Outcome = Outcome.SUCCEEDED
) -> RunReport:
    """Convert one run of the API's JSON into a report.

    Raises:
        ValueError: The JSON holds no usable run id or job id.
    """
    words = words_of(run)
    return RunReport(
        run_id=exact_id(run.get("run_id"), "run_id"),
        job_id=exact_id(run.get("job_id"), "job_id"),
        outcome=outcome_of(words, partial_success=partial_success),
        life_cycle_state=words.life_cycle_state,
        result_state=words.result_state,
        state=words.state,
        termination_code=words.termination_code,
        message=words.message,
        started_at=instant(run.get("start_time")),
        ended_at=instant(run.get("end_time")),
        run_page_url=_text(run, "run_page_url"),
        trigger=_text(run, "trigger"),
        parameters=_parameters(run.get("job_parameters")),
    )


def exact_id(value: object, name: str) -> int:
    """Read an id digit by digit; a float has already lost some, so it is not an id.

    Raises:
        ValueError: The value is neither an integer nor its digits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    raise ValueError(f"the answer's {name} is {value!r}, not an integer")


def _part(parent: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _text(parent: Mapping[str, object], key: str) -> str | None:
    value = parent.get(key)
    return value if isinstance(value, str) and value else None


def _readable(message: str | None) -> str | None:
    """Let a run's words be kept: they are what its code wrote last, whatever that was."""
    return None if message is None else storable(masked(message))


def _parameters(listed: object) -> Mapping[str, str]:
    """Read ``[{"name": ..., "value": ...}]``; a parameter without a value has its default."""
    entries = listed if isinstance(listed, list) else []
    named = [each for each in entries if isinstance(each, dict) and _text(each, "name")]
    return {
        each["name"]: next(
            (text for text in (each.get("value"), each.get("default")) if isinstance(text, str)), ""
        )
        for each in named
    }


def instant(milliseconds: object) -> datetime | None:
    """Milliseconds since 1970 as an instant; the API writes 0 for "not yet"."""
    if not isinstance(milliseconds, int) or milliseconds <= 0:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
