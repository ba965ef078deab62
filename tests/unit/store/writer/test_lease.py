"""The lease of a workspace's tables: epochs, actions of a holder that has lost it, wrong clocks."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import LockedError, StateError
from harness.fire.intents import Start, fire
from harness.fire.submit import Firing, Steps
from harness.platform.databricks.rate_limit import TokenBucket
from harness.store.queries import LastDecision
from harness.store.rows import FencingToken, Ledger, LedgerRow, Store, Tick
from harness.store.writer.fencing import FencedStore
from harness.store.writer.lease import LEASE_SECONDS, Lease
from harness.store.writer.lock import ProcessLock
from harness.tick.checkpoint import load_state, save_state
from harness.tick.engine import Engine
from harness.tick.single_writer import admitted
from harness.tick.state import TickState
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.leases import DeltaLeaseTable, MemoryLeaseTable, tick_row
from tests.support.memory_store import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Tables:
    """The lease and the ledgers of one workspace, and the world's clock."""

    def __init__(self) -> None:
        self.lease = MemoryLeaseTable()
        self.ledgers = MemoryStore()
        self.clock = FakeClock(NOON)

    def process(self, command: str = "tick", *, clock: FakeClock | None = None) -> Lease:
        return Lease(self.lease, self.ledgers, command=command, clock=clock or self.clock)

    def frozen(self) -> Lease:
        """Acquire the lease in a process that then stands still until the lease has expired."""
        zombie = self.process("run").__enter__()
        self.clock.sleep(LEASE_SECONDS)
        return zombie

    def numbers(self) -> list[object]:
        return [each["tick_number"] for each in self.ledgers.read(Ledger.TICKS)]


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_each_turn_has_a_higher_number(tables: Tables) -> None:
    epochs = []
    for _ in range(3):
        with tables.process():
            assert tables.lease.row is not None
            epochs.append(tables.lease.row.epoch)
    assert epochs == [1, 2, 3]


def test_the_row_states_when_the_last_ended_tick_began_whichever_process_holds_the_lease_now(
    tables: Tables,
) -> None:
    def known() -> datetime | None:
        assert tables.lease.row is not None
        return tables.lease.row.ticked_at

    with tables.process("run") as holder:
        holder.note_tick(NOON)
        tables.clock.sleep(LEASE_SECONDS * 2 / 3)
        holder.check()
        assert known() == NOON
        # A tick is under way whose findings bear an instant from before this renewal.
        tables.clock.sleep(LEASE_SECONDS * 2 / 3)
        holder.check()
        assert known() == NOON
        holder.note_tick(tables.clock.now())
    ended = tables.clock.now()
    assert known() == ended
    tables.clock.sleep(1)
    with tables.process("compact"):
        assert known() == ended
    assert known() == ended


