"""What processes leave for each other: messages, the state, lists of events."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.inspect.doctor.findings import Level
from harness.inspect.doctor.installation import Patient
from harness.inspect.doctor.stray_files import inbox, payload_files, state_file
from harness.store.inbox import Message, MessageKind, receive, send
from harness.store.local import LocalStore
from harness.store.quarantine import Quarantine, quarantined
from harness.store.rows import Ledger, RunStatus
from harness.tick.checkpoint import VERSION, save_state
from tests.support.ledgers import run, tick
from tests.support.patients import NOON, levels, only
from tests.unit.inspect.doctor.test_tables import STATE


def leave(patient: Patient, name: str, text: str, *, minutes_ago: int = 0) -> Path:
    patient.home.inbox.mkdir(exist_ok=True)
    path = patient.home.inbox / name
    path.write_text(text)
    at = NOON.timestamp() - 60 * minutes_ago
    os.utime(path, (at, at))
    return path


def test_an_inbox_that_is_not_there_is_empty(patient: Patient) -> None:
    [found] = inbox(patient)
    assert (found.level, found.what) == (Level.OK, "is empty")


def test_messages_for_the_next_tick_are_counted(patient: Patient) -> None:
    send(patient.home.inbox, Message(kind=MessageKind.RETRY, job_id=7, sent_at=NOON))
    [found] = inbox(patient)
    assert (found.level, found.what) == (Level.OK, "1 message for the next tick, since 0s")


def test_registered_events_for_the_next_tick_are_a_message(patient: Patient) -> None:
    leave(patient, "registered-1.jsonl", "")
    [found] = inbox(patient)
    assert (found.level, found.what) == (Level.OK, "1 message for the next tick, since 0s")


@pytest.mark.parametrize(
    "name", ["1.json", "1.unreadable", "registered-1.jsonl.unreadable", "registered-1.unreadable"]
)
def test_a_message_that_cannot_be_read_is_reported_and_left_where_it_is(
    patient: Patient, name: str
) -> None:
    path = leave(patient, name, '{"kind": "ret')
    found = only(inbox(patient), Level.ATTENTION)
    assert name in found.what
    assert path.exists()


def test_a_quarantined_item_is_named_with_its_reason_and_what_to_do(patient: Patient) -> None:
    leave(patient, "1.json", "")
    receive(patient.home.inbox, Quarantine(patient.home.inbox, NOON))
    found = only(inbox(patient), Level.ATTENTION)
    assert found.what.startswith("1.json is quarantined since 0s: it is not JSON")
    assert "send it again" in found.todo


def test_a_quarantined_item_of_a_workspace_is_removed_by_a_statement(patient: Patient) -> None:
    leave(patient, "1.json", "")
    receive(patient.home.inbox, Quarantine(patient.home.inbox, NOON))
    environment = {"HEARTBEAT_TARGET": "databricks", "HEARTBEAT_SCHEMA": "beat"}
    assert patient.settings is not None
    settings = replace(patient.settings, catalog="prod-eu")
    away = replace(patient, environment=environment, settings=settings)
    found = only(inbox(away), Level.ATTENTION)
    (item,) = quarantined(patient.home.inbox)
    assert found.where == ""
    assert found.todo.endswith(
        "run: delete from `prod-eu`.`beat`.`state_files` where"
        f" startswith(name, 'inbox/quarantine/{item.path.name}')"
    )


def test_a_message_whose_sender_died_while_writing_is_reported(patient: Patient) -> None:
    leave(patient, ".1.json.part", '{"kind": "ret', minutes_ago=30)
    assert "never finished" in only(inbox(patient), Level.ATTENTION).what


def test_a_message_that_is_being_written_is_not_reported(patient: Patient) -> None:
    leave(patient, ".1.json.part", '{"kind": "ret')
    assert levels(inbox(patient)) == [Level.OK]


def test_a_state_that_counts_is_fine(patient: Patient, store: LocalStore) -> None:
    save_state(patient.home.state, STATE, store)
    [found] = state_file(patient)
    assert found.what == "has left what the next one starts from"


def test_a_state_that_is_older_than_the_tables_is_fine(patient: Patient, store: LocalStore) -> None:
    save_state(patient.home.state, STATE, store)
    store.append(Ledger.TICKS, [tick(8, NOON)])
    assert levels(state_file(patient)) == [Level.OK]


def test_a_state_of_another_version_is_fine_since_the_tables_are_read_instead(
    patient: Patient, store: LocalStore
) -> None:
    save_state(patient.home.state, STATE, store)
    text = patient.home.state.read_text()
    patient.home.state.write_text(text.replace(f'"version": {VERSION}', '"version": 99'))
    assert levels(state_file(patient)) == [Level.OK]


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "7", "null"])
def test_a_damaged_state_is_reported_and_there_is_nothing_to_do(
    patient: Patient, store: LocalStore, text: str
) -> None:
    patient.home.state.write_text(text)
    assert only(state_file(patient), Level.ATTENTION).todo.startswith("nothing:")


def hand_over(store: LocalStore, file: Path, status: RunStatus) -> None:
    parameters = f'{{"heartbeat_events": "{{\\"events_file\\": \\"{file}\\"}}"}}'
    store.append(Ledger.RUNS, [run(1, 1, NOON, status, parameters=parameters)])


def test_a_list_of_events_that_vanished_under_a_run_is_reported(
    patient: Patient, store: LocalStore
) -> None:
    hand_over(store, patient.home.payloads / "gone.json", RunStatus.STARTED)
    assert "gone.json" in only(payload_files(patient), Level.ATTENTION).what


def test_the_list_of_a_run_that_ended_may_be_gone(patient: Patient, store: LocalStore) -> None:
    hand_over(store, patient.home.payloads / "gone.json", RunStatus.SUCCEEDED)
    assert list(payload_files(patient)) == []


def test_a_list_that_is_there_is_counted(patient: Patient, store: LocalStore) -> None:
    patient.home.payloads.mkdir()
    file = patient.home.payloads / "there.json"
    file.write_text("[]")
    hand_over(store, file, RunStatus.STARTED)
    [found] = payload_files(patient)
    assert (found.level, found.what) == (Level.OK, "1 list of events, 2 B")


def test_lists_that_fill_the_disk_are_reported(patient: Patient) -> None:
    patient.home.payloads.mkdir()
    with (patient.home.payloads / "large.json").open("wb") as file:
        file.truncate(2_000_000_000)
    assert "maintain" in only(payload_files(patient), Level.ATTENTION).todo
