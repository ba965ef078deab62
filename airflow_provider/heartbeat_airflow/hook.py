"""Finds an installation of Heartbeat by the name of an Airflow connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from heartbeat_airflow.client import Cluster, Heartbeat, HeartbeatError, HeartbeatRefusedError

_KNOWN = ("project", "python", "home", "config")


def cluster_of(connection: Connection) -> Cluster:
    """Read a connection of the type `heartbeat`.

    Raises:
        HeartbeatRefusedError: Its extra is wrong.
    """
    extra = connection.extra_dejson
    named = f"The connection '{connection.conn_id}'"
    unknown = sorted(set(extra) - set(_KNOWN))
    if unknown:
        raise HeartbeatRefusedError(
            f"{named} has `{unknown[0]}` in its extra, which means nothing there: allowed are "
            f"{', '.join(_KNOWN)}"
        )
    wrong = [name for name in _KNOWN if not isinstance(extra.get(name, ""), str)]
    if wrong or not extra.get("project"):
        name = wrong[0] if wrong else "project"
        raise HeartbeatRefusedError(
            f"{named} does not say in its extra what `{name}` is: write a text, such as "
            '{"project": "/srv/heartbeat"}'
        )
    return Cluster(
        name=connection.conn_id,
        project=extra["project"],
        python=extra.get("python") or str(Path(extra["project"]) / ".venv" / "bin" / "python"),
        home=extra.get("home") or None,
        config=extra.get("config") or None,
    )


class HeartbeatHook(BaseHook):
    """Connects to one installation of Heartbeat.

    Args:
        heartbeat_conn_id: The connection that names it.
    """

    conn_name_attr = "heartbeat_conn_id"
    default_conn_name = "heartbeat_default"
    conn_type = "heartbeat"
    hook_name = "Heartbeat"

    def __init__(self, heartbeat_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.heartbeat_conn_id = heartbeat_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the layout of the connection form."""
        example = '{"project": "/srv/heartbeat", "home": "/var/lib/heartbeat"}'
        return {
            "hidden_fields": ["host", "schema", "login", "password", "port"],
            "relabeling": {},
            "placeholders": {"extra": example},
        }

    def get_conn(self) -> Heartbeat:
        """Return a client of the installation."""
        return Heartbeat(cluster_of(self.get_connection(self.heartbeat_conn_id)))

    async def aget_conn(self) -> Heartbeat:
        """Return the same, without blocking the loop of a triggerer."""
        return Heartbeat(cluster_of(await self.aget_connection(self.heartbeat_conn_id)))


@contextmanager
def told_to_airflow() -> Iterator[None]:
    """Let Airflow retry what may succeed later, and fail at once what will not."""
    try:
        yield
    except HeartbeatRefusedError as error:
        raise AirflowFailException(str(error)) from error
    except HeartbeatError as error:
        raise AirflowException(str(error)) from error
