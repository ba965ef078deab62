"""Builds small controls files: one good row, with the cells that a test changes."""

from collections.abc import Callable
from pathlib import Path

from harness.controls.check import check
from harness.controls.findings import Finding
from harness.controls.header import COLUMNS
from harness.controls.parse import parse_controls

HEADER = ",".join(COLUMNS)

GOOD = {
    "sensor_source": "delta_table",
    "sensor_id": "sales.orders",
    "sensor_read_type": "streaming",
    "asset_description": "Orders",
    "upstream_key": "",
    "preprocess_query": "",
    "trigger_job_id": "111",
    "trigger_job_name": "revenue",
    "job_state": "UNPAUSED",
    "dependency_flag": "TRUE",
}

Line = Callable[..., str]
Checked = Callable[..., list[Finding]]


def line(**cells: str) -> str:
    """Return a line of the file: the good row, with these cells instead."""
    row = {**GOOD, **cells}
    return ",".join('"' + row[column].replace('"', '""') + '"' for column in COLUMNS)


def checked(*lines: str, header: str = HEADER, **options: object) -> list[Finding]:
    """Return what a check finds in a file of these lines."""
    text = "\n".join((header, *lines)) + "\n"
    return check(parse_controls(text.encode(), Path("controls.csv")), **options)  # type: ignore[arg-type]
