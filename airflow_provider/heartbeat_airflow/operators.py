"""Fetches the data-change events of one table and one interval."""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from heartbeat_airflow.client import Partition, iso
from heartbeat_airflow.hook import HeartbeatHook, told_to_airflow
from heartbeat_airflow.triggers import TickTrigger

#: How many seconds lie between two polls for a tick.
_POLL_INTERVAL = 15.0


class DataChangeEventOperator(BaseOperator):
    """Pushes the events of a table, from one instant to before another, as a list.

    An interval is queried when it is complete: when a tick has ended that began at its end or
    later. Until then the task is deferred, so that no event falls between two intervals.

    Args:
        dataset: The table, as Heartbeat's controls name it.
        cluster: The connection that names the installation of Heartbeat.
        start_time: Epoch milliseconds, as text or a number; belongs to the interval.
        end_time: The same; does not belong to it.
        wait_for_tick: For how long a tick is waited for.
        options: `partition`, for events of one partition alone: `EU;7`, `["EU", 7]`, or a list of
            its levels; and what every operator takes.
    """

    template_fields: Sequence[str] = (
        "dataset",
        "cluster",
        "start_time",
        "end_time",
        "partition",
    )
    ui_color = "#cfe8e4"

    def __init__(
        self,
        *,
        dataset: str,
        cluster: str = HeartbeatHook.default_conn_name,
        start_time: str | int,
        end_time: str | int,
        wait_for_tick: timedelta = timedelta(hours=1),
        **options: Any,
    ) -> None:
        partition: Partition | None = options.pop("partition", None)
        super().__init__(**options)
        self.dataset = dataset
        self.cluster = cluster
        self.start_time = start_time
        self.end_time = end_time
        self.wait_for_tick = wait_for_tick
        self.partition = partition

    def execute(self, context: Context) -> list[dict[str, object]]:
        """Fetch the events, or wait for the tick that completes the interval."""
        start, end = self._interval()
        with told_to_airflow():
            reported = asyncio.run(HeartbeatHook(self.cluster).get_conn().told_through())
        if reported is None or reported < end:
            self.log.info("waiting for a tick at %s or later", iso(end))
            self.defer(
                trigger=TickTrigger(
                    cluster=self.cluster,
                    until=end,
                    poll_interval=_POLL_INTERVAL,
                    wait_seconds=self.wait_for_tick.total_seconds(),
                ),
                method_name="execute_complete",
            )
        return self._fetch(start, end)

    def execute_complete(
        self, context: Context, event: dict[str, str] | None = None
    ) -> list[dict[str, object]]:
        """Go on after the tick."""
        if event and event.get("problem"):
            raise AirflowException(event["problem"])
        return self._fetch(*self._interval())

    def _fetch(self, start: int, end: int) -> list[dict[str, object]]:
        with told_to_airflow():
            heartbeat = HeartbeatHook(self.cluster).get_conn()
            events = asyncio.run(heartbeat.events(self.dataset, start, end, self.partition))
        self.log.info(
            "%d events of %s from %s to before %s", len(events), self.dataset, iso(start), iso(end)
        )
        return events

    def _interval(self) -> tuple[int, int]:
        start = self._instant("start_time", self.start_time)
        end = self._instant("end_time", self.end_time)
        if start == end:
            raise AirflowFailException(
                f"The interval from {iso(start)} to {iso(end)} is empty: a cron expression alone "
                "gives a DAG no data interval in Airflow 3, so schedule it with "
                'CronDataIntervalTimetable("@hourly", timezone=...)'
            )
        if start > end:
            raise AirflowFailException(
                f"The interval begins at {iso(start)} and ends before that, at {iso(end)}: "
                "exchange start_time and end_time"
            )
        return start, end

    @staticmethod
    def _instant(name: str, given: str | int) -> int:
        text = str(given).strip()
        if isinstance(given, bool) or not re.fullmatch(r"\d{1,14}", text):
            raise AirflowFailException(
                f"{name} is '{text}', and has to be epoch milliseconds, such as "
                '"{{ data_interval_start.int_timestamp * 1000 }}"'
            )
        return int(text)
