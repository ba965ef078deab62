"""Installations to examine: a complete one with ledgers on a disk, and access to its findings."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from harness.inspect.doctor.findings import Finding, Level
from harness.inspect.doctor.installation import Patient, patient_of
from harness.tick.install import STATE_VERSION
from tests.support.fake_clock import FakeClock

PROJECT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_patient(home: Path, config: str = "", **environment: str) -> Patient:
    """The project with this state directory and this ``heartbeat.yml``."""
    home.mkdir(mode=0o700, exist_ok=True)
    file = home.parent / "heartbeat.yml"
    file.write_text(config)
    reported = {"HEARTBEAT_HOME": str(home), "HEARTBEAT_CONFIG": str(file), **environment}
    return patient_of(PROJECT, reported, FakeClock(NOON))


def set_up(home: Path, version: int = STATE_VERSION) -> None:
    """Record that everything was built."""
    (home / "version.json").write_text(json.dumps({"state_version": version, "models": "x"}))


def levels(findings: Iterable[Finding]) -> list[Level]:
    return [each.level for each in findings]


def only(findings: Iterable[Finding], level: Level) -> Finding:
    """The one finding of a level; more or less than one is a failure."""
    [found] = [each for each in findings if each.level is level]
    return found
