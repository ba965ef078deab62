"""Runs when a table has changed, with the changes."""

from airflow.sdk import DAG, task

from heartbeat_airflow.assets import table_asset, triggering_events
from heartbeat_airflow.events import DataChangeEvent

pageviews = table_asset("lake.data.pageviews", cluster=DataChangeEvent.CLUSTER1, poll_interval=1)

with DAG("on_each_change", schedule=[pageviews], catchup=False) as dag:

    @task
    def changes(triggering_asset_events=None) -> list[str]:
        """Return the snapshots that have come."""
        events = triggering_events(triggering_asset_events)
        return [str(event["snapshot_id"]) for event in events]

    changes()
