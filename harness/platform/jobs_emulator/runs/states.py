"""The states of a local run, each in both of the API's vocabularies."""

from dataclasses import dataclass, replace

from harness.platform.databricks.run_states import TERMINAL_LIFE_CYCLES, TERMINAL_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One state of a run; a field that is ``None`` is left out of the answer."""

    life_cycle_state: str | None = None
    state: str | None = None
    result_state: str | None = None
    code: str | None = None
    type: str | None = None
    queue_code: str | None = None
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Tell whether a run in this state is over."""
        return self.life_cycle_state in TERMINAL_LIFE_CYCLES or self.state in TERMINAL_STATES

    @property
    def waits(self) -> bool:
        """Tell whether a run in this state is in the queue."""
        return self.life_cycle_state == "QUEUED"

    def saying(self, message: str) -> "Phase":
        """Return the same state with a message."""
        return replace(self, message=message)

    def as_json(self) -> dict[str, object]:
        """Return the two vocabularies as ``runs/get`` shows them."""
        return {
            **_filled("state", self._older_vocabulary()),
            **_filled("status", self._newer_vocabulary()),
        }

    def _older_vocabulary(self) -> dict[str, object]:
        if self.life_cycle_state is None:
            return {}
        older: dict[str, object] = {
            "life_cycle_state": self.life_cycle_state,
            "state_message": self.message,
            "user_cancelled_or_timedout": self.result_state in ("CANCELED", "TIMEDOUT"),
        }
        if self.result_state is not None:
            older["result_state"] = self.result_state
        return older

    def _newer_vocabulary(self) -> dict[str, object]:
        newer: dict[str, object] = {"state": self.state} if self.state is not None else {}
        if self.code is not None:
            details = {"code": self.code, "type": self.type, "message": self.message}
            newer["termination_details"] = {k: v for k, v in details.items() if v is not None}
        if self.queue_code is not None:
            newer["queue_details"] = {"code": self.queue_code, "message": self.message}
        return newer


def _filled(name: str, part: dict[str, object]) -> dict[str, object]:
    return {name: part} if part else {}


PENDING = Phase(life_cycle_state="PENDING", state="PENDING")
BLOCKED = Phase(life_cycle_state="BLOCKED", state="BLOCKED")
RUNNING = Phase(life_cycle_state="RUNNING", state="RUNNING")
WAITING_FOR_RETRY = Phase(life_cycle_state="WAITING_FOR_RETRY", state="WAITING")
TERMINATING = Phase(life_cycle_state="TERMINATING", state="TERMINATING")
QUEUED_BEHIND_JOB = Phase(
    life_cycle_state="QUEUED",
    state="QUEUED",
    queue_code="MAX_CONCURRENT_RUNS_REACHED",
    message="Queued due to reaching maximum concurrent runs of this job.",
)
QUEUED_BEHIND_WORKSPACE = Phase(
    life_cycle_state="QUEUED",
    state="QUEUED",
    queue_code="ACTIVE_RUNS_LIMIT_REACHED",
    message="Queued due to reaching the limit of active runs in the workspace.",
)
SUCCEEDED = Phase(
    life_cycle_state="TERMINATED",
    state="TERMINATED",
    result_state="SUCCESS",
    code="SUCCESS",
    type="SUCCESS",
)
PARTLY_SUCCEEDED = replace(
    SUCCEEDED, result_state="SUCCESS_WITH_FAILURES", code="SUCCESS_WITH_FAILURES"
)
#: A failed task shows as an internal error in the older vocabulary, and as what it is in the newer.
FAILED = Phase(
    life_cycle_state="INTERNAL_ERROR",
    state="TERMINATED",
    result_state="FAILED",
    code="RUN_EXECUTION_ERROR",
    type="CLIENT_ERROR",
)
BROKEN = Phase(
    life_cycle_state="INTERNAL_ERROR",
    state="TERMINATED",
    result_state="FAILED",
    code="INTERNAL_ERROR",
    type="INTERNAL_ERROR",
    message="The local Jobs API was stopped while this run was going on.",
)
TIMED_OUT = Phase(
    life_cycle_state="TERMINATED",
    state="TERMINATED",
    result_state="TIMEDOUT",
    code="CANCELED",
    type="CLIENT_ERROR",
)
CANCELED = Phase(
    life_cycle_state="TERMINATED",
    state="TERMINATED",
    result_state="CANCELED",
    code="USER_CANCELED",
    type="CLIENT_ERROR",
    message="Run cancelled.",
)
SKIPPED = Phase(
    life_cycle_state="SKIPPED",
    state="TERMINATED",
    result_state="MAXIMUM_CONCURRENT_RUNS_REACHED",
    code="MAX_CONCURRENT_RUNS_EXCEEDED",
    type="CLIENT_ERROR",
    message="Skipping this run because the limit of maximum concurrent runs has been reached.",
)
QUEUE_TIMED_OUT = replace(
    SKIPPED,
    code="SKIPPED",
    message="Skipping this run because it waited in the queue for more than 48 hours.",
)
