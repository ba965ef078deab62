"""Collects the rows of an import, leaves out what no row can hold, and writes the seeds.

A job never loses a dependency by an import: where one of its rows is left out, the others are
PAUSED.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.controls import imported_sensors
from harness.controls.check import check
from harness.controls.findings import Finding, Severity
from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import IMPORTED_SENSORS, ImportedSensor
from harness.controls.load import CONTROLS
from harness.controls.optional_seeds import is_job
from harness.controls.parse import ControlRow, ControlsFile, parse_controls
from harness.errors import ControlsError
from harness.platform.files import write_atomically
from harness.platform.text import escaped

_PAUSED = "PAUSED"
_LONGEST_PLACE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing that is not carried over as it was."""

    #: The line, row or job, as a person finds it.
    place: str
    reason: str
    remedy: str
    #: The row, or the job, is not in the CSV.
    is_left_out: bool = False

    def __str__(self) -> str:
        """Return it as one line for a person."""
        return f"{self.place}: {self.reason}; {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A control row to be, and how far its job had come with it."""

    place: str
    #: By column of the controls CSV.
    cells: Mapping[str, str]
    #: Without its control_id, which follows from the cells.
    sensor: ImportedSensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an import writes and reports."""

    rows: tuple[tuple[str, ...], ...] = ()
    sensors: tuple[ImportedSensor, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def controls_text(self) -> str:
        """The controls CSV."""
        return _csv(COLUMNS, self.rows)

    @property
    def sensors_text(self) -> str:
        """The seed of imported sensors."""
        return _csv(imported_sensors.COLUMNS, [each.cells() for each in self.sensors])


@dataclass(slots=True)
class _Draft:
    kept: list[tuple[Candidate, ControlRow]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    #: Jobs of which a row is left out.
    broken: set[int] = field(default_factory=set)
    #: A row is left out that may be about any job.
    is_blind: bool = False

    def leave_out(self, candidate: Candidate, found: Finding) -> None:
        self.remarks.append(replace(remark_of(candidate.place, found), is_left_out=True))
        # Not as it was parsed: of some rows nothing is.
        job = candidate.cells.get("trigger_job_id", "")
        if is_job(job):
            self.broken.add(int(job.strip()))
        else:
            self.is_blind = True

    def is_without_a_row(self, row: ControlRow) -> bool:
        return self.is_blind or row.job_id in self.broken


def plan(
    candidates: Iterable[Candidate], *, may_read: Sequence[str] = (), is_blind: bool = False
) -> Plan:
    """Return the seeds for some rows; a row that cannot be one is left out, and reported.

    Args:
        candidates: The rows, in their order.
        may_read: Tables that a preprocess query may read besides the new rows.
        is_blind: A row could not be read, so that it may be about any job.
    """
    draft = _Draft(is_blind=is_blind)
    for candidate in candidates:
        _take(candidate, draft, may_read)
    warnings = _without_contradictions(draft)
    rows = []
    for candidate, row in draft.kept:
        cells = dict(candidate.cells)
        if draft.is_without_a_row(row) and row.job_state.upper() != _PAUSED:
            cells["job_state"] = _PAUSED
            if not draft.is_blind:
                draft.remarks.append(_paused(candidate.place, f"job {row.job_id} has"))
        rows.append(tuple(cells.get(name, "") for name in COLUMNS))
    if draft.is_blind and rows:
        draft.remarks.append(_paused("every row", "some job, which cannot be read, has"))
    sensors = tuple(_sensors(draft))
    return Plan(rows=tuple(rows), sensors=sensors, remarks=(*draft.remarks, *warnings))


def _paused(place: str, whose: str) -> Remark:
    return Remark(
        place=place,
        reason=f"{whose} another row that is left out, so it is PAUSED",
        remedy="add that row by hand, then set this to UNPAUSED",
    )


def write(project: Path, result: Plan, *, force: bool) -> tuple[Path, ...]:
    """Write the seeds; none for an import without rows.

    Args:
        project: The folder with ``seeds``.
        result: What to write.
        force: Overwrite files that have rows.

    Returns:
        The files.

    Raises:
        ControlsError: A file has rows already; nothing is written.
        StateError: A file cannot be written.
    """
    if not result.rows:
        return ()
    # The state first: without it, the rows of the controls would start their jobs again.
    texts = {IMPORTED_SENSORS: result.sensors_text, CONTROLS: result.controls_text}
    if not force and (taken := [name for name in texts if _has_rows(project / name)]):
        named = " and in ".join(map(str, taken))
        raise ControlsError(f"There are rows in {named} already; --force overwrites them")
    for name, text in texts.items():
        write_atomically(project / name, text, is_lasting=True)
    return tuple(texts)


def remark_of(place: str, found: Finding) -> Remark:
    """Return a finding of the controls as a remark: the remedy follows its semicolon."""
    reason, _, remedy = found.message.rstrip(".").partition("; ")
    named = f"{found.column}: {reason}" if found.column else reason
    remedy = remedy or "correct it in the controls CSV"
    return Remark(place=place, reason=named, remedy=remedy)


def place_of(kind: str, name: object) -> str:
    """Return a name for a place, safe to print."""
    return f"{kind} {escaped(str(name))[:_LONGEST_PLACE]}"


def _has_rows(path: Path) -> bool:
    """Return whether a file holds anything besides its header."""
    try:
        return len(path.read_bytes().split()) > 1 or path.is_symlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ControlsError(
            f"{path.name} cannot be read ({error.strerror or error}): correct it, or remove it"
        ) from error


def _take(candidate: Candidate, draft: _Draft, may_read: Sequence[str]) -> None:
    """Check a row on its own: it has to come out of a CSV as it went in."""
    controls = _parsed([candidate])
    row = controls.rows[0] if len(controls.rows) == 1 else None
    errors = [*_errors(check(controls, may_read=may_read))]
    for found in errors:
        draft.leave_out(candidate, found)
    if not errors and row is not None:
        draft.kept.append((candidate, row))
    elif not errors:
        remedy = "nothing is needed, unless cells of it were lost in the export"
        empty = Remark(place=candidate.place, reason="the row is empty", remedy=remedy)
        draft.remarks.append(replace(empty, is_left_out=True))


def _without_contradictions(draft: _Draft) -> list[Remark]:
    """Leave out rows that contradict an earlier one; return the warnings about the others."""
    while draft.kept:
        controls = _parsed([candidate for candidate, _ in draft.kept])
        by_line = {row.line: pair for row, pair in zip(controls.rows, draft.kept, strict=True)}
        # Each row was checked on its own, queries included.
        found = [each for each in check(controls) if each.line in by_line]
        wrong = {each.line: each for each in _errors(found) if each.column != "preprocess_query"}
        if not wrong:
            return [
                remark_of(by_line[each.line][0].place, each)
                for each in found
                if each.severity is Severity.WARNING
            ]
        for line, each in wrong.items():
            draft.leave_out(by_line[line][0], each)
        draft.kept = [pair for line, pair in by_line.items() if line not in wrong]
    return []


def _sensors(draft: _Draft) -> Iterator[ImportedSensor]:
    taken: set[str] = set()
    for candidate, row in draft.kept:
        if candidate.sensor is None or row.sensors_key is None:
            continue
        sensor = replace(candidate.sensor, control_id=row.sensors_key)
        name = "" if sensor.sensor_id == row.sensors_key else sensor.sensor_id
        if name and (name in taken or not name.isprintable() or name != name.strip()):
            draft.remarks.append(
                Remark(
                    place=candidate.place,
                    reason=f"its id '{escaped(name)}' in sensors is not unique, or not readable",
                    remedy=f"let its followers use {row.sensors_key}",
                )
            )
            name = ""
        taken.add(name)
        if name or sensor.status is not None:
            yield replace(sensor, sensor_id=name)


def original_id(sensor_id: str, job_id: str) -> str:
    """Return the id that the original gives a sensor: it replaces colon, space and dot alone."""
    return f"{re.sub('[ :.]', '_', sensor_id)}_{job_id}"


def _errors(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (each for each in findings if each.severity is Severity.ERROR)


def _parsed(candidates: Iterable[Candidate]) -> ControlsFile:
    rows = [[each.cells.get(name, "") for name in COLUMNS] for each in candidates]
    # What is no text becomes bytes that the reader reports.
    return parse_controls(_csv(COLUMNS, rows).encode(errors="surrogatepass"), CONTROLS)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()
