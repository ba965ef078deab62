"""Queries one installation of Heartbeat, by its command line and in its own interpreter.

Does not depend on Airflow. An answer is JSON on standard output; an error is one sentence on
standard error, with Heartbeat's exit code.
"""

import asyncio
import contextlib
import json
import os
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: The levels of a partition: in a text as Heartbeat's own command takes it, such as `EU;7` or
#: `["EU", 7]`, or as a list.
Partition = str | Sequence[object]

_NOTHING_NEW = 4
_USAGE = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: What belongs to Airflow's interpreter and not to Heartbeat's, Airflow's secrets among it.
_NOT_HANDED_ON = ("AIRFLOW", "_AIRFLOW", "PYTHON", "VIRTUAL_ENV")


class HeartbeatError(Exception):
    """Heartbeat could not answer; a later try may succeed."""


class HeartbeatRefusedError(HeartbeatError):
    """The request is invalid, so that a retry does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One installation of Heartbeat, as Airflow's machine reaches it."""

    name: str
    #: The folder with `dbt_project.yml`, `heartbeat.yml` and `harness/`.
    project: str
    #: Heartbeat's interpreter; never Airflow's.
    python: str
    #: HEARTBEAT_HOME and HEARTBEAT_CONFIG; None leaves them as Heartbeat has them.
    home: str | None = None
    config: str | None = None

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of Heartbeat's process."""
        kept = {
            name: value for name, value in environ.items() if not name.startswith(_NOT_HANDED_ON)
        }
        own = {"HEARTBEAT_HOME": self.home, "HEARTBEAT_CONFIG": self.config}
        return kept | {name: value for name, value in own.items() if value}


class Heartbeat:
    """A client of one Heartbeat installation.

    Args:
        cluster: The installation.
        timeout: For how many seconds one answer is waited for.
    """

    def __init__(self, cluster: Cluster, *, timeout: float = 120.0) -> None:
        self._cluster = cluster
        self._timeout = timeout

    async def told_through(self) -> int | None:
        """Return up to when all events are recorded, in epoch milliseconds; None before any tick.

        An event has the instant of the tick that recorded it, and ticks are sequential. So
        there will never be another event from before the last tick that has ended.
        """
        status = await self._object("status", "--json")
        if "last_tick_at" not in status:
            raise HeartbeatRefusedError(
                f"The Heartbeat of the connection '{self._cluster.name}' does not say when its "
                "last tick was: bring it to the version that this package is of"
            )
        at = status["last_tick_at"]
        return None if at is None else milliseconds(datetime.fromisoformat(str(at)))

    async def events(
        self, table: str, start: int, end: int, partition: Partition | None = None
    ) -> list[dict[str, object]]:
        """Return the events of a table from one instant to before another, oldest first.

        Args:
            table: The table.
            start: Epoch milliseconds; belongs to the interval.
            end: The same; does not belong to it.
            partition: Only of this partition.
        """
        requested = ["--table", table]
        if partition is not None:
            text = partition if isinstance(partition, str) else json.dumps(list(partition))
            requested.append(f"--partition={text}")
        message = await self._answer(
            "events", *requested, "--from", iso(start), "--to", iso(end), "--json"
        )
        if message is None:
            return []
        if not isinstance(message, list):
            raise self._not_understood("events", message)
        return message

    async def explain(self, job: str) -> dict[str, object]:
        """Return why a job runs, waits or is held, and its last runs."""
        return await self._object("explain", job, "--json")

    async def _object(self, *arguments: str) -> dict[str, object]:
        message = await self._answer(*arguments)
        if not isinstance(message, dict):
            raise self._not_understood(arguments[0], message)
        return message

    async def _answer(self, *arguments: str) -> object:
        code, out, err = await self._run(*arguments)
        if code == _NOTHING_NEW:
            return None
        if code:
            kind = HeartbeatRefusedError if code == _USAGE else HeartbeatError
            raise kind(_sentence(err) or f"Heartbeat ended with {code} without a message")
        try:
            return json.loads(out)
        except ValueError:
            raise self._not_understood(arguments[0], out) from None

    async def _run(self, *arguments: str) -> tuple[int, str, str]:
        cluster = self._cluster
        try:
            process = await asyncio.create_subprocess_exec(
                *(cluster.python, "-m", "harness", *arguments),
                cwd=cluster.project,
                env=cluster.environment(os.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise HeartbeatRefusedError(
                f"The connection '{cluster.name}' names the project '{cluster.project}' and the "
                f"interpreter '{cluster.python}', and one of them cannot be used "
                f"({error.strerror}): correct `project` or `python` in its extra"
            ) from error
        try:
            async with asyncio.timeout(self._timeout):
                out, err = await process.communicate()
        except TimeoutError:
            raise HeartbeatError(
                f"Heartbeat has not answered `{arguments[0]}` within {self._timeout:g} seconds"
            ) from None
        finally:
            await _end(process)
        return process.returncode or 0, out.decode(), err.decode(errors="replace")

    def _not_understood(self, command: str, message: object) -> HeartbeatError:
        return HeartbeatError(
            f"The answer of `python -m harness {command}` in '{self._cluster.project}' is not "
            f"understood: '{str(message)[:80]}'"
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process of an abandoned request."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _sentence(message: str) -> str:
    """Return what stands after `error:`, or the last line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith("error:"):
            return " ".join(lines[number:]).removeprefix("error:").strip()
    return lines[-1] if lines else ""


def milliseconds(instant: datetime) -> int:
    """Return integer epoch milliseconds, without the rounding of floats."""
    # Not by a difference: Airflow's instants are pendulum's, whose differences divide otherwise.
    return timegm(instant.utctimetuple()) * 1000 + instant.microsecond // 1000


def iso(at: int) -> str:
    """Write epoch milliseconds in ISO 8601."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")
