"""What the doctor finds of an engine; processes without Spark stand in for it."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.load import Settings
from harness.context import wanted_engine
from harness.inspect.doctor.engine import engine
from harness.inspect.doctor.findings import Finding, Level
from harness.inspect.doctor.installation import Patient
from harness.platform.spark.engine import engine_folder
from tests.support.fake_engines import a_record, an_engine, used, write_record
from tests.support.patients import a_patient, levels, only

#: No process has it: it is beyond the largest that Linux gives.
NO_PID = 2**22 + 1


def only_ok(patient: Patient) -> Finding:
    found = [*engine(patient)]
    assert levels(found) == [Level.OK]
    return found[0]


def checksum(patient: Patient) -> str:
    assert isinstance(patient.settings, Settings)
    return wanted_engine(patient.settings).checksum


def test_an_engine_that_no_command_has_started_yet_is_fine(patient: Patient) -> None:
    assert only_ok(patient).what == "does not run; a command that needs Spark starts it"
    assert not engine_folder(patient.home.folder).path.exists()


def test_an_engine_that_answers_is_fine(patient: Patient) -> None:
    with an_engine(patient.home.folder, settings=checksum(patient)) as record:
        found = only_ok(patient)
    assert found.what.startswith("answers, with ")
    assert found.where == f"pid {record.server}"


def test_the_record_of_a_dead_engine_is_fine(patient: Patient) -> None:
    write_record(patient.home.folder, a_record(NO_PID, NO_PID))
    assert "the next command replaces it" in only_ok(patient).what


def test_a_record_that_cannot_be_read_is_no_engine(patient: Patient) -> None:
    write_record(patient.home.folder, a_record(NO_PID, NO_PID))
    engine_folder(patient.home.folder).record_file.write_text("{")
    assert "does not run" in only_ok(patient).what


def test_an_engine_that_does_not_answer_needs_attention(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.inspect.engine.SECONDS_TO_GREET", 0.2)
    with an_engine(patient.home.folder) as record:
        os.kill(record.server, signal.SIGSTOP)
        found = only(engine(patient), Level.ATTENTION)
    assert found.what == "does not answer within 5 s"
    assert "`python -m harness engine restart --force`" in found.todo


def test_an_engine_of_other_settings_is_fine_while_no_process_uses_it(patient: Patient) -> None:
    with an_engine(patient.home.folder, settings="others"):
        assert "the next command that needs Spark replaces it" in only_ok(patient).what


def test_an_engine_of_other_settings_that_a_process_uses_needs_attention(patient: Patient) -> None:
    with an_engine(patient.home.folder, settings="others"), used(patient.home.folder):
        found = only(engine(patient), Level.ATTENTION)
    assert "a process uses it" in found.what
    assert "ends with 3" in found.todo


def test_an_engine_in_use_is_fine(patient: Patient) -> None:
    with (
        an_engine(patient.home.folder, settings=checksum(patient)),
        used(patient.home.folder),
    ):
        assert only_ok(patient).what.startswith("answers")


def test_without_a_configuration_an_engine_that_answers_is_fine(patient: Patient) -> None:
    with an_engine(patient.home.folder):
        assert only_ok(replace(patient, settings=None)).what.startswith("answers")


def test_a_token_that_other_users_can_read_is_broken(patient: Patient) -> None:
    write_record(patient.home.folder, a_record(NO_PID, NO_PID))
    file = engine_folder(patient.home.folder).record_file
    file.chmod(0o644)
    found = only(engine(patient), Level.BROKEN)
    assert "mode 644" in found.what
    assert found.where == str(file)
    assert "`python -m harness engine stop`" in found.todo


def test_a_folder_that_other_users_can_enter_needs_attention(patient: Patient) -> None:
    write_record(patient.home.folder, a_record(NO_PID, NO_PID))
    folder = engine_folder(patient.home.folder).path
    folder.chmod(0o755)
    found = only(engine(patient), Level.ATTENTION)
    assert "mode 755" in found.what
    assert found.todo == f"run `chmod 700 {folder}`"


def test_a_workspace_has_no_engine_of_its_own(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home", HEARTBEAT_TARGET="databricks")
    assert [*engine(patient)] == []
