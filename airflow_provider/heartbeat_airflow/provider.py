"""Describes this package to Airflow."""

from importlib.metadata import version


def get_provider_info() -> dict[str, object]:
    """Return what Airflow's list of providers shows, and the type of connection that is added."""
    name = "heartbeat-airflow"
    return {
        "package-name": name,
        "name": "Heartbeat",
        "description": "Data-change events and jobs of Heartbeat, for Airflow.",
        "versions": [version(name)],
        "connection-types": [
            {
                "connection-type": "heartbeat",
                "hook-class-name": "heartbeat_airflow.hook.HeartbeatHook",
            }
        ],
    }
