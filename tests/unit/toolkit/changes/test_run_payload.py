"""What a run reads of its payload: the list itself, or what a reference leads to."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import ConfigurationError, StateError
from harness.fire.intents import Start, fire
from harness.fire.submit import Firing, Steps
from harness.platform.databricks.rate_limit import TokenBucket
from harness.store.local import LocalStore
from harness.store.rows import Consumed, Ledger, Tick
from harness.toolkit import changes
from harness.toolkit.changes import ChangeEvent
from tests.support.disk_ledgers import create_ledgers
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.ledgers import JOB, ORDERS, TEN, event, minutes

#: So many do not fit into a job's parameters.
MANY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A run payload, and the state directory in which the run would find it."""

    text: str
    home: Path

    @property
    def file(self) -> Path:
        return Path(json.loads(self.text)["events_file"])

    def with_reference(self, **changed: object) -> str:
        return json.dumps(json.loads(self.text) | changed)


def hand_over(home: Path, count: int) -> Handed:
    """Start a job with so many events; its tables lie on the disk."""
    store = create_ledgers(home / "warehouse")
    rows = [event(tick, minutes(tick), ORDERS, str(tick)) for tick in range(1, count + 1)]
    store.append(Ledger.EVENTS, rows)
    clock = FakeClock(TEN)
    jobs = FakeJobs(clock=clock)
    jobs.add_job(JOB)
    rate = TokenBucket(clock, per_second=100)
    firing = Firing(
        api=jobs,
        origin="here",
        store=store,
        starts=rate,
        questions=rate,
        payloads=home / "handed_over",
        schema="heartbeat",
        crash_point=lambda name: None,
    )
    consumed = Consumed(upstream_id=ORDERS, from_tick=0, through_tick=count)
    start = Start(job_id=JOB, job_name="daily", intent_id="one", attempt=2, consumed=(consumed,))
    (run,) = fire([start], tick=Tick(number=99, at=TEN), firing=firing, steps=Steps())
    return Handed(text=json.loads(run.parameters)["heartbeat_events"], home=home)


def snapshots(events: list[ChangeEvent]) -> list[str | None]:
    return [event.snapshot_id for event in events]


@pytest.fixture
def many(tmp_path: Path) -> Handed:
    payload = hand_over(tmp_path, MANY)
    assert payload.file.is_file()
    return payload


def test_a_short_list_is_read_from_the_parameter(tmp_path: Path) -> None:
    found = changes.read(hand_over(tmp_path, 3).text)
    assert snapshots(found) == ["1", "2", "3"]
    assert (found[0].table, found[0].tags) == ("sales.orders", {"rows_written": "1204"})


def test_a_local_job_has_its_events_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTBEAT_EVENTS", hand_over(tmp_path, 1).text)
    assert snapshots(changes.read()) == ["1"]


def test_a_run_without_parameters_reads_its_events_by_its_run_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over(tmp_path, 3)
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path))
    store = LocalStore(tmp_path / "warehouse", "heartbeat")
    [run_id] = {row["run_id"] for row in store.read(Ledger.RUNS) if row["run_id"]}
    assert snapshots(changes.read(run_id=str(run_id))) == ["1", "2", "3"]
    with pytest.raises(StateError, match=r"No start has the run 5: .* read again then"):
        changes.read(run_id=5)
    with pytest.raises(ConfigurationError, match="is not a run id"):
        changes.read(run_id="{{job.run_id}}")


def test_a_run_without_events_reads_none() -> None:
    assert changes.read("[]") == []


def test_a_long_list_is_read_from_its_file(many: Handed) -> None:
    assert snapshots(changes.read(many.text)) == [str(number) for number in range(1, MANY + 1)]


def test_a_list_whose_file_is_gone_is_read_from_the_tables(many: Handed) -> None:
    from_file = changes.read(many.text)
    many.file.unlink()
    assert changes.read(many.text) == from_file


def test_a_reference_to_no_recorded_run_is_reported_in_one_sentence(many: Handed) -> None:
    many.file.unlink()
    with pytest.raises(StateError, match="No run of the intent other with the attempt 2"):
        changes.read(many.with_reference(intent_id="other"))


@pytest.mark.parametrize("is_on_disk", [True, False])
def test_fewer_events_than_were_handed_over_are_not_taken_for_all(
    many: Handed, is_on_disk: bool
) -> None:
    if not is_on_disk:
        many.file.unlink()
    with pytest.raises(StateError, match=f"received {MANY + 1} events, and .* has {MANY} of them"):
        changes.read(many.with_reference(event_count=MANY + 1))


def test_where_neither_file_nor_tables_are_the_sentence_names_both(
    many: Handed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(tmp_path / "another machine" / "handed_over" / "one-2.json")
    # As on a machine that has no Spark.
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(StateError) as reported:
        changes.read(many.with_reference(events_file=elsewhere))
    assert elsewhere in str(reported.value) and "tables of heartbeat" in str(reported.value)
    assert len(str(reported.value).splitlines()) == 1


@pytest.mark.parametrize("text", [None, "", "  "])
def test_a_process_that_heartbeat_has_not_started_is_reported_as_such(
    monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.delenv("HEARTBEAT_EVENTS", raising=False)
    with pytest.raises(ConfigurationError, match="was not started by Heartbeat"):
        changes.read(text)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "7",
        '"[]"',
        "[7]",
        '[{"table": "a"}]',
        '[{"table": "a", "table_format": "PAPER", "operation_type": "APPEND"}]',
        "{}",
        '{"events_file": "x", "event_count": "many", "intent_id": "one", "attempt": 1, "relation": "h.r"}',
        "[" * 100_000,
    ],
)
def test_what_is_damaged_is_reported_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError) as reported:
        changes.read(text)
    assert str(reported.value).startswith("The payload of this run is damaged: ")
    assert len(str(reported.value).splitlines()) == 1 and len(str(reported.value)) < 400


@pytest.mark.parametrize("content", ["[{", "{}", b"\xff"])
def test_a_damaged_file_is_named(many: Handed, content: str | bytes) -> None:
    many.file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((ConfigurationError, StateError), match=str(many.file)):
        changes.read(many.text)
