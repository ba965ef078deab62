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
        """Return whether a run in this state is over."""
        return self.life_cycle_state in TERMINAL_LIFE_CYCLES or self.state in TERMINAL_STATES

    @property
    def waits(self) -> bool:
        """Return whether a run in this state is in the queue."""
        return self.life_cycle_state == "QUEUED"

    def with_message(self, message: str) -> "Phase":
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


def _going_on(life_cycle_state: str, state: str) -> Phase:
    return Phase(life_cycle_state=life_cycle_state, state=state)


def _queued(code: str, message: str) -> Phase:
    return Phase(life_cycle_state="QUEUED", state="QUEUED", queue_code=code, message=message)


def _over(life_cycle_state: str, result: str, code: str, kind: str, message: str = "") -> Phase:
    return Phase(
        life_cycle_state=life_cycle_state,
        state="TERMINATED",
        result_state=result,
        code=code,
        type=kind,
        message=message,
    )


PENDING = _going_on("PENDING", "PENDING")
BLOCKED = _going_on("BLOCKED", "BLOCKED")
RUNNING = _going_on("RUNNING", "RUNNING")
WAITING_FOR_RETRY = _going_on("WAITING_FOR_RETRY", "WAITING")
TERMINATING = _going_on("TERMINATING", "TERMINATING")
QUEUED_BEHIND_JOB = _queued(
    "MAX_CONCURRENT_RUNS_REACHED", "Queued due to reaching maximum concurrent runs of this job."
)
QUEUED_BEHIND_WORKSPACE = _queued(
    "ACTIVE_RUNS_LIMIT_REACHED",
    "Queued due to reaching the limit of active runs in the workspace.",
)
SUCCEEDED = _over("TERMINATED", "SUCCESS", "SUCCESS", "SUCCESS")
PARTLY_SUCCEEDED = _over("TERMINATED", "SUCCESS_WITH_FAILURES", "SUCCESS_WITH_FAILURES", "SUCCESS")
#: A failed task shows as an internal error in the older vocabulary, and as what it is in the newer.
FAILED = _over("INTERNAL_ERROR", "FAILED", "RUN_EXECUTION_ERROR", "CLIENT_ERROR")
BROKEN = _over(
    *("INTERNAL_ERROR", "FAILED", "INTERNAL_ERROR", "INTERNAL_ERROR"),
    "The local Jobs API was stopped while this run was going on.",
)
TIMED_OUT = _over("TERMINATED", "TIMEDOUT", "CANCELED", "CLIENT_ERROR")
CANCELED = _over("TERMINATED", "CANCELED", "USER_CANCELED", "CLIENT_ERROR", "Run cancelled.")
_SKIPPED = ("SKIPPED", "MAXIMUM_CONCURRENT_RUNS_REACHED")
SKIPPED = _over(
    *(*_SKIPPED, "MAX_CONCURRENT_RUNS_EXCEEDED", "CLIENT_ERROR"),
    "Skipping this run because the limit of maximum concurrent runs has been reached.",
)
QUEUE_TIMED_OUT = _over(
    *(*_SKIPPED, "SKIPPED", "CLIENT_ERROR"),
    "Skipping this run because it waited in the queue for more than 48 hours.",
)
