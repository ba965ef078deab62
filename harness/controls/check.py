"""Checks a controls file as a whole: every finding at once, sorted by line."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from harness.controls.cells import RowChecks
from harness.controls.findings import WITHOUT_ROWS, Code, Finding, finding, shown
from harness.controls.header import COLUMNS
from harness.controls.parse import ControlRow, ControlsFile
from harness.platform.text import escaped

#: Losing fewer rows than this is everyday work.
REMOVED_ROWS_ALLOWED = 5


class Configured(Protocol):
    """What the configuration has for the rows."""

    def lacks_command(self, job_id: int) -> bool:
        """Return whether the local Jobs API has nothing to run for a job."""
        ...

    def lacks_connection(self, source: str, sensor_id: str) -> str | None:
        """Return the key of the connection that an upstream needs and that is not there."""
        ...

    def catalog_without_files(self, source: str, sensor_id: str) -> str | None:
        """Return the catalog that a table is in and that does not list its files."""
        ...


def check(
    controls: ControlsFile,
    *,
    previous_keys: Collection[str] | None = None,
    removal_is_meant: bool = False,
    may_read: Collection[str] = (),
    configured: Configured | None = None,
) -> list[Finding]:
    """Return everything that is wrong with the file, sorted by line and column.

    Args:
        controls: The file, as ``read_controls`` returned it.
        previous_keys: The ``sensors`` ids of the rows in force; ``None`` when there are none yet.
        removal_is_meant: Whether the removal of many rows was accepted (``--yes``).
        may_read: Tables that a preprocess query may read besides the new rows.
        configured: What heartbeat.yml has; without it nothing is reported as missing there.
    """
    rows = controls.rows
    checks = RowChecks(columns=controls.columns, may_read=may_read)
    findings = list(controls.findings)
    for row in rows:
        findings.extend(checks.findings(row))
    findings.extend(_duplicates(rows))
    findings.extend(_jobs(rows))
    if configured is not None:
        findings.extend(_without_command(rows, configured))
        findings.extend(_without_connection(rows, configured))
        findings.extend(_without_files(rows, configured))
    if controls.columns and not rows and not findings:
        findings.append(finding(Code.NO_ROWS, 1, None, WITHOUT_ROWS))
    if previous_keys is not None and not removal_is_meant:
        findings.extend(_mass_removal(controls, frozenset(previous_keys)))
    return sorted(findings, key=_place)


def _place(each: Finding) -> tuple[int, int, str]:
    position = COLUMNS.index(each.column) if each.column in COLUMNS else -1
    return (each.line, position, each.code.value)


def _duplicates(rows: Sequence[ControlRow]) -> Iterator[Finding]:
    first: dict[str, ControlRow] = {}
    for row in rows:
        key = row.sensors_key
        if key is None:
            continue
        earlier = first.setdefault(key, row)
        if earlier is not row:
            alike = earlier.sensor_id == row.sensor_id and earlier.source == row.source
            what = "the row repeats" if alike else f"{shown(row.sensor_id)} gets the same id as"
            message = (
                f"{what} line {earlier.line} ({shown(key)} in sensors); one row per upstream and"
                " job is allowed, and ids have to differ in a letter or a digit."
            )
            yield finding(Code.DUPLICATE_ROW, row.line, "sensor_id", message)


def _jobs(rows: Sequence[ControlRow]) -> Iterator[Finding]:
    jobs: defaultdict[int, list[ControlRow]] = defaultdict(list)
    for row in rows:
        if row.job_id is not None:
            jobs[row.job_id].append(row)
    for job_id, rows_of_job in jobs.items():
        yield from _two_names(job_id, rows_of_job)
        yield from _mixed_states(job_id, rows_of_job)
        if all(row.dependency_flag.upper() == "FALSE" for row in rows_of_job):
            message = f"job {job_id} has only soft dependencies; any event of theirs starts it."
            line = rows_of_job[0].line
            yield finding(Code.JOB_ONLY_SOFT, line, "dependency_flag", message)


def _two_names(job_id: int, rows: Sequence[ControlRow]) -> Iterator[Finding]:
    named = [row for row in rows if row.trigger_job_name]
    seen: set[str] = set()
    for row in named:
        if row.trigger_job_name not in seen and seen:
            message = (
                f"job {job_id} is {shown(row.trigger_job_name)} here and"
                f" {shown(named[0].trigger_job_name)} on line {named[0].line}; give it one name."
            )
            yield finding(Code.JOB_WITH_TWO_NAMES, row.line, "trigger_job_name", message)
        seen.add(row.trigger_job_name)


def _mixed_states(job_id: int, rows: Sequence[ControlRow]) -> Iterator[Finding]:
    paused = next((row for row in rows if row.job_state.upper() == "PAUSED"), None)
    unpaused = next((row for row in rows if row.job_state.upper() == "UNPAUSED"), None)
    if paused is None or unpaused is None:
        return
    message = (
        f"job {job_id} is PAUSED on line {paused.line} and UNPAUSED on line {unpaused.line}; a"
        " paused hard dependency holds the job back, a paused soft one is ignored."
    )
    yield finding(Code.JOB_WITH_MIXED_STATES, max(paused.line, unpaused.line), "job_state", message)


def _without_command(rows: Sequence[ControlRow], configured: Configured) -> Iterator[Finding]:
    named = {row.job_id: row for row in reversed(rows) if row.job_id is not None}
    for job_id, row in named.items():
        if configured.lacks_command(job_id):
            message = (
                f"job {job_id} ({shown(row.trigger_job_name)}) has no command, so that its starts"
                " are refused; name one in heartbeat.yml under jobs.local.commands."
            )
            yield finding(Code.JOB_WITHOUT_COMMAND, row.line, "trigger_job_id", message)


def _without_connection(rows: Sequence[ControlRow], configured: Configured) -> Iterator[Finding]:
    first: dict[str, ControlRow] = {}
    for row in rows:
        key = configured.lacks_connection(row.source, row.sensor_id)
        if key is not None:
            first.setdefault(key, row)
    for key, row in first.items():
        message = (
            f"{shown(row.sensor_id)} needs the connection {key}, which heartbeat.yml does not have,"
            " so that its probes fail; add it there."
        )
        yield finding(Code.CONNECTION_MISSING, row.line, "sensor_id", message)


def _without_files(rows: Sequence[ControlRow], configured: Configured) -> Iterator[Finding]:
    for row in rows:
        catalog = configured.catalog_without_files(row.source, row.sensor_id)
        if catalog is not None:
            message = (
                f"{shown(row.sensor_id)} is a table of the catalog {catalog}, which lists no files,"
                f" so that its probes fail; name hive_metastore.{escaped(row.sensor_id)[:80]} if it"
                " is there, sense the folder of its files as file, or let its writer register a"
                " change."
            )
            yield finding(Code.CATALOG_WITHOUT_FILES, row.line, "sensor_id", message)


def _mass_removal(controls: ControlsFile, previous: frozenset[str]) -> Iterator[Finding]:
    gone = len(previous - controls.keys)
    if gone < REMOVED_ROWS_ALLOWED or gone * 2 <= len(previous):
        return
    message = (
        f"{gone} of the {len(previous)} rows in force are gone from the file; restore them, or"
        " confirm the removal with `python -m harness tick --yes`."
    )
    yield finding(Code.MASS_REMOVAL, 1, None, message)
