"""Counts the rows that came to a table, by the events that Airflow has handed over.

Runs in Heartbeat's environment: `spark-submit count_rows.py TABLE EVENTS RESULTS`.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

from heartbeat_airflow.events import decode_events

Event = dict[str, object]


def ends_of(events: list[Event]) -> tuple[str | None, str]:
    """Chain the events, and return the snapshot before the first and that of the last."""
    by_previous = {event["prev_snapshot_id"]: event for event in events}
    told = {event["snapshot_id"] for event in events}
    [first] = [event for event in events if event["prev_snapshot_id"] not in told]
    last = first
    while last["snapshot_id"] in by_previous:
        last = by_previous[last["snapshot_id"]]
    previous = first["prev_snapshot_id"]
    return None if previous is None else str(previous), str(last["snapshot_id"])


def changed_rows(spark: SparkSession, table: str, events: list[Event]) -> DataFrame:
    """Return the rows that the events are about."""
    if {event["operation_type"] for event in events} != {"APPEND"}:
        raise SystemExit(f"{table} was not only appended to: read it whole")
    since, until = ends_of(events)
    if since is None:
        return spark.read.option("versionAsOf", until).table(table)
    ends = {"start-snapshot-id": since, "end-snapshot-id": until}
    return spark.read.format("iceberg").options(**ends).load(table)


def main(table: str, encoded: str, results: str) -> None:
    """Write the changed rows, and say how many there are."""
    spark = SparkSession.builder.getOrCreate()
    rows = changed_rows(spark, table, decode_events(encoded))
    rows.coalesce(1).write.mode("overwrite").json(results)
    print(f"{rows.count()} changed rows in {table}")  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
