"""An installation that is examined, and its ledgers."""

from pathlib import Path

import pytest

from harness.inspect.doctor.installation import Patient
from harness.store.local import LocalStore
from tests.support.disk_ledgers import create_ledgers
from tests.support.patients import a_patient


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return a_patient(tmp_path / "home")


@pytest.fixture
def store(patient: Patient) -> LocalStore:
    return create_ledgers(patient.home.warehouse)
