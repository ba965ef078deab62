"""Finds the sensor that somebody means: by its own id, or by its upstream's and a job.

A sensor is one upstream of one job, as the ledger last recorded its control row, or one trigger.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import ConfigurationError
from harness.facts import whole
from harness.tables import Ledger, Store
from harness.trigger_facts import triggers_as_controls

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """One upstream of one job."""

    sensor_id: str
    upstream_id: str
    job_id: int
    job_name: str
    is_paused: bool


def find_sensor(store: Store, wanted: str, job: str | None = None) -> Sensor:
    """Return the sensor that an id means: its own, or its upstream's in the controls.

    Raises:
        ConfigurationError: No sensor, or more than one, has the id.
    """
    name = wanted.strip()
    rows = _recorded(store, name)
    meant = {key: row for key, row in rows.items() if job is None or _is_job(row, job)}
    if len(meant) > 1:
        listed = " and ".join(sorted(meant))
        raise ConfigurationError(
            f"{len(meant)} sensors have the id '{name}': name one by its own id, {listed}"
            + ("" if job else ", or its job with --job")
        )
    if not meant:
        of = f" of job '{job}'" if job else ""
        known = f"; the sensors of that id are {' and '.join(sorted(rows))}" if rows else ""
        raise ConfigurationError(
            f"There is no sensor '{name}'{of}{known or '; `sensors` lists every one by its id'}"
        )
    row = next(iter(meant.values()))
    return Sensor(
        sensor_id=str(row["control_id"]),
        upstream_id=str(row["upstream_id"]),
        job_id=whole(row["job_id"]),
        job_name=str(row["job_name"]),
        is_paused=row["job_state"] == "PAUSED",
    )


def _recorded(store: Store, name: str) -> dict[str, Row]:
    """Return the control rows that have an id, as the ledger last recorded them."""
    found = [
        str(row["control_id"])
        for column in ("control_id", "sensor_id")
        for row in store.read(Ledger.CONTROLS, where=[(column, "=", name)])
    ]
    if not found:
        named = (row for row in triggers_as_controls(store) if _is_called(row, name))
        return {str(row["control_id"]): row for row in named}
    rows = store.read(Ledger.CONTROLS, where=[("control_id", "in", sorted(set(found)))])
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (whole(row["tick_number"]), str(row["change"]))):
        newest[str(row["control_id"])] = row
    return {key: row for key, row in newest.items() if _has_id(row, name)}


def _has_id(row: Row, name: str) -> bool:
    return row["change"] != "removed" and _is_called(row, name)


def _is_called(row: Row, name: str) -> bool:
    return name in (row["control_id"], row["sensor_id"])


def _is_job(row: Row, job: str) -> bool:
    wanted = job.strip()
    if wanted == str(row["job_id"]):
        return True
    return wanted.lower() == str(row["job_name"]).strip().lower()