@pytest.mark.parametrize(
    ("command", "ticked", "known"),
    [
        ("tick", None, 60),
        ("run", None, 60),
        ("run", 90, 90),
        # It is no tick, but the one before it was.
        ("compact", 30, 30),
        ("compact", None, 0),
    ],
)
def test_in_a_workspace_what_is_older_than_the_turn_of_who_ticks_and_than_its_last_tick_is_recorded(
    tables: Tables, tmp_path: Path, command: str, ticked: float | None, known: float
) -> None:
    def after(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    (tmp_path / "heartbeat.yml").write_text("")
    environment = {"HEARTBEAT_TARGET": "databricks", "HEARTBEAT_CATALOG": "prod-eu"}
    context = Context(load_settings(tmp_path, {}), environment, tables.clock)
    with tables.process(command) as holder:
        tables.clock.sleep(LEASE_SECONDS * 2 / 3)
        if ticked is not None:
            holder.note_tick(after(ticked))
        holder.check()
        assert tables.lease.row is not None
        # It was renewed in the midst of a tick.
        vars(context)["_lease_row"] = replace(tables.lease.row, since=after(60))
        decided = LastDecision(tick_id="1", tick_number=1, tick_at=NOON, jobs=())
        assert context.last_tick_at(decided) == after(known)


def test_a_frozen_process_that_wakes_up_writes_nothing_and_reports_the_lost_lease(
    tables: Tables,
) -> None:
    zombie = tables.frozen()
    with tables.process() as holder:
        FencedStore(tables.ledgers, holder).append(Ledger.TICKS, [tick_row(1)])
        with pytest.raises(
            LockedError, match=r"has lost the lease in memory\.writer_lease .*`tick`"
        ):
            FencedStore(tables.ledgers, zombie).append(Ledger.TICKS, [tick_row(2)])
    assert tables.numbers() == [1]


def test_a_process_that_froze_between_its_check_and_its_append_writes_nothing(
    tables: Tables,
) -> None:
    zombie = tables.process("run").__enter__()
    fencing_token = zombie.fencing_token()
    tables.clock.sleep(LEASE_SECONDS)
    with tables.process():
        # The ledger itself refuses: nothing else is checked any more.
        tables.ledgers.append(Ledger.TICKS, [tick_row(2)], fencing_token)
    assert tables.numbers() == []


class _Freezing(MemoryStore):
    """Something happens right after a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.then = lambda: None

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None = None
    ) -> None:
        super().append(ledger, rows, fencing_token)
        self.then()


def _firing(store: Store, lease: Lease, jobs: FakeJobs, tables: Tables, folder: Path) -> Firing:
    bucket = TokenBucket(tables.clock, per_second=1000)
    return Firing(
        api=jobs,
        origin="workspace/heartbeat",
        store=store,
        starts=bucket,
        questions=bucket,
        payloads=folder,
        schema="heartbeat",
        crash_point=lambda name: None,
        still_ours=lease.check,
    )


START = Start(job_id=1, job_name="a", intent_id="i", attempt=1, consumed=())


def test_a_process_whose_intent_landed_just_before_it_froze_starts_nothing(
    tables: Tables, tmp_path: Path
) -> None:
    ledgers = tables.ledgers = _Freezing()
    jobs = FakeJobs()
    zombie = tables.process("run").__enter__()
    successors: list[Lease] = []

    def freeze() -> None:
        ledgers.then = lambda: None
        tables.clock.sleep(LEASE_SECONDS)
        successors.append(tables.process().__enter__())

    ledgers.then = freeze
    firing = _firing(FencedStore(ledgers, zombie), zombie, jobs, tables, tmp_path)
    with pytest.raises(LockedError):
        fire([START], tick=Tick(number=1, at=NOON), firing=firing, steps=Steps())

    # The intent is there for the successor, which sends it.
    assert [each["run_status"] for each in ledgers.read(Ledger.RUNS)] == ["INTENDED"]
    assert successors and jobs.requests == []


def test_a_process_that_lost_the_lease_while_it_waited_for_its_rate_sends_no_request(
    tables: Tables, tmp_path: Path
) -> None:
    jobs = FakeJobs()
    zombie = tables.process("run").__enter__()
    firing = _firing(FencedStore(tables.ledgers, zombie), zombie, jobs, tables, tmp_path)

    class Slow(TokenBucket):
        def take(self) -> None:
            tables.clock.sleep(LEASE_SECONDS)
            tables.process().__enter__()

    slow = replace(firing, starts=Slow(tables.clock, per_second=1))
    with pytest.raises(LockedError):
        fire([START], tick=Tick(number=1, at=NOON), firing=slow, steps=Steps())
    assert jobs.requests == []


def test_a_process_that_has_lost_the_lease_does_not_give_away_that_of_another(
    tables: Tables,
) -> None:
    zombie = tables.frozen()
    with tables.process() as holder:
        zombie.__exit__(None, None, None)
        holder.confirm()


def test_a_process_that_has_lost_the_lease_once_has_lost_it_for_good(tables: Tables) -> None:
    zombie = tables.frozen()
    with tables.process(), pytest.raises(LockedError, match="has lost"):
        zombie.confirm()
    with pytest.raises(LockedError, match=r"does not hold the lease .* any more"):
        zombie.check()


def test_a_turn_that_ended_well_costs_the_next_one_no_commit(tables: Tables) -> None:
    with tables.process():
        pass
    before = tables.ledgers.fingerprint(Ledger.RUNS)
    with tables.process():
        assert tables.ledgers.fingerprint(Ledger.RUNS) == before


class _Failing(MemoryStore):
    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None = None
    ) -> None:
        raise StateError("the ledger cannot be written")


def test_an_append_that_failed_may_still_land_so_the_next_turn_keeps_it_out(
    tables: Tables,
) -> None:
    with tables.process() as lease, pytest.raises(StateError):
        fencing_token = FencingToken(
            application="heartbeat-writer", version=lease.fencing_token().version + 1
        )
        FencedStore(_Failing(), lease).append(Ledger.TICKS, [tick_row(1)])
    with tables.process():
        tables.ledgers.append(Ledger.TICKS, [tick_row(1)], fencing_token)
    assert tables.numbers() == []


class _Unfenceable(MemoryStore):
    def fence(self, fencing_token: FencingToken) -> None:
        raise StateError("the ledger ledger_runs cannot be written")


def test_no_process_writes_before_every_ledger_records_the_new_lease(tables: Tables) -> None:
    tables.frozen()
    tables.ledgers, ledgers = _Unfenceable(), tables.ledgers
    with pytest.raises(StateError, match="ledger_runs cannot be written"), tables.process():
        pytest.fail("it has begun its turn")
    tables.ledgers = ledgers
    before = ledgers.fingerprint(Ledger.RUNS)
    with tables.process():
        assert ledgers.fingerprint(Ledger.RUNS) != before


def test_the_lease_is_renewed_at_half_time_and_requested_at_no_check_before(
    tables: Tables,
) -> None:
    with tables.process() as lease:
        requests = tables.lease.reads, tables.lease.writes
        tables.clock.sleep(LEASE_SECONDS * 0.4)
        lease.check()
        assert (tables.lease.reads, tables.lease.writes) == requests
        tables.clock.sleep(LEASE_SECONDS * 0.2)
        lease.check()
        assert tables.lease.row is not None
        assert tables.lease.row.expires_at == tables.clock.now() + timedelta(seconds=LEASE_SECONDS)


def test_a_lease_that_cannot_be_renewed_is_kept_while_no_other_process_takes_it(
    tables: Tables,
) -> None:
    with tables.process() as lease:
        tables.lease.is_down = True
        tables.clock.sleep(2 * LEASE_SECONDS)
        lease.check()
        tables.lease.is_down = False
        with tables.process(), pytest.raises(LockedError):
            lease.check()


def test_a_lease_whose_taking_landed_although_it_failed_is_held(tables: Tables) -> None:
    with tables.process():
        pass
    tables.lease.loses_answer = True
    with tables.process() as lease:
        lease.confirm()


def test_a_lease_that_cannot_be_taken_is_no_lease_of_another(tables: Tables) -> None:
    with tables.process():
        pass
    tables.lease.is_down = True
    with pytest.raises(StateError, match="no answer"), tables.process():
        pass


def test_a_clock_that_is_put_back_while_the_lease_is_held_renews_it(tables: Tables) -> None:
    with tables.process() as lease:
        tables.clock.set(NOON - timedelta(hours=1))
        lease.check()
        assert tables.lease.row is not None
        assert tables.lease.row.expires_at < NOON


def test_a_lease_of_a_clock_that_was_far_ahead_does_not_last_until_then(tables: Tables) -> None:
    tables.process(clock=FakeClock(NOON + timedelta(days=365))).__enter__()
    with tables.process() as lease:
        lease.confirm()


@pytest.mark.parametrize("minutes", [-4, 4])
def test_clocks_that_differ_by_less_than_the_lease_lasts_disturb_no_process(
    tables: Tables, minutes: int
) -> None:
    wrong = FakeClock(NOON + timedelta(minutes=minutes))
    with tables.process("run") as right:
        with pytest.raises(LockedError), tables.process(clock=wrong):
            pass
        right.confirm()


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_process_that_takes_over_too_early_by_a_wrong_clock_ends_the_lease_of_the_other(
    tables: Tables, minutes: int
) -> None:
    wrong = FakeClock(NOON + timedelta(minutes=minutes))
    right = tables.process("run").__enter__()
    with tables.process(clock=wrong) as holder:
        FencedStore(tables.ledgers, holder).append(Ledger.TICKS, [tick_row(1)])
        with pytest.raises(LockedError):
            FencedStore(tables.ledgers, right).append(Ledger.TICKS, [tick_row(2)])
    assert tables.numbers() == [1]


def test_a_process_that_woke_up_late_leaves_no_state_file_for_the_next_one(
    tables: Tables, tmp_path: Path
) -> None:
    file = tmp_path / "state.json"
    mine = TickState(
        tick_number=1,
        ended_tick_number=1,
        tick_at=NOON,
        folded_through=-1,
        upstreams=(),
        runs=(),
        controls_checksum=None,
        must_decide=False,
    )
    zombie = tables.frozen()
    with tables.process() as holder:
        # What the other one has recorded is in the fingerprints, and not in the state of this one.
        FencedStore(tables.ledgers, holder).append(Ledger.TICKS, [tick_row(7)])
    with pytest.raises(LockedError):
        save_state(file, mine, tables.ledgers, confirm=zombie.confirm)
    assert load_state(file, tables.ledgers) is None


def test_of_many_that_request_a_lease_one_gets_it_each_time_and_no_lease_is_had_twice(
    tmp_path: Path,
) -> None:
    racers, sweeps = 4, 6
    barrier = threading.Barrier(racers)
    won: list[list[int]] = [[] for _ in range(sweeps)]

    def race() -> None:
        for number in range(sweeps):
            table = DeltaLeaseTable(tmp_path / "lease")
            # No holder releases it: in each sweep the lease of the one before has expired.
            clock = FakeClock(NOON + timedelta(seconds=number * LEASE_SECONDS))
            barrier.wait()
            try:
                lease = Lease(table, MemoryStore(), command="tick", clock=clock).__enter__()
            except (LockedError, StateError):
                pass
            else:
                won[number].append(lease.fencing_token().version // 2**32)
            barrier.wait()

    threads = [threading.Thread(target=race) for _ in range(racers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert won == [[number + 1] for number in range(sweeps)]


def test_a_tick_of_a_process_that_has_lost_the_lease_does_not_begin(
    tables: Tables, tmp_path: Path
) -> None:
    (tmp_path / "heartbeat.yml").write_text("")
    context = Context(load_settings(tmp_path, {}), {}, tables.clock)
    context.lock = tables.frozen()
    with tables.process(), pytest.raises(LockedError):
        Engine(context).tick()


def test_dbt_is_not_called_by_a_process_that_has_lost_the_lease(
    tables: Tables, tmp_path: Path
) -> None:
    (tmp_path / "heartbeat.yml").write_text("")
    context = Context(load_settings(tmp_path, {}), {}, tables.clock)
    vars(context)["session"] = None
    context.lock = tables.frozen()
    with tables.process(), pytest.raises(LockedError):
        context.dbt.load_seeds([])


class _Closing(Context):
    """Records whether others are let in while it closes what it has started."""

    lets_others_in = True

    def close(self) -> None:
        try:
            with ProcessLock(self.home.folder, command="run"):
                pass
        except LockedError:
            self.lets_others_in = False


def test_on_one_machine_the_next_process_is_let_in_when_the_session_has_ended(
    tmp_path: Path,
) -> None:
    (tmp_path / "heartbeat.yml").write_text("")
    context = _Closing(load_settings(tmp_path, {}), {})
    with admitted(context, "tick"):
        assert isinstance(context.lock, ProcessLock)
    assert not context.lets_others_in
