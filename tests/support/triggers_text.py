"""The text of a file of triggers, for tests."""

from harness.controls.triggers.parse import COLUMNS

#: A trigger that is right.
DAILY = {
    "trigger_id": "daily",
    "trigger_type": "PARTITION",
    "job_id": "7",
    "job_name": "reports",
    "table": "sales.orders",
    "partition": "{-1 day yyyy-MM-dd}",
    "start_timestamp": "2026-03-01T06:00",
    "frequency": "1",
    "frequency_unit": "DAYS",
}


def row(**cells: str) -> str:
    """Return the line of a trigger that is right but for these cells."""
    content = {**dict.fromkeys(COLUMNS, ""), **DAILY, **cells}
    return ",".join(content[column] for column in COLUMNS)


def text(*rows: str) -> str:
    """Return a file with these lines after the header."""
    return "\n".join([",".join(COLUMNS), *rows, ""])
