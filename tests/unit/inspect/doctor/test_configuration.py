"""What people have written and installed: configuration, controls, secrets, Java, the Jobs API."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.controls.findings import WITHOUT_ROWS
from harness.controls.load import CONTROLS
from harness.errors import JobsApiError
from harness.inspect.doctor.configuration import configuration, controls, java, secrets
from harness.inspect.doctor.findings import Level, worst
from harness.inspect.doctor.jobs_api import jobs_api, of_workspace, within
from harness.inspect.doctor.run import examine
from harness.store.rows import Ledger
from tests.support.controls_text import HEADER, line
from tests.support.disk_ledgers import create_ledgers
from tests.support.patients import a_patient, levels, only

SHOP = "connections: {jdbc: {shop: {url: 'jdbc:x:y', password: 'env:SHOP_PASSWORD'}}}"


def test_a_wrong_configuration_is_broken_and_the_state_directory_is_examined_all_the_same(
    tmp_path: Path,
) -> None:
    patient = a_patient(tmp_path / "home", "sensing: {threads: many}")

    findings = examine(patient)

    broken = only(findings, Level.BROKEN)
    assert (broken.about, "sensing" in broken.what) == ("configuration", True)
    assert str(patient.home.folder) in [each.where for each in findings]


def test_a_right_configuration_is_fine(tmp_path: Path) -> None:
    assert levels(configuration(a_patient(tmp_path / "home"))) == [Level.OK]


def with_controls(tmp_path: Path, text: str) -> Path:
    (tmp_path / "project" / CONTROLS).parent.mkdir(parents=True)
    (tmp_path / "project" / CONTROLS).write_text(text)
    return tmp_path / "project"


def test_controls_with_errors_need_attention_since_their_rows_are_quarantined(
    tmp_path: Path,
) -> None:
    patient = a_patient(tmp_path / "home")
    project = with_controls(tmp_path, f"{HEADER}\n{line(job_state='ASLEEP')}\n")
    found = only(controls(replace(patient, project=project)), Level.ATTENTION)
    assert "quarantined, the rest is in force: heartbeat_controls.csv:" in found.what
    assert "'ASLEEP'" in found.what


def test_controls_without_rows_need_attention_and_the_remedy_is_named(tmp_path: Path) -> None:
    project = with_controls(tmp_path, f"{HEADER}\n")
    patient = replace(a_patient(tmp_path / "home"), project=project)
    found = only(controls(patient), Level.ATTENTION)
    assert (found.what, found.todo) == (WITHOUT_ROWS.rstrip("."), "")


def test_of_several_warnings_the_first_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    rows = [line(trigger_job_name=""), line(trigger_job_id="7", trigger_job_name="")]
    project = with_controls(tmp_path, "\n".join([HEADER, *rows, ""]))
    patient = replace(a_patient(tmp_path / "home"), project=project)
    found = only(controls(patient), Level.ATTENTION)
    assert found.what.endswith(" (and 1 more warning)")


def test_controls_that_are_not_there_are_broken(tmp_path: Path) -> None:
    patient = replace(a_patient(tmp_path / "home"), project=tmp_path)
    assert "cannot be read" in only(controls(patient), Level.BROKEN).what


def test_controls_are_checked_alone_when_the_ledger_of_them_is_damaged(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    create_ledgers(patient.home.warehouse)
    (patient.tables / Ledger.CONTROLS / "_delta_log" / f"{0:020}.json").write_text("{")
    assert Level.BROKEN not in levels(controls(patient))


def test_a_secret_that_is_not_set_is_broken_and_named_by_its_key(tmp_path: Path) -> None:
    found = only(secrets(a_patient(tmp_path / "home", SHOP)), Level.BROKEN)
    assert found.where == "connections.jdbc.shop.password"
    assert found.what == "env:SHOP_PASSWORD is not set; set it where Heartbeat runs"


def test_the_secrets_of_those_who_watch_are_examined_too(tmp_path: Path) -> None:
    watching = (
        "alarms: {channels: {team: {url: env:TEAM_URL}}}\n"
        "lineage: {url: https://example.com, api_key: env:LINEAGE_KEY}\n"
    )
    found = [each.where for each in secrets(a_patient(tmp_path / "home", watching))]
    assert found == ["alarms.channels.team.url", "lineage.api_key"]


def test_a_secret_that_is_set_is_fine_and_not_shown(tmp_path: Path) -> None:
    findings = list(secrets(a_patient(tmp_path / "home", SHOP, SHOP_PASSWORD="hunter2hunter2")))
    assert levels(findings) == [Level.OK]
    assert "hunter2" not in repr(findings)


def test_a_machine_without_java_is_broken_with_the_way_out(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home", JAVA_HOME=str(tmp_path), PATH=str(tmp_path))
    found = list(java(patient))
    # The packaged one, where it is installed, is found without any variable.
    assert found[0].level is Level.OK or "make setup" in found[0].todo


def test_a_workspace_that_does_not_answer_is_broken(tmp_path: Path) -> None:
    def refuse() -> str:
        raise JobsApiError("The Jobs API does not answer: connection refused")

    assert of_workspace(refuse).level is Level.BROKEN


def test_a_workspace_that_answers_is_named() -> None:
    found = of_workspace(lambda: "https://example.com")
    assert (found.level, found.where) == (Level.OK, "https://example.com")


def test_a_question_that_hangs_is_given_up() -> None:
    hanging = threading.Event()
    try:
        with pytest.raises(TimeoutError, match="no answer within"):
            within(0.01, hanging.wait)
    finally:
        hanging.set()


def test_a_local_jobs_api_that_does_not_run_is_fine_and_is_not_started(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    [found] = jobs_api(patient)
    assert (found.level, "a tick starts it" in found.what) == (Level.OK, True)
    assert list(patient.home.folder.iterdir()) == []


def test_damaged_runs_and_tokens_of_the_local_jobs_api_are_broken(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    (patient.home.folder / "jobs-api").mkdir()
    (patient.home.folder / "jobs-api" / "state.sqlite").write_bytes(b"\0" * 4096)
    assert "second run" in only(jobs_api(patient), Level.BROKEN).todo


def test_a_check_that_fails_itself_is_a_finding_and_stops_no_other(tmp_path: Path) -> None:
    def fail(patient: object) -> list[object]:
        raise ZeroDivisionError("by zero")

    checks = {"sums": fail, "configuration": configuration}
    findings = examine(a_patient(tmp_path / "home"), checks)  # type: ignore[arg-type]

    assert [(each.about, each.level) for each in findings] == [
        ("sums", Level.BROKEN),
        ("configuration", Level.OK),
    ]
    assert worst(findings) is Level.BROKEN


def test_nothing_found_is_nothing_broken() -> None:
    assert worst([]) is Level.OK
