"""Hourly: fetches what changed in a table, and has Spark read the changed rows only.

Without a change there is no Spark job. Each interval is queried once, when complete, so a row is
passed on once.
"""

import os
from functools import partial
from pathlib import Path

import pendulum
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

from heartbeat_airflow.events import DataChangeEvent, encode_events, events_exist
from heartbeat_airflow.operators import DataChangeEventOperator

#: Heartbeat's environment: pyspark is there, and its spark-submit.
HEARTBEAT = Path(os.environ.get("HEARTBEAT_PROJECT", "/srv/heartbeat"))
BIN = Path(os.environ.get("HEARTBEAT_BIN", HEARTBEAT / ".venv" / "bin"))
WAREHOUSE = os.environ.get("LAKE_WAREHOUSE", "/data/lake")
RESULTS = os.environ.get("PAGEVIEWS_RESULTS", "/data/results")

dataset_name = "lake.data.pageviews"

with DAG(
    "changed_pageviews",
    schedule=CronDataIntervalTimetable("@hourly", timezone="America/Los_Angeles"),
    start_date=pendulum.datetime(2022, 6, 1, tz="America/Los_Angeles"),
    catchup=False,
    user_defined_macros={"encode_events": encode_events},
) as dag:
    fetched_events = DataChangeEventOperator(
        task_id="fetched_events",
        dataset=dataset_name,
        cluster=DataChangeEvent.CLUSTER1,
        start_time="{{ data_interval_start.int_timestamp * 1000 }}",
        end_time="{{ data_interval_end.int_timestamp * 1000 }}",
    )

    skip_downstream_when_no_events = ShortCircuitOperator(
        task_id="skip_downstream_when_no_events",
        python_callable=partial(events_exist, "fetched_events"),
    )

    spark_submit_task = SparkSubmitOperator(
        task_id="count_rows",
        application=str(Path(__file__).parent / "jobs" / "count_rows.py"),
        application_args=[
            dataset_name,
            '{{ encode_events(task_instance.xcom_pull(task_ids="fetched_events")) }}',
            RESULTS + "/{{ data_interval_start.int_timestamp }}",
        ],
        jars=f"{BIN.parent}/share/heartbeat/jars/*iceberg*.jar",
        conf={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": WAREHOUSE,
        },
        env_vars={
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": f"{HEARTBEAT}:{Path(__file__).parents[1]}",
        },
    )

    fetched_events >> skip_downstream_when_no_events >> spark_submit_task
