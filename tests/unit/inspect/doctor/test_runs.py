"""What ticks have left open: the time between them, upstreams, runs."""

import json
from dataclasses import replace
from datetime import timedelta

from harness.inspect.doctor.findings import Level
from harness.inspect.doctor.installation import Patient
from harness.inspect.doctor.runs import clock, runs, upstreams
from harness.sense.backoff import BackOff, Failing, save_back_off
from harness.settle.unreachable_runs import record_unreachable
from harness.store.local import LocalStore
from harness.store.rows import Ledger, Run, RunStatus
from harness.store.writer.lock import note_tick
from tests.support.ledgers import run, tick
from tests.support.patients import NOON, levels, only


def test_before_the_first_tick_there_is_no_clock_to_compare(patient: Patient) -> None:
    assert list(clock(patient)) == []


def test_a_tick_of_just_now_is_fine(patient: Patient) -> None:
    note_tick(patient.home.folder, NOON - timedelta(seconds=20))
    [found] = clock(patient)
    assert (found.level, found.what) == (Level.OK, "the last tick was 20s ago")


def test_a_clock_that_went_back_is_detected_by_the_newest_tick(
    patient: Patient, store: LocalStore
) -> None:
    note_tick(patient.home.folder, NOON - timedelta(hours=1))
    store.append(Ledger.TICKS, [tick(1, NOON + timedelta(minutes=5))])
    found = only(clock(patient), Level.ATTENTION)
    assert found.what == "is 5m behind the newest tick, of 2026-03-01 12:05:00Z"


def test_no_tick_for_long_is_reported(patient: Patient) -> None:
    note_tick(patient.home.folder, NOON - timedelta(hours=3))
    assert only(clock(patient), Level.ATTENTION).what.startswith("none for 3h")


def fail_since(patient: Patient, *minutes: int) -> None:
    failing = [
        Failing(
            upstream_id=f"kafka:topic {number}:ab5c14a4",
            reason="down",
            failed_looks=9,
            since=NOON - timedelta(minutes=each),
            failed_at=NOON,
        )
        for number, each in enumerate(minutes)
    ]
    back_off = BackOff(failing={each.upstream_id: each for each in failing})
    save_back_off(patient.home.back_off, back_off, "any")


def test_upstreams_that_cannot_be_read_are_named_the_longest_first(patient: Patient) -> None:
    fail_since(patient, 10, 90, 3000, 70, 80)
    found = only(upstreams(patient), Level.ATTENTION)
    assert found.what == (
        "5 upstreams cannot be read: "
        "topic 2 for 2d 2h, topic 1 for 1h 30m, topic 4 for 1h 20m and 2 more"
    )


def test_an_upstream_that_cannot_be_read_since_a_moment_is_not_ok(patient: Patient) -> None:
    fail_since(patient, 1)
    [found] = upstreams(patient)
    assert (found.level, found.what) == (
        Level.ATTENTION,
        "1 upstream cannot be read: topic 0 for 1m",
    )
    assert "python -m harness status" in found.todo and "try-again" in found.todo


def test_unreadable_upstreams_of_one_table_are_named_by_their_queries(patient: Patient) -> None:
    failing = [
        Failing(
            upstream_id=f"delta_table:sales.orders:{number}",
            reason="gone",
            failed_looks=1,
            since=NOON - timedelta(minutes=number),
            failed_at=NOON,
            source="delta_table",
            read_type="batch",
            preprocess_query=query,
        )
        for number, query in enumerate((None, "select * from sensor_new_data where amount > 100"))
    ]
    back_off = BackOff(failing={each.upstream_id: each for each in failing})
    save_back_off(patient.home.back_off, back_off, "any")
    [found] = upstreams(patient)
    assert found.what == (
        "2 upstreams cannot be read: "
        "sales.orders, where amount > 100 for 1m, sales.orders, no query for 0s"
    )


def a_run(job_id: int, status: RunStatus, run_id: int | None = 1) -> Run:
    row = run(1, job_id, NOON, status, run_id=run_id, intent_id=str(job_id))
    return replace(row, job_id=job_id, job_name=f"job {job_id}")


def test_jobs_that_are_held_parked_or_unanswered_are_reported_separately(
    patient: Patient, store: LocalStore
) -> None:
    rows = [
        a_run(1, RunStatus.FAILED),
        a_run(2, RunStatus.PARKED, run_id=None),
        a_run(3, RunStatus.INTENDED, run_id=None),
        a_run(4, RunStatus.SUCCEEDED),
        a_run(5, RunStatus.STARTED),
        a_run(6, RunStatus.CANCELED),
    ]
    store.append(Ledger.RUNS, rows)
    reported = [each.what.partition(": ")[::2] for each in runs(patient)]
    assert [(output[:12], names) for output, names in reported] == [
        ("1 job PARKED", "job 2"),
        ("2 jobs held ", "job 1, job 6"),
        ("1 job starte", "job 3"),
    ]


def test_a_run_that_goes_on_for_long_is_reported(patient: Patient, store: LocalStore) -> None:
    began = NOON - timedelta(hours=7)
    row = replace(a_run(1, RunStatus.STARTED), decided_at=began, started_at=began)
    store.append(Ledger.RUNS, [row])
    assert "1 job with a long-running run: job 1" in only(runs(patient), Level.ATTENTION).what


def test_runs_that_go_on_or_ended_well_are_fine(patient: Patient, store: LocalStore) -> None:
    store.append(Ledger.RUNS, [a_run(1, RunStatus.STARTED), a_run(2, RunStatus.SUCCEEDED)])
    assert levels(runs(patient)) == [Level.OK]


def test_a_run_that_could_not_be_queried_for_long_is_reported(
    patient: Patient, store: LocalStore
) -> None:
    row = replace(a_run(1, RunStatus.STARTED), decided_at=NOON, started_at=NOON)
    store.append(Ledger.RUNS, [row])
    record_unreachable(patient.home.folder, [row], {1: "503"}, NOON - timedelta(minutes=14))
    assert levels(runs(patient)) == [Level.OK]
    record_unreachable(patient.home.folder, [row], {1: "503"}, NOON - timedelta(minutes=16))
    found = only(runs(patient), Level.ATTENTION)
    assert found.what == "1 job with an unreachable run: job 1"


def test_a_failed_job_that_starts_again_by_itself_needs_no_operator(
    patient: Patient, store: LocalStore
) -> None:
    store.append(Ledger.RUNS, [a_run(1, RunStatus.FAILED)])
    blocker = {"blocker": "backing_off", "reason": "", "waits_for": "", "since": NOON.isoformat()}
    job = {"job_id": "1", "job_name": "job 1", "blockers": [blocker]}
    status = {"tick_id": "1", "tick_number": 1, "tick_at": NOON.isoformat(), "jobs": [job]}
    patient.home.status.write_text(json.dumps(status))
    assert levels(runs(patient)) == [Level.OK]
