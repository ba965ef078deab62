"""Waits in the triggerer: for a tick, and for a job. No worker is held meanwhile."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from heartbeat_airflow.client import HeartbeatError, HeartbeatRefusedError, iso
from heartbeat_airflow.hook import HeartbeatHook
from heartbeat_airflow.verdicts import Stand, stand_of

log = logging.getLogger(__name__)

#: So many polls in a row may fail before the task fails.
_MOST_FAILURES = 5


class TickTrigger(BaseTrigger):
    """Fires when all events from before an instant are recorded.

    Args:
        cluster: The connection that names the installation.
        until: The instant, in epoch milliseconds.
        poll_interval: How many seconds lie between two polls.
        wait_seconds: The polling time; it starts over when the triggerer does.
    """

    def __init__(
        self, *, cluster: str, until: int, poll_interval: float, wait_seconds: float
    ) -> None:
        super().__init__()
        self.cluster = cluster
        self.until = until
        self.poll_interval = poll_interval
        self.wait_seconds = wait_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow needs to create the trigger again."""
        return (
            "heartbeat_airflow.triggers.TickTrigger",
            {
                "cluster": self.cluster,
                "until": self.until,
                "poll_interval": self.poll_interval,
                "wait_seconds": self.wait_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until a tick has passed the instant, or no further tick is likely."""
        reported: int | None = None
        problem = f"it has not answered within {self.wait_seconds:g} s"
        try:
            async with asyncio.timeout(self.wait_seconds):
                while reported is None or reported < self.until:
                    reported, problem = await self._told_through()
                    if reported is None or reported < self.until:
                        await asyncio.sleep(self.poll_interval)
        except TimeoutError:
            why = problem or (
                f"its last one was at {iso(reported)}" if reported else "there was none yet"
            )
            message = (
                f"The Heartbeat of '{self.cluster}' has had no tick at {iso(self.until)} or later: "
                f"{why}; see to it that `python -m harness run` goes on there"
            )
            yield TriggerEvent({"problem": message})
            return
        except HeartbeatRefusedError as error:
            yield TriggerEvent({"problem": str(error)})
            return
        yield TriggerEvent({"problem": ""})

    async def _told_through(self) -> tuple[int | None, str]:
        try:
            heartbeat = await HeartbeatHook(self.cluster).aget_conn()
            return await heartbeat.told_through(), ""
        except HeartbeatRefusedError:
            raise
        except HeartbeatError as error:
            log.warning("%s", error)
            return None, str(error)


class JobTrigger(BaseTrigger):
    """Fires when a job has succeeded since an instant, or cannot without a person.

    Args:
        cluster: The connection that names the installation.
        job: Id or name of the job.
        since: The instant, in epoch milliseconds.
        poll_interval: How many seconds lie between two polls.
    """

    def __init__(self, *, cluster: str, job: str, since: int, poll_interval: float) -> None:
        super().__init__()
        self.cluster = cluster
        self.job = job
        self.since = since
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow needs to create the trigger again."""
        return (
            "heartbeat_airflow.triggers.JobTrigger",
            {
                "cluster": self.cluster,
                "job": self.job,
                "since": self.since,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until there is a result."""
        failures = 0
        while True:
            try:
                heartbeat = await HeartbeatHook(self.cluster).aget_conn()
                verdict = stand_of(await heartbeat.explain(self.job), self.since)
                failures = 0
                log.info("%s", verdict.sentence)
                if verdict.stand is not Stand.WAITS:
                    yield TriggerEvent({"stand": verdict.stand, "sentence": verdict.sentence})
                    return
            except HeartbeatError as error:
                failures += 1
                log.warning("%s", error)
                is_final = isinstance(error, HeartbeatRefusedError)
                if is_final or failures >= _MOST_FAILURES:
                    stand = Stand.STUCK if is_final else Stand.UNKNOWN
                    yield TriggerEvent({"stand": stand, "sentence": str(error)})
                    return
            await asyncio.sleep(self.poll_interval)
