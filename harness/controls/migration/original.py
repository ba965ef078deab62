"""Reads a control table of the original sensor, with its state: fifteen columns, from anywhere.

The table was written by other programs and edited by people: each cell is data, and one bad row
leaves the others as they are.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import (
    PROCESSED,
    UNFINISHED,
    ImportedSensor,
    ImportedStatus,
    instant_in,
)
from harness.controls.migration.plan import Candidate, Remark, original_id, place_of
from harness.errors import ControlsError
from harness.platform.text import escaped

STATE_COLUMNS = (
    "status",
    "status_change_timestamp",
    "latest_event_fetched_timestamp",
    "job_start_timestamp",
    "job_end_timestamp",
)
#: The document itself spells it in two ways.
_OTHER_NAMES = {"dependancy_flag": "dependency_flag"}
#: Their events carry no time of the change.
_WITHOUT_TIMES = frozenset({"kafka"})
_LARGEST_EXACT_FLOAT = 2**53

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The rows of a control table, each with its place."""

    rows: tuple[tuple[str, Record], ...]
    remarks: tuple[Remark, ...] = ()


def records_of_csv(path: Path) -> Records:
    """Read an export.

    Raises:
        ControlsError: It cannot be read, or has no header of a control table.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise ControlsError(
            f"{path} cannot be read ({error.strerror or error}): name a file that can be"
        ) from error
    lines = csv.reader(io.StringIO(text, newline=""))
    rows: list[tuple[str, Record]] = []
    remarks: list[Remark] = []
    header: list[str] = []
    began = 1
    try:
        for cells in lines:
            place, began = place_of("line", began), lines.line_num + 1
            if not header:
                header = _header(cells, str(path))
            elif len(cells) == len(header):
                rows.append((place, dict(zip(header, cells, strict=True))))
            elif any(cells):
                remarks.append(_miscounted(place, len(cells), len(header)))
    except csv.Error as error:
        remedy = "check its quotes, then add it and the lines below by hand"
        reason = f"it cannot be read as CSV ({error})"
        place = place_of("line", began)
        remarks.append(Remark(place=place, reason=reason, remedy=remedy, is_left_out=True))
    if not header:
        raise ControlsError(f"{path} is empty; export the control table with its header")
    return Records(rows=tuple(rows), remarks=tuple(remarks))


def records_of_table(rows: Sequence[Record], name: str) -> Records:
    """Read the rows of a table.

    Args:
        rows: They have no order of their own.
        name: The table, for messages.

    Raises:
        ControlsError: It is not a control table.
    """
    if not rows:
        raise ControlsError(f"{name} has no rows; name a control table that has some")
    header = _header(list(rows[0]), name)
    records = [dict(zip(header, row.values(), strict=True)) for row in rows]
    records.sort(key=lambda row: [_text(row.get(name)) for name in COLUMNS])
    places = (
        place_of("row", f"{_text(row.get('sensor_id'))} of job {_text(row.get('trigger_job_id'))}")
        for row in records
    )
    return Records(rows=tuple(zip(places, records, strict=True)))


def candidates_of(
    records: Records, *, discards_existing: Callable[[str, str], bool] = lambda *_: False
) -> tuple[list[Candidate], list[Remark]]:
    """Return the control rows of a table, and what of their state is not carried over.

    Args:
        records: The table.
        discards_existing: Whether heartbeat.yml counts an upstream's existing data as a baseline.
    """
    remarks = [*records.remarks]
    candidates = []
    for place, record in records.rows:
        cells = {name: _text(record.get(name)) for name in COLUMNS}
        state = {name: _text(record.get(name)) for name in STATE_COLUMNS}
        sensor, said = _sensor(place, cells, state)
        remarks += said
        remarks += _of_upstream(place, cells, sensor, discards_existing)
        candidates.append(Candidate(place=place, cells=cells, sensor=sensor))
    return candidates, remarks


def _header(cells: Sequence[str], name: str) -> list[str]:
    header = [_OTHER_NAMES.get(each, each) for each in (cell.strip().lower() for cell in cells)]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise ControlsError(
            f"{name} is not a control table: it has no column {', '.join(missing)}; export all of"
            " its fifteen columns, with their names"
        )
    if repeated := sorted({column for column in header if header.count(column) > 1}):
        raise ControlsError(f"{name} has the column {', '.join(repeated)} twice; remove one")
    return header


def _miscounted(place: str, count: int, expected: int) -> Remark:
    reason = f"the row has {count} cells, and the header has {expected}"
    remedy = "quote its commas in the export, or add the row by hand and check its job's others"
    return Remark(place=place, reason=reason, remedy=remedy, is_left_out=True)


def _sensor(
    place: str, cells: Mapping[str, str], state: Mapping[str, str]
) -> tuple[ImportedSensor, list[Remark]]:
    remarks: list[Remark] = []
    instants: dict[str, datetime | None] = {}
    for name in STATE_COLUMNS[1:]:
        try:
            instants[name] = instant_in(state[name])
        except (ValueError, OverflowError):
            instants[name] = None
            reason = f"{name} '{_cut(state[name])}' is not an instant"
            remedy = "the first probe goes on without it"
            remarks.append(Remark(place=place, reason=reason, remedy=remedy))
    status = _status(place, state["status"], remarks)
    sensor = ImportedSensor(
        control_id="",
        sensor_id=original_id(cells["sensor_id"].strip(), cells["trigger_job_id"].strip()),
        status=status,
        fetched_at=instants["latest_event_fetched_timestamp"],
        changed_at=instants["status_change_timestamp"],
        job_started_at=instants["job_start_timestamp"],
        job_ended_at=instants["job_end_timestamp"],
    )
    return sensor, remarks


def _status(place: str, text: str, remarks: list[Remark]) -> ImportedStatus | None:
    word = text.strip().upper().replace(" ", "_")
    if not word:
        return None
    if word not in ImportedStatus.__members__:
        reason = f"status '{_cut(text)}' is not a status of a control table, so the job is held"
        remedy = "a run that succeeds releases it, or `heartbeat release` does"
        remarks.append(Remark(place=place, reason=reason, remedy=remedy))
        return ImportedStatus.FAILED
    return ImportedStatus(word)


def _of_upstream(
    place: str,
    cells: Mapping[str, str],
    sensor: ImportedSensor,
    discards_existing: Callable[[str, str], bool],
) -> Iterator[Remark]:
    source, sensor_id = cells["sensor_source"].strip().lower(), cells["sensor_id"].strip()
    if sensor.status in UNFINISHED:
        yield Remark(
            place=place,
            reason=f"status is {sensor.status} and the end of the run is not recorded, so the job"
            " is held",
            remedy="a run that succeeds releases it, or `heartbeat release` does",
        )
    if sensor.status in PROCESSED and source in _WITHOUT_TIMES:
        yield Remark(
            place=place,
            reason=f"a change of {source} has no time, so whatever is there at the first probe"
            " counts as processed",
            remedy="run the job once by hand if data came after the original was stopped",
        )
    elif sensor.status in PROCESSED and sensor.processed_until is None:
        yield Remark(
            place=place,
            reason="no timestamp records what was processed, so whatever is there at the first"
            " probe counts as processed",
            remedy="run the job once by hand if data came since",
        )
    if sensor.status is ImportedStatus.NEW_EVENT_AVAILABLE and discards_existing(source, sensor_id):
        yield Remark(
            place=place,
            reason="an event waits, and first_sight of heartbeat.yml discards existing data",
            remedy=f"set first_sight: event for {source} {_cut(sensor_id)}",
        )


def _text(value: object) -> str:
    """Return a cell as a CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT_FLOAT:
        return str(int(value))
    # As dbt reads them; a lone carriage return would end a line that has no quotes.
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")
    return "" if text.strip().lower() == "null" else text


def _cut(text: str) -> str:
    return escaped(text.strip())[:60]
