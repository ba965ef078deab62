"""Daily: waits until a job that Heartbeat starts has succeeded, and goes on then."""

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

from heartbeat_airflow.events import DataChangeEvent
from heartbeat_airflow.sensors import HeartbeatJobSensor

with DAG(
    "report_after_revenue",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=pendulum.datetime(2022, 6, 1, tz="UTC"),
    catchup=False,
) as dag:
    revenue_is_there = HeartbeatJobSensor(
        task_id="revenue_is_there",
        job="daily-revenue",
        cluster=DataChangeEvent.CLUSTER1,
        timeout=6 * 3600,
    )
    revenue_is_there >> EmptyOperator(task_id="report")
