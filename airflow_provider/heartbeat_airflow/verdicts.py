"""Reads from Heartbeat's explanation of a job whether its success may still be waited for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from heartbeat_airflow.client import HeartbeatError, iso, milliseconds

_SUCCEEDED = frozenset({"SUCCEEDED", "SUCCEEDED_ELSEWHERE"})
#: What no waiting changes: a person has to do something.
_STUCK = frozenset({"held", "not_in_controls"})


class Stand(StrEnum):
    """How it stands with a success of the job."""

    SUCCEEDED = "succeeded"
    WAITS = "waits"
    #: It does not come without a person.
    STUCK = "stuck"
    #: Heartbeat could not be reached.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVerdict:
    """How it stands, in a sentence."""

    stand: Stand
    sentence: str


def stand_of(explanation: Mapping[str, object], since: int) -> JobVerdict:
    """Return how it stands with a success of the job since an instant.

    Args:
        explanation: What `explain JOB --json` printed.
        since: The instant, in epoch milliseconds.

    Raises:
        HeartbeatError: It is no such explanation.
    """
    try:
        name = f"{explanation['job_name']} ({explanation['job_id']})"
        verdict, reason = str(explanation["verdict"]), str(explanation["reason"])
        ended = _newest_success(explanation["runs"])
        steps = explanation.get("next")
    except (KeyError, TypeError, ValueError) as error:
        raise HeartbeatError(
            f"The answer of `python -m harness explain` is not understood: {error!r} in it"
        ) from error
    if ended is not None and ended >= since:
        return JobVerdict(stand=Stand.SUCCEEDED, sentence=f"{name} succeeded at {iso(ended)}")
    if verdict in _STUCK:
        way = f"; what helps: {steps[0]}" if isinstance(steps, Sequence) and steps else ""
        return JobVerdict(
            stand=Stand.STUCK,
            sentence=f"{name} is {verdict.replace('_', ' ')}: {reason}{way}",
        )
    return JobVerdict(
        stand=Stand.WAITS,
        sentence=f"{name} has not succeeded since {iso(since)} and is {verdict}: {reason}",
    )


def _newest_success(runs: object) -> int | None:
    if not isinstance(runs, Sequence):
        raise TypeError(runs)
    ends = [
        milliseconds(datetime.fromisoformat(str(run["ended_at"])))
        for run in runs
        if run["run_status"] in _SUCCEEDED and run["ended_at"]
    ]
    return max(ends, default=None)
