"""Judges the header: the ten columns, their names and their order."""

from collections.abc import Sequence

from harness.controls.findings import Code, Finding, closest, finding, listed, shown

#: The columns of the controls CSV, in their order.
COLUMNS = (
    "sensor_source",
    "sensor_id",
    "sensor_read_type",
    "asset_description",
    "upstream_key",
    "preprocess_query",
    "trigger_job_id",
    "trigger_job_name",
    "job_state",
    "dependency_flag",
)


def read_header(cells: Sequence[str], line: int, findings: list[Finding]) -> tuple[str | None, ...]:
    """Return which column each cell of the header stands for, ``None`` where it is none of ours.

    A misspelled name still counts for the column it resembles, so that its cells are checked, too.
    """
    if not any(cell in COLUMNS or _meant(cell, cells) for cell in cells):
        message = f"the header is missing; the first line has to be {','.join(COLUMNS)}."
        findings.append(finding(Code.HEADER_MISSING, line, None, message))
        return ()
    meant = tuple(_column_of(cell, cells, line, findings) for cell in cells)
    for column in COLUMNS:
        _count(column, meant, line, findings)
    known = list(dict.fromkeys(column for column in meant if column is not None))
    if known != sorted(known, key=COLUMNS.index):
        message = f"the columns stand in another order; the order has to be {','.join(COLUMNS)}."
        findings.append(finding(Code.COLUMN_ORDER, line, None, message))
    return meant


def _count(column: str, meant: Sequence[str | None], line: int, findings: list[Finding]) -> None:
    times = meant.count(column)
    if times == 0:
        message = f"the column is missing; the header has to be {','.join(COLUMNS)}."
        findings.append(finding(Code.COLUMN_MISSING, line, column, message))
    elif times > 1:
        message = f"the column stands there {times} times; exactly once is allowed."
        findings.append(finding(Code.COLUMN_REPEATED, line, column, message))


def _column_of(cell: str, cells: Sequence[str], line: int, findings: list[Finding]) -> str | None:
    if cell in COLUMNS:
        return cell
    column = _meant(cell, cells)
    hint = f"did you mean {column}?" if column else f"allowed are {listed(COLUMNS, 'and')}."
    message = f"unknown column {shown(cell)}; {hint}"
    findings.append(finding(Code.COLUMN_UNKNOWN, line, column, message))
    return column


def _meant(cell: str, cells: Sequence[str]) -> str | None:
    """Return the column that a misspelled name stands for, if no other cell has that name."""
    return closest(cell, [column for column in COLUMNS if column not in cells])
