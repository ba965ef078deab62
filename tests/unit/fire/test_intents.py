"""What a start writes down before it calls, and what it sends."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.events.event import EventRow, Operation, TableFormat
from harness.events.payload import as_payload, file_of, restore_payloads
from harness.fire.intents import Start, fire
from harness.fire.submit import Firing, Steps
from harness.platform.databricks.rate_limit import TokenBucket
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.memory_store import MemoryStore

JOB = 2**53 + 1
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
TICK = Tick(number=4, at=AT)


class Store(MemoryStore):
    """Ignores conditions: every event is offered, and only those in range may be consumed."""

    def read(
        self, table: str, *, where: object = (), columns: object = ()
    ) -> list[dict[str, object]]:
        return super().read(table)


class ReadingStore(MemoryStore):
    """Keeps to the conditions, and notes from which tick on events were read, and what of them."""

    def __init__(self) -> None:
        super().__init__()
        self.read_after: list[object] = []
        self.read_columns: set[str] = set()

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        after = {name: value for name, sign, value in where if sign == ">"}
        among = {name: value for name, sign, value in where if sign == "in"}
        assert len(after) + len(among) == len(where)
        rows = [
            row
            for row in super().read(table)
            if all(row[name] > value for name, value in after.items())  # type: ignore[operator]
            and all(row[name] in value for name, value in among.items())  # type: ignore[operator]
        ]
        # One column alone shows where the events begin.
        if len(columns) > 1:
            self.read_after.append(after["tick_number"])
            self.read_columns.update(columns)
        return [{name: row[name] for name in columns} for row in rows]


def _event(tick_number: int, version: int, upstream_id: str = "u") -> EventRow:
    return EventRow(
        tick_number=tick_number,
        event_ts=1,
        event_id=f"event {version}",
        upstream_id=upstream_id,
        table="flights",
        partition=None,
        snapshot_id=str(version),
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={},
        change_id=f"event {version}",
    )


def _fired(
    jobs: FakeJobs, *, origin: str = "here", payloads: Path = Path("nowhere"), events: int = 0
) -> tuple[list[Run], Store]:
    store = Store()
    store.append(
        Ledger.EVENTS, [_event(1, 8), _event(2, 9), _event(4, 11), _event(4, 10), _event(5, 12)]
    )
    store.append(Ledger.EVENTS, [_event(3, 100 + number) for number in range(events)])
    firing = _firing(jobs, store, origin=origin, payloads=payloads)
    return fire([_start(JOB)], tick=TICK, firing=firing, steps=Steps()), store


def _firing(
    jobs: FakeJobs, store: Store, *, origin: str = "here", payloads: Path = Path("nowhere")
) -> Firing:
    clock = FakeClock(AT)
    return Firing(
        api=jobs,
        origin=origin,
        store=store,
        starts=TokenBucket(clock, per_second=100),
        questions=TokenBucket(clock, per_second=100),
        payloads=payloads,
        schema="heartbeat",
        crash_point=lambda name: None,
    )


def _start(job_id: int) -> Start:
    return Start(
        job_id=job_id,
        job_name="daily",
        intent_id="intent",
        attempt=1,
        consumed=(Consumed(upstream_id="u", from_tick=1, through_tick=4),),
    )


def _fired_late(*consumed: Consumed) -> tuple[list[str], ReadingStore]:
    """Fire one job in a late tick, over events of long ago and of now; return what it consumes."""
    store = ReadingStore()
    store.append(Ledger.EVENTS, [_event(2, 1, "daily"), _event(3, 2, "yearly")])
    store.append(Ledger.EVENTS, [_event(4000, 3, "daily"), _event(4990, 4, "daily")])
    store.append(Ledger.EVENTS, [_event(5000, 5, "daily"), _event(5000, 6, "yearly")])
    start = replace(_start(JOB), consumed=consumed)
    firing = _firing(_jobs(), store)
    (row,) = fire([start], tick=Tick(number=5000, at=AT), firing=firing, steps=Steps())
    return list(row.event_ids), store


def _jobs() -> FakeJobs:
    jobs = FakeJobs(clock=FakeClock(AT))
    jobs.add_job(JOB)
    return jobs


def test_a_start_takes_the_events_after_its_first_tick_up_to_its_last_oldest_first() -> None:
    (row,), _ = _fired(_jobs())
    assert row.event_ids == ("event 9", "event 10", "event 11")


def test_a_start_takes_what_came_however_long_ago_its_job_took_the_last() -> None:
    took, _ = _fired_late(
        Consumed(upstream_id="daily", from_tick=4989, through_tick=5000),
        Consumed(upstream_id="yearly", from_tick=-1, through_tick=5000),
    )
    assert took == ["event 4", "event 5", "event 2", "event 6"]


def test_the_ledger_is_not_read_whole_for_an_upstream_that_has_rested() -> None:
    _, store = _fired_late(Consumed(upstream_id="yearly", from_tick=3, through_tick=5000))
    assert store.read_after == [4999]


def test_what_one_upstream_has_to_read_of_old_times_no_other_one_has_to() -> None:
    _, store = _fired_late(
        Consumed(upstream_id="daily", from_tick=4989, through_tick=5000),
        Consumed(upstream_id="yearly", from_tick=-1, through_tick=5000),
    )
    assert store.read_after == [2, 4989]


def test_of_an_event_only_what_its_run_receives_is_read_and_what_places_it() -> None:
    _, store = _fired_late(Consumed(upstream_id="daily", from_tick=4989, through_tick=5000))
    (received, *_) = as_payload(MemoryStore.read(store, Ledger.EVENTS))
    assert store.read_columns == {*received, "tick_number", "upstream_id"}


def test_the_intent_is_written_with_its_events_and_token_before_the_call() -> None:
    jobs = _jobs()
    _, store = _fired(jobs)
    intent, started = store.rows[Ledger.RUNS]
    assert isinstance(intent, Run)
    assert isinstance(started, Run)
    assert (intent.run_status, started.run_status) == (RunStatus.INTENDED, RunStatus.STARTED)
    assert intent.token == jobs.requests[0].token
    assert json.loads(intent.parameters) == jobs.requests[0].parameters
    assert intent.event_ids == started.event_ids


def test_an_answer_that_states_nothing_leaves_the_intent_open() -> None:
    jobs = _jobs()
    jobs.lose_answers()
    (row,), _ = _fired(jobs)
    assert (row.run_status, row.run_id) == (RunStatus.INTENDED, None)
    assert row.message == "the answer was lost"


def test_a_run_shows_by_a_parameter_to_which_start_it_belongs() -> None:
    jobs = _jobs()
    (row,), _ = _fired(jobs)
    (report,) = jobs.list_runs(JOB)
    assert report.parameters["heartbeat_token"] == row.token
    assert report.parameters["heartbeat_intent_id"] == "intent"


def test_a_list_of_events_that_is_handed_over_as_a_file_comes_with_the_token_too(
    tmp_path: Path,
) -> None:
    jobs = _jobs()
    (row,), _ = _fired(jobs, payloads=tmp_path, events=200)
    parameters = jobs.requests[0].parameters
    assert parameters["heartbeat_token"] == row.token
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_of_events_that_vanished_is_written_again_while_its_run_goes_on(
    tmp_path: Path,
) -> None:
    (row,), store = _fired(_jobs(), payloads=tmp_path, events=200)
    [file] = tmp_path.iterdir()
    payload = file.read_text()
    file.unlink()

    restore_payloads([row], store)

    assert file.read_text() == payload


def test_a_file_of_events_is_not_written_again_for_a_run_that_has_ended(tmp_path: Path) -> None:
    (row,), store = _fired(_jobs(), payloads=tmp_path, events=200)
    [file] = tmp_path.iterdir()
    file.unlink()

    ended = replace(row, run_status=RunStatus.FAILED)
    restore_payloads([ended], store)

    assert not file.exists()


def test_events_that_were_handed_over_directly_have_no_file(tmp_path: Path) -> None:
    (row,), _ = _fired(_jobs(), payloads=tmp_path)

    assert file_of(row.parameters) is None


def test_a_first_request_that_is_refused_proves_that_there_is_no_run() -> None:
    (row,), _ = _fired(FakeJobs(clock=FakeClock(AT)))
    assert (row.run_status, row.message) == (RunStatus.REFUSED, f"Job {JOB} does not exist.")


def test_a_state_directory_begun_again_is_not_given_the_runs_of_the_old_one() -> None:
    jobs = _jobs()
    (old,), _ = _fired(jobs, origin="first folder")
    (new,), _ = _fired(jobs, origin="second folder")
    assert old.run_id != new.run_id


def test_of_many_starts_each_is_recorded_once_with_its_own_answer() -> None:
    jobs, store = FakeJobs(clock=FakeClock(AT)), Store()
    job_ids = range(JOB, JOB + 200)
    for job_id in job_ids[::2]:
        jobs.add_job(job_id)

    newest = fire(
        [_start(job_id) for job_id in job_ids],
        tick=TICK,
        firing=_firing(jobs, store),
        steps=Steps(),
    )

    rows = [row for row in store.rows[Ledger.RUNS] if isinstance(row, Run)]
    intents, answers = rows[:200], rows[200:]
    assert {row.run_status for row in intents} == {RunStatus.INTENDED}
    assert len({row.step_number for row in rows}) == 400
    assert sorted(answers, key=lambda row: row.step_number) == sorted(
        newest, key=lambda row: row.step_number
    )
    for row in answers:
        runs = jobs.runs_of(row.job_id)
        assert ([row.run_id] if row.run_id else []) == runs
        assert row.run_status is (RunStatus.STARTED if runs else RunStatus.REFUSED)
    assert len({row.job_id for row in answers}) == 200
