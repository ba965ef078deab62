"""Determines which job parameters a start sends: the API refuses what a job does not declare.

The settings of a job are read before its intent is recorded, which keeps exactly what is sent: a
resend reads no settings and has the same body. They are cached in the process for a while.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.config.model import SendParameters
from harness.errors import JobsApiError, NoSuchJobError, ThrottledError
from harness.platform.databricks.api import JobsApi, Refused
from harness.platform.databricks.rate_limit import TokenBucket

log = logging.getLogger(__name__)

#: How long the settings of a job are cached; a refusal of the job ends it sooner.
BELIEVED_FOR = timedelta(minutes=15)

#: What stands for an answer that was not requested yet.
ASKED_LATER = "the Jobs API has had too many requests; the settings of the job are read later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The parameters that may be sent to a job; all of them when there are no names."""

    declared: frozenset[str] | None = None

    def admits(self, name: str) -> bool:
        """Return whether a parameter is sent."""
        return self.declared is None or name in self.declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """The settings of a job cannot be read now, so that its start has to wait."""

    reason: str


_ALL = Names()
_NONE = Names(declared=frozenset())


class DeclaredParameters:
    """What jobs declare, read at most once for each job and quarter of an hour.

    Args:
        policy: Whether the settings of the jobs are read at all.
    """

    def __init__(self, policy: SendParameters = SendParameters.DECLARED) -> None:
        self.policy = policy
        # Each thread has a job of its own, and a single entry is replaced at once.
        self._known: dict[int, tuple[datetime, Names]] = {}

    def of(
        self, job_id: int, *, api: JobsApi, questions: TokenBucket, at: datetime
    ) -> Names | Undetermined:
        """Return what may be sent to a job; one request, unless it is cached."""
        match self.policy:
            case SendParameters.ALWAYS:
                return _ALL
            case SendParameters.NEVER:
                return _NONE
            case SendParameters.DECLARED:
                known = self._known.get(job_id)
                # A clock that went back must not extend it.
                if known and known[0] <= at < known[0] + BELIEVED_FOR:
                    return known[1]
                return self._asked(job_id, api, questions, at)

    def forget(self, job_id: int) -> None:
        """Read the settings of a job again at its next start."""
        self._known.pop(job_id, None)

    def _asked(
        self, job_id: int, api: JobsApi, questions: TokenBucket, at: datetime
    ) -> Names | Undetermined:
        if questions.waits.holds_back(at):
            return Undetermined(reason=ASKED_LATER)
        questions.take()
        try:
            names = Names(declared=api.declared_parameters(job_id))
        except NoSuchJobError:
            # The start is refused in the API's own words. Should the job appear in between, it is
            # refused as well, or has all its events.
            return _ALL
        except JobsApiError as error:
            if isinstance(error, ThrottledError):
                questions.waits.hold_all(error.wait_seconds, at)
            log.warning("job %s: its settings cannot be read: %s", job_id, error)
            return Undetermined(reason=f"the start waits until the job can be read: {error}")
        self._known[job_id] = (at, names)
        return names

    def advice(self, job_id: int, refusal: Refused, sent: list[str]) -> str:
        """Return what to do about a refusal of parameters; empty if it is about something else."""
        words = refusal.message.lower()
        is_about_them = any(name in words for name in sent) or "job parameter" in words
        if not sent or not is_about_them:
            return ""
        names = ", ".join(sent)
        if self.policy is SendParameters.ALWAYS:
            way_out = (
                f"declare {names} in the settings of the job, or set jobs.parameters to declared "
                "in heartbeat.yml"
            )
        else:
            way_out = "the settings of the job have changed, and are read again at its next start"
        return f"; {way_out}, then `retry {job_id}`"
