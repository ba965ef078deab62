"""Reads the controls CSV as dbt reads it, keeps each row's line, and finds what breaks its form.

It judges header, lines and bytes; what the cells mean is judged by ``harness.controls.check``.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.controls.findings import Code, Finding, finding
from harness.controls.header import read_header
from harness.errors import ControlsError

#: dbt refuses a longer cell.
CELL_CHARACTERS = 131_072

_NO_LETTER_OR_DIGIT = re.compile(r"[^A-Za-z0-9]")
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRow:
    """One row, its cells without the spaces around them; an empty cell and ``null`` are ``""``."""

    line: int
    sensor_source: str = ""
    sensor_id: str = ""
    sensor_read_type: str = ""
    asset_description: str = ""
    upstream_key: str = ""
    preprocess_query: str = ""
    trigger_job_id: str = ""
    trigger_job_name: str = ""
    job_state: str = ""
    dependency_flag: str = ""

    #: The job's id; ``None`` when the cell holds no integer.
    job_id: int | None = None
    #: The row's id in ``sensors``; ``None`` while its parts are not there.
    sensors_key: str | None = None

    @property
    def source(self) -> str:
        """Return the source as it is compared: in lower case."""
        return self.sensor_source.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlsFile:
    """What the file holds, and what is wrong with its form."""

    path: Path
    rows: tuple[ControlRow, ...]
    #: The columns that the header has, by their right names.
    columns: frozenset[str]
    findings: tuple[Finding, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Return the ``sensors`` ids of the rows; what the next check calls the previous keys."""
        return frozenset(key for row in self.rows if (key := row.sensors_key) is not None)


def read_controls(path: Path) -> ControlsFile:
    """Read the file; never fails on what is in it.

    Raises:
        ControlsError: There is no such file, or it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        message = f"{path}: {reason}; put a CSV with the ten columns there"
        raise ControlsError(message) from error
    return parse_controls(data, path)


def parse_controls(data: bytes, path: Path) -> ControlsFile:
    """Read the bytes of a controls CSV."""
    if data.startswith(_UTF16_BOMS):
        message = "the file is UTF-16; save it as UTF-8."
        found = (finding(Code.NOT_UTF8, 1, None, message),)
        return ControlsFile(path=path, rows=(), columns=frozenset(), findings=found)
    findings: list[Finding] = []
    # dbt opens the file with universal newlines, inside quotes as well.
    lines = data.removeprefix(_UTF8_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _parsed(_decoded(lines, findings), path, findings)


def _decoded(data: bytes, findings: list[Finding]) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and "\0" not in text:
        return io.StringIO(text).readlines()
    lines = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.decode("utf-8", errors="replace")
        if "\ufffd".encode() not in raw and "\ufffd" in line:
            message = "the line is not UTF-8; save the file as UTF-8."
            findings.append(finding(Code.NOT_UTF8, number, None, message))
        if "\0" in line:
            message = "the line has a NUL byte in it; remove it."
            findings.append(finding(Code.NUL_BYTE, number, None, message))
        lines.append(line.replace("\0", "") + "\n")
    return lines


@dataclass(frozen=True, slots=True)
class _Record:
    """The cells of one row as they stand, and the lines on which it starts and ends."""

    start: int
    end: int
    cells: list[str]


def _parsed(lines: list[str], path: Path, findings: list[Finding]) -> ControlsFile:
    records = _records(lines, findings)
    first = next(records, _Record(1, 1, []))
    columns = read_header(first.cells, first.start, findings)
    rows = []
    if columns:
        complete = _complete(records, len(columns), findings)
        rows = [_row(record, columns) for record in complete]
    return ControlsFile(
        path=path,
        rows=tuple(rows),
        columns=frozenset(column for column in columns if column is not None),
        findings=tuple(findings),
    )


def _records(lines: list[str], findings: list[Finding]) -> Iterator[_Record]:
    """Split lines into rows; after a row that cannot be split, go on with the line below it."""
    at = 0
    while at < len(lines):
        reader = csv.reader((lines[number] for number in range(at, len(lines))), strict=True)
        start = end = at
        try:
            for cells in reader:
                end = at + reader.line_num
                yield _Record(start + 1, end, cells)
                start = end
            return
        except csv.Error as error:
            findings.append(_split_error(str(error), start + 1, at + reader.line_num))
            at = start + 1


def _split_error(reason: str, start: int, end: int) -> Finding:
    if "field limit" in reason:
        message = f"a cell is longer than {CELL_CHARACTERS:,} characters, the most dbt reads."
        return finding(Code.CELL_TOO_LONG, start, None, message)
    if "expected after" in reason and start == end:
        message = (
            "text follows a closing quote; quote the whole cell, and double each quote in its text."
        )
        return finding(Code.MISPLACED_QUOTE, start, None, message)
    message = (
        f"a quote that opens in this row is not closed (looked for it up to line {end});"
        " close it, and double each quote that belongs to the text."
    )
    return finding(Code.UNCLOSED_QUOTE, start, None, message)


def _complete(
    records: Iterator[_Record], expected: int, findings: list[Finding]
) -> Iterator[_Record]:
    """Pass on the rows with as many cells as the header; blank ones are left out."""
    held: _Record | None = None
    for record in records:
        if held is not None:
            pieces, held = held, None
            if (
                len(pieces.cells) + len(record.cells) - 1 == expected
                and len(record.cells) < expected
            ):
                findings.append(_broken(pieces, record, expected))
                continue
            findings.append(_miscounted(pieces, expected))
        if not any(cell.strip() for cell in record.cells):
            continue
        if len(record.cells) == expected:
            yield record
        elif len(record.cells) < expected:
            held = record
        else:
            findings.append(_miscounted(record, expected))
    if held is not None:
        findings.append(_miscounted(held, expected))


def _broken(first: _Record, second: _Record, expected: int) -> Finding:
    message = (
        f"the line breaks off after {len(first.cells)} of {expected} cells and line {second.start}"
        " looks like its rest; join them, or quote the cell that holds the line break."
    )
    return finding(Code.BROKEN_LINE, first.start, None, message)


def _miscounted(record: _Record, expected: int) -> Finding:
    count = len(record.cells)
    span = f" and runs to line {record.end}" if record.end > record.start else ""
    if count < expected:
        message = f"the row has {count} cells{span}; {expected} are needed, empty ones included."
        return finding(Code.TOO_FEW_CELLS, record.start, None, message)
    message = (
        f"the row has {count} cells{span}; expected are {expected}, so put text with a comma in it"
        ' into double quotes: ...,"Who buys, and why",...'
    )
    return finding(Code.TOO_MANY_CELLS, record.start, None, message)


def _row(record: _Record, columns: tuple[str | None, ...]) -> ControlRow:
    cells = {
        column: _clean(cell)
        for column, cell in zip(columns, record.cells, strict=True)
        if column is not None
    }
    job_id = _job_id(cells.get("trigger_job_id", ""))
    sensor_id = cells.get("sensor_id")
    key = f"{_NO_LETTER_OR_DIGIT.sub('_', sensor_id)}_{job_id}" if sensor_id and job_id else None
    return ControlRow(line=record.start, job_id=job_id, sensors_key=key, **cells)


def _job_id(text: str) -> int | None:
    # int() reads more than digits do, and refuses thousands of them.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else None


def _clean(cell: str) -> str:
    # dbt takes a blank cell and the word null for no value; only spaces are cut off by the models.
    bare = cell.strip()
    return "" if len(bare) <= 4 and bare.lower() in ("", "null") else cell.strip(" ")
