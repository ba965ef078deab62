"""Reads the seed `imported_sensors`: how far an earlier sensor had come with each control row.

`heartbeat import` writes it. A row counts until its upstream is probed for the first time; the id
that it has in the table `sensors` counts as long as the row is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

IMPORTED_SENSORS = Path("seeds") / "imported_sensors.csv"
COLUMNS = (
    "control_id",
    "sensor_id",
    "status",
    "latest_event_fetched_timestamp",
    "status_change_timestamp",
    "job_start_timestamp",
    "job_end_timestamp",
)
_INSTANTS = COLUMNS[3:]
#: Anything outside is a number that was taken for a time.
_YEARS = range(1970, 10_000)


class ImportedStatus(StrEnum):
    """The status words of a control table."""

    NEW_EVENT_AVAILABLE = "NEW_EVENT_AVAILABLE"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


#: Existing data was passed to a run, whatever became of the run.
PROCESSED = frozenset({ImportedStatus.COMPLETED, ImportedStatus.IN_PROGRESS, ImportedStatus.FAILED})
#: Whether that run succeeded is not recorded.
UNFINISHED = frozenset({ImportedStatus.IN_PROGRESS, ImportedStatus.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSensor:
    """One row of the seed."""

    control_id: str
    #: Its id in the table `sensors`; the control_id when there is none.
    sensor_id: str = ""
    #: Nothing when no event was ever found.
    status: ImportedStatus | None = None
    fetched_at: datetime | None = None
    changed_at: datetime | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None

    @property
    def processed_until(self) -> datetime | None:
        """The instant up to which changes count as passed to the job, where it is known."""
        return self.fetched_at or self.job_started_at or self.changed_at

    def cells(self) -> tuple[str, ...]:
        """Return the row of the seed."""
        instants = (self.fetched_at, self.changed_at, self.job_started_at, self.job_ended_at)
        return (
            self.control_id,
            self.sensor_id,
            self.status or "",
            *("" if each is None else each.isoformat() for each in instants),
        )


def instant_in(text: str) -> datetime | None:
    """Read an instant as an export writes it; one without a zone is in UTC.

    Raises:
        ValueError: It is not an instant.
    """
    if not text.strip():
        return None
    found = datetime.fromisoformat(text.strip())
    if found.year not in _YEARS:
        raise ValueError(f"the year {found.year} is not possible for a sensor")
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def problem_in(cells: Sequence[str]) -> str | None:
    """Return what is wrong with a row of the seed, in one sentence; nothing when it is right."""
    row = dict(zip(COLUMNS, map(str.strip, cells), strict=True))
    if not row["control_id"]:
        return "control_id is empty; it has the id that `init` gives the control row"
    if row["status"] and row["status"] not in ImportedStatus.__members__:
        allowed = ", ".join(ImportedStatus)
        return f"status '{row['status']}' is not allowed; write {allowed}, or nothing"
    for name in _INSTANTS:
        try:
            instant_in(row[name])
        except (ValueError, OverflowError):
            return f"{name} '{row[name]}' is not an instant; write 2026-03-01T06:00:00Z, or nothing"
    return None


def read_imported(rows: Iterator[Sequence[str]]) -> Mapping[str, ImportedSensor]:
    """Return the rows that are right, by control_id.

    Args:
        rows: The cells of each row; the header is none of them.
    """
    found = {}
    for cells in rows:
        if len(cells) != len(COLUMNS) or problem_in(cells) is not None:
            continue
        control_id, sensor_id, status, *instants = map(str.strip, cells)
        fetched, changed, started, ended = map(instant_in, instants)
        found[control_id] = ImportedSensor(
            control_id=control_id,
            sensor_id=sensor_id,
            status=ImportedStatus(status) if status else None,
            fetched_at=fetched,
            changed_at=changed,
            job_started_at=started,
            job_ended_at=ended,
        )
    return found
