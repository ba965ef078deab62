"""Reads ``seeds/event_triggers.csv``: one row per trigger and table, as the operator wrote it."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ControlsError

EVENT_TRIGGERS = Path("seeds") / "event_triggers.csv"

COLUMNS = (
    "trigger_id",
    "trigger_type",
    "job_id",
    "job_name",
    "table",
    "partition",
    "tags",
    "start_timestamp",
    "frequency",
    "frequency_unit",
    "time_zone",
    "expires_after",
    "missed_slots",
    "dependency_flag",
    "trigger_state",
)
PARTITION, SNAPSHOT = "PARTITION", "SNAPSHOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """One line of the file; every cell is text without the spaces around it."""

    line: int
    trigger_id: str
    trigger_type: str
    job_id: str
    job_name: str
    table: str
    partition: str
    tags: str
    start_timestamp: str
    frequency: str
    frequency_unit: str
    time_zone: str
    expires_after: str
    missed_slots: str
    dependency_flag: str
    trigger_state: str

    @property
    def kind(self) -> str:
        """PARTITION or SNAPSHOT, however it is written; anything else as it is."""
        return self.trigger_type.upper()

    @property
    def cells(self) -> Mapping[str, str]:
        """Every cell by its column."""
        return {column: getattr(self, column) for column in COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggersFile:
    """The rows that could be read, and what is wrong with the lines that could not."""

    rows: tuple[TriggerRow, ...] = ()
    #: Line and sentence.
    problems: tuple[tuple[int, str], ...] = ()


def read_triggers(project: Path) -> TriggersFile:
    """Read the file; one that is not there has no rows.

    Raises:
        ControlsError: It cannot be read at all.
    """
    path = project / EVENT_TRIGGERS
    try:
        text = path.read_text(encoding="utf-8-sig") if path.is_file() else ",".join(COLUMNS)
    except (OSError, UnicodeDecodeError) as error:
        raise ControlsError(
            f"{EVENT_TRIGGERS} cannot be read ({error}): make it readable, or remove it"
        ) from error
    return parse_triggers(text)


def parse_triggers(text: str) -> TriggersFile:
    """Read the text of the file."""
    rows: list[TriggerRow] = []
    problems: list[tuple[int, str]] = []
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    began = 1
    try:
        if tuple(next(lines, [])) != COLUMNS:
            message = f"the header has to be {','.join(COLUMNS)}"
            return TriggersFile(problems=((1, message),))
        began = lines.line_num + 1
        for cells in lines:
            if len(cells) == len(COLUMNS):
                kept = dict(zip(COLUMNS, map(str.strip, cells), strict=True))
                rows.append(TriggerRow(line=began, **kept))
            elif any(cells):
                message = (
                    f"{len(cells)} cells; there have to be {len(COLUMNS)}: {','.join(COLUMNS)}"
                )
                problems.append((began, message))
            began = lines.line_num + 1
    except csv.Error as error:
        problems.append((began, f"it cannot be read as CSV ({error}); check its quotes"))
    return TriggersFile(rows=tuple(rows), problems=tuple(problems))


def job_names(rows: Iterable[TriggerRow]) -> dict[int, str]:
    """Return the jobs that the triggers name, as far as they name one."""
    return {int(row.job_id): row.job_name for row in rows if row.job_id.isdecimal()}
