"""Counts the rows that came to a table, by the events that Airflow has passed on.

Runs in Heartbeat's environment: `spark-submit count_rows.py TABLE EVENTS RESULTS`.
"""

import sys

from pyspark.sql import SparkSession

from harness.toolkit.changes import ChangeEvent, changed_rows
from heartbeat_airflow.events import decode_events


def main(table: str, encoded: str, results: str) -> None:
    """Write the rows that came, and say how many there are."""
    spark = SparkSession.builder.getOrCreate()
    events = [ChangeEvent.from_json(event) for event in decode_events(encoded)]
    rows = changed_rows(spark, events, table).rows()
    rows.coalesce(1).write.mode("overwrite").json(results)
    print(f"{rows.count()} rows came to {table}")  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
