"""Every error that Heartbeat raises on purpose: one root, few children, each with an exit code.

A message is one sentence for a person: what is wrong, where, and the way out.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the process."""

    DONE = 0
    #: Something failed and is recorded; the rest went on.
    FAILED = 1
    #: The command line, ``heartbeat.yml`` or the controls CSV is wrong; nothing moved.
    USAGE = 2
    #: Another process holds the lock.
    LOCKED = 3
    #: There is nothing new (``sense``), or nothing that was requested (``events``, ``engine``).
    NOTHING_NEW = 4


class HeartbeatError(Exception):
    """The root of every error that is reported to the user in one sentence."""

    exit_code = ExitCode.FAILED


def exit_code_of(error: HeartbeatError) -> ExitCode:
    """Return the exit code of an error: that of the configuration, if that is what caused it."""
    causes: list[BaseException] = [error]
    # What is raised from itself is its own cause.
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    is_configured_wrong = any(isinstance(each, ConfigurationError) for each in causes)
    return ExitCode.USAGE if is_configured_wrong else error.exit_code


class ConfigurationError(HeartbeatError):
    """``heartbeat.yml``, ``profiles.yml`` or an option is wrong; nothing was started."""

    exit_code = ExitCode.USAGE


class ControlsError(HeartbeatError):
    """The controls CSV has findings that stop; nothing moved."""

    exit_code = ExitCode.USAGE


class LockedError(HeartbeatError):
    """Another process holds the lock of this state directory, or the lease of the tables."""

    exit_code = ExitCode.LOCKED


class StateError(HeartbeatError):
    """The state directory or a ledger cannot be used: full or read-only disk, newer version."""


class ProbeFailedError(HeartbeatError):
    """One probe of one upstream failed; the reason is recorded and the other upstreams go on."""


class ExtractError(HeartbeatError):
    """An extract cannot be made, or not be appended; bronze is as it was before."""


class DecideError(HeartbeatError):
    """``dbt build`` did not succeed, so nothing was decided and nothing was started."""


class JobsApiError(HeartbeatError):
    """The Jobs API cannot be used at all: no host, no credentials, the local one does not start."""


class UnreportedRunsError(JobsApiError):
    """The Jobs API answers, but does not list all runs of a job: what is not listed may exist."""


class NoSuchJobError(UnreportedRunsError):
    """The Jobs API has no such job; its runs outlive it, so that this proves nothing."""


class ThrottledError(JobsApiError):
    """The Jobs API has had too many requests, and accepts no other for a while.

    Args:
        message: What is reported.
        wait_seconds: For how long it accepts none.
    """

    def __init__(self, message: str, *, wait_seconds: float) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds
