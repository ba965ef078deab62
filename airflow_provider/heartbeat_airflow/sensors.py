"""Waits until a job that Heartbeat starts has succeeded."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from heartbeat_airflow.client import milliseconds
from heartbeat_airflow.hook import HeartbeatHook, told_to_airflow
from heartbeat_airflow.triggers import JobTrigger
from heartbeat_airflow.verdicts import JobVerdict, Stand, stand_of


class HeartbeatJobSensor(BaseSensorOperator):
    """Succeeds when a run of the job has succeeded since the DAG run's interval began.

    It fails at once, with Heartbeat's own sentence, when the job is held by a failed run and so
    does not succeed without a person.

    Args:
        job: Id or name of the job.
        cluster: The connection that names the installation of Heartbeat.
        since: From when on a success counts, in ISO 8601. Without it: from the beginning of the
            data interval, or where the DAG run has none, from when on it was to run.
        deferrable: Wait in the triggerer, or else on a worker, as `mode` specifies.
    """

    template_fields: Sequence[str] = ("job", "cluster", "since")
    ui_color = "#cfe8e4"

    def __init__(
        self,
        *,
        job: str | int,
        cluster: str = HeartbeatHook.default_conn_name,
        since: str | None = None,
        deferrable: bool = True,
        poke_interval: float | timedelta = 30.0,
        **options: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **options)
        self.job = str(job)
        self.cluster = cluster
        self.since = since
        self.deferrable = deferrable

    def execute(self, context: Context) -> None:
        """Poll once, and wait in the triggerer if there is no result yet."""
        if not self.deferrable:
            super().execute(context)
        elif not self.poke(context):
            self.defer(
                trigger=JobTrigger(
                    cluster=self.cluster,
                    job=self.job,
                    since=self._since(context),
                    poll_interval=self.poke_interval,
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )

    def poke(self, context: Context) -> bool:
        """Return whether the job has succeeded."""
        with told_to_airflow():
            heartbeat = HeartbeatHook(self.cluster).get_conn()
            explanation = asyncio.run(heartbeat.explain(self.job))
            verdict = stand_of(explanation, self._since(context))
        return self._has_succeeded(verdict)

    def execute_complete(self, context: Context, event: Mapping[str, str]) -> None:
        """Evaluate the result of the trigger."""
        self._has_succeeded(JobVerdict(stand=Stand(event["stand"]), sentence=event["sentence"]))

    def _has_succeeded(self, verdict: JobVerdict) -> bool:
        if verdict.stand is Stand.STUCK:
            raise AirflowFailException(verdict.sentence)
        if verdict.stand is Stand.UNKNOWN:
            raise AirflowException(verdict.sentence)
        self.log.info("%s", verdict.sentence)
        return verdict.stand is Stand.SUCCEEDED

    def _since(self, context: Context) -> int:
        if self.since:
            return milliseconds(self._instant(self.since))
        begins = context.get("data_interval_start") or context["dag_run"].run_after
        return milliseconds(begins)

    @staticmethod
    def _instant(text: str) -> datetime:
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            instant = None
        if instant is None or instant.tzinfo is None:
            raise AirflowFailException(
                f"since is '{text}', and has to be an instant in ISO 8601 with its time zone, such "
                'as "{{ data_interval_start.isoformat() }}"'
            )
        return instant
