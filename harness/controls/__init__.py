"""Reads and checks the controls CSV before anything moves: one file in, all findings out."""

from harness.controls.checking import check
from harness.controls.findings import (
    Code,
    Finding,
    Severity,
    findings_as_json,
    has_errors,
    render_findings,
)
from harness.controls.reading import COLUMNS, ControlRow, ControlsFile, read_controls

__all__ = [
    "COLUMNS",
    "Code",
    "ControlRow",
    "ControlsFile",
    "Finding",
    "Severity",
    "check",
    "findings_as_json",
    "has_errors",
    "read_controls",
    "render_findings",
]
