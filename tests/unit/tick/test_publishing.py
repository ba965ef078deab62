"""A resident process publishes while its next ticks go on: in order, coalesced, and never lost."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.publish.publish import COMPACT_AFTER_TICKS, COMPACT_ALWAYS_AFTER_TICKS, read_status
from harness.sense.probe import ProbeResult
from harness.store.public_tables import PublicTable
from harness.store.rows import Ledger, Tick
from harness.store.work_lists import Upstream
from harness.tick.checkpoint import load_state
from harness.tick.state import TickState
from tests.support.background import Background
from tests.support.small_world import NOON, Killed, SmallContext, SmallLooker, SmallWorld
from tests.support.watched import NEVER_SEEN

ROW = "trigger_file,orders,batch,,,,1,daily,UNPAUSED,TRUE\n"
ORDERS = replace(
    NEVER_SEEN,
    upstream_id="trigger_file:orders:00000000",
    source="trigger_file",
    sensor_id="orders",
    read_type="batch",
)
COUNTS = dict.fromkeys(
    ("sensed_count", "event_count", "failed_look_count", "settled_count", "started_count"), 0
)
TABLES = ["heartbeat_control", "sensors"]
STATE = TickState(
    tick_number=2,
    tick_at=NOON,
    folded_through=1,
    upstreams=(),
    runs=(),
    controls_checksum=None,
    ended_tick_number=1,
    must_decide=False,
)


class Looker(SmallLooker):
    """Finds as many changes, or silent moves, as there are."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.is_silent = False

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: object,
        on_result: object = None,
    ) -> list[ProbeResult]:
        event = ChangeEvent(
            table="orders",
            snapshot_id=str(self.version),
            snapshot_ts=None,
            prev_snapshot_id=None,
            table_format=TableFormat.DELTA,
            operation_type=Operation.APPEND,
            lineage="1",
        )
        is_new = [each for each in upstreams if each.position != str(self.version)]
        return [
            ProbeResult(
                upstream_id=each.upstream_id,
                position=str(self.version),
                events=() if self.is_silent or each not in is_new else (event,),
            )
            for each in upstreams
        ]


class _NothingEnded:
    """Answers which tick was the last to end."""

    def run(self, statement: str) -> list[dict[str, object]]:
        return [{"ended": None, "folded": None, "tick_at": None, "without_end": []}]


class World(SmallWorld):
    """A resident process over one upstream, whose publications lag."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ROW)
        self.background = Background()
        self.probe_pool = self.looker = Looker()
        self.reason = "it waits"
        self.models["trigger_set"] = lambda: []
        self.models["job_blockers"] = lambda: [self.blocker()]
        self.models["queue_upstreams"] = lambda: [ORDERS.to_row()]
        self.models["queue_runs_to_follow"] = lambda: []
        self.models["queue_control_changes"] = lambda: []
        self.remember(upstreams=(replace(ORDERS, position="0"),))
        self.resident = self.engine()

    def context(self) -> SmallContext:
        context = super().context()
        vars(context)["sql"] = _NothingEnded()
        return context

    def blocker(self, name: str = "waiting_for_required_event") -> dict[str, object]:
        row = {"job_id": 1, "job_name": "daily", "blocker": name, "reason": self.reason}
        return {**row, "waits_for": "orders", "since": None}

    def tick_with_news(self, *, has_pause: bool = True) -> None:
        self.looker.version += 1
        self.resident.tick()
        if has_pause:
            self.resident.publish()
        self.clock.sleep(1)

    def tick_with_a_silent_move(self) -> None:
        self.looker.is_silent = True
        self.tick_with_news()
        self.looker.is_silent = False

    def pass_time(self) -> None:
        assert self.background is not None
        while self.background.advance():
            pass

    def numbers(self, ledger: Ledger) -> list[object]:
        return [row["tick_number"] for row in self.store.read(ledger)]

    @property
    def told(self) -> list[tuple[object, object]]:
        rows = self.store.read(Ledger.DECISIONS)
        return [(row["tick_number"], row["blockers"][0]["reason"]) for row in rows]  # type: ignore[index]

    def fail_to_show(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def show(context: SmallContext, tables: Sequence[PublicTable]) -> None:
            raise StateError("the disk is full")

        monkeypatch.setattr(SmallContext, "show", show)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_tick_ends_before_it_is_public(world: World) -> None:
    world.tick_with_news()
    assert (world.published, world.numbers(Ledger.TICKS)) == ([], [])
    world.pass_time()
    # Ledgers and state directory are for the thread that ticks.
    assert (world.published, world.numbers(Ledger.TICKS)) == (TABLES, [])
    publication = world.resident.collect()
    assert publication is not None
    assert (world.numbers(Ledger.TICKS), world.told) == ([2], [(2, "it waits")])
    assert read_status(world.home.status) == {1: ("waiting_for_required_event: it waits",)}


def test_nothing_is_published_until_there_is_a_pause_or_a_tick_without_new_data(
    world: World,
) -> None:
    for _ in range(2):
        world.tick_with_news(has_pause=False)
        world.pass_time()
        assert world.published == []
    world.resident.tick()
    world.pass_time()
    assert world.published == TABLES
    world.resident.collect()
    assert world.numbers(Ledger.TICKS) == [2, 3]


def test_ten_ticks_with_new_data_are_published_without_a_pause(world: World) -> None:
    for _ in range(10):
        assert world.published == []
        world.tick_with_news(has_pause=False)
        world.pass_time()
    assert world.published == TABLES


def test_a_tick_records_what_was_published_before_it(world: World) -> None:
    world.tick_with_news()
    world.pass_time()
    world.resident.tick()
    assert world.numbers(Ledger.TICKS) == [2]


def test_ticks_that_come_during_a_publication_are_published_together(world: World) -> None:
    for _ in range(4):
        world.tick_with_news()
    world.resident.finish()
    assert world.numbers(Ledger.TICKS) == [2, 3, 4, 5]
    # The first was disturbed by the others, so that the second one has them all.
    assert world.published == 2 * TABLES
    assert world.told == [(5, "it waits")]


def test_what_was_read_before_the_next_tick_began_counts(world: World) -> None:
    world.tick_with_news()
    world.pass_time()
    world.reason = "it waits for something else"
    world.looker.version += 1
    world.resident.tick()
    assert world.told == [(2, "it waits")]
    world.resident.finish()
    assert world.told == [(2, "it waits"), (3, "it waits for something else")]


def test_what_was_read_in_the_middle_of_a_tick_is_read_again(world: World) -> None:
    world.tick_with_news()

    def rows() -> Sequence[dict[str, object]]:
        # Events are recorded, their job is not started yet, and nothing seems to hold it.
        world.models["trigger_set"] = lambda: []
        world.reason = "half a tick"
        world.pass_time()
        world.reason = "it runs"
        return []

    world.models["trigger_set"] = rows
    world.tick_with_news()
    world.resident.finish()
    assert world.told == [(3, "it runs")]
    assert world.numbers(Ledger.TICKS) == [2, 3]


def test_steady_new_data_does_not_put_the_reasons_off_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.publish.publish._MOST_IN_VAIN", 2)

    def rows() -> Sequence[dict[str, object]]:
        world.pass_time()
        return []

    world.models["trigger_set"] = rows
    for _ in range(6):
        world.tick_with_news()
    # Two readings were disturbed, and the third one was waited for.
    assert world.numbers(Ledger.TICKS) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("is_silent", [False, True])
def test_what_was_not_published_is_published_by_the_next_process(
    world: World, is_silent: bool
) -> None:
    world.tick_with_news()
    if is_silent:
        # It saves the state, which nothing has made stale since.
        world.tick_with_a_silent_move()
        state = load_state(world.home.state, world.store)
        assert state is not None
        assert state.must_publish
    world.background = None
    position = str(world.looker.version)
    world.models["queue_upstreams"] = lambda: [replace(ORDERS, position=position).to_row()]
    report = world.engine().tick()
    assert (report.event_count, world.published) == (0, TABLES)
    assert [reason for _, reason in world.told] == ["it waits"]


def test_a_publication_that_fails_fails_once_and_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        world.fail_to_show(broken)
        world.tick_with_news()
        world.pass_time()
        with pytest.raises(StateError, match="the disk is full"):
            world.resident.collect()
    assert world.numbers(Ledger.TICKS) == []
    assert world.resident.collect() is None
    world.resident.tick()
    world.resident.finish()
    assert world.numbers(Ledger.TICKS) == [3]
    assert world.published == TABLES


def test_a_process_that_dies_while_it_publishes_in_the_background_records_nothing(
    world: World,
) -> None:
    world.tick_with_news()
    world.dies_at = "within_publish"
    with pytest.raises(Killed):
        world.pass_time()
    assert world.numbers(Ledger.TICKS) == []


def test_an_edit_of_the_controls_waits_for_what_is_published(world: World) -> None:
    world.tick_with_news()
    seeded: list[list[object]] = []
    load = world.dbt.load_seeds

    def load_seeds(names: Sequence[str]) -> None:
        seeded.append(world.numbers(Ledger.TICKS))
        load(names)

    world.dbt.load_seeds = load_seeds  # type: ignore[method-assign]
    world.edit(ROW.replace("orders,batch,", "orders,batch,described"))
    world.models["queue_upstreams"] = lambda: [replace(ORDERS, position="1").to_row()]
    world.resident.tick()
    assert seeded == [[2]]


def test_what_a_publication_has_written_is_no_edit_of_the_table(world: World) -> None:
    world.store.replace("heartbeat_control", [])

    def published(row: str) -> Callable[[], None]:
        key = {"sensor_source": "trigger_file", "sensor_id": row, "trigger_job_id": "1"}
        return lambda: world.store.replace("heartbeat_control", [key])

    show = published("orders")
    world.models["job_blockers"] = lambda: [show() or world.blocker()]  # type: ignore[func-returns-value]
    world.tick_with_news()
    assert world.background is not None
    world.background.advance()
    report = world.resident.tick()
    assert report.quarantined == ()


def test_no_pause_publishes_twice_without_a_check_for_edits_of_the_table(world: World) -> None:
    world.tick_with_news()
    world.tick_with_news()
    world.pass_time()
    # The second tick has disturbed it, so that it is repeated; the table may be edited meanwhile.
    assert world.resident.collect() is None
    world.resident.publish()
    world.pass_time()
    assert world.published == TABLES
    world.resident.tick()
    world.pass_time()
    assert world.published == 2 * TABLES


def remember_long(world: World, last: int) -> None:
    """Let a process begin after a tick, with a ledger that was compacted through the first one."""
    upstreams = (replace(ORDERS, position="0"),)
    world.remember(upstreams=upstreams, tick_number=last, ended_tick_number=last, folded_through=1)
    world.resident = world.engine()


def test_a_ledger_is_compacted_up_to_the_first_tick_that_has_no_row(world: World) -> None:
    many = COMPACT_ALWAYS_AFTER_TICKS + 5
    remember_long(world, many)
    for _ in range(3):
        world.tick_with_news()
    assert world.dbt.built == []
    world.resident.finish()
    assert world.dbt.built == ["fold", "tail"]
    variables = world.dbt.variables[0]
    assert isinstance(variables, dict)
    assert variables["folded_through"] == many


@pytest.mark.parametrize(
    "case",
    [
        pytest.param((COMPACT_AFTER_TICKS, 11, True, False), id="few rows"),
        pytest.param((COMPACT_AFTER_TICKS, 12, True, True), id="many rows"),
        pytest.param((COMPACT_AFTER_TICKS - 1, 12, True, False), id="few ticks"),
        pytest.param((COMPACT_ALWAYS_AFTER_TICKS, 0, True, True), id="many ticks"),
        pytest.param((COMPACT_AFTER_TICKS, 0, False, True), id="where nothing rewrites files"),
    ],
)
def test_a_ledger_is_compacted_when_many_rows_or_many_ticks_have_come_since(
    world: World, monkeypatch: pytest.MonkeyPatch, case: tuple[int, int, bool, bool]
) -> None:
    ticks, rows, is_local, is_compacted = case
    last = 1 + ticks
    if not is_local:
        monkeypatch.setattr("harness.publish.publish.LOCAL_TARGET", "another")
    # Two more are the event and the probe below.
    monkeypatch.setattr("harness.publish.publish._MANY_ROWS", 12 + 2)
    for ledger in (Ledger.EVENTS, Ledger.PROBES, Ledger.RUNS):
        compacted, since = [{"tick_number": 1}] * 20, [{"tick_number": last}] * 4
        world.store.replace(ledger, compacted + (since if rows else []))
    if rows % 4:
        world.store.replace(Ledger.RUNS, [{"tick_number": last}] * (rows % 4))
    remember_long(world, last)
    world.tick_with_news()
    world.resident.finish()
    assert world.dbt.built == (["fold", "tail"] if is_compacted else [])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_after_many_silent_moves_a_decision_is_published_whatever_its_result(
    world: World, more: int
) -> None:
    remember_long(world, 2 * COMPACT_AFTER_TICKS + more)
    world.tick_with_a_silent_move()
    world.resident.finish()
    assert (world.published != []) is (more == 0)


def test_ticks_go_on_while_a_ledger_is_merged_and_its_views_are_made_between_two_of_them(
    world: World,
) -> None:
    many = COMPACT_ALWAYS_AFTER_TICKS + 5
    remember_long(world, many)
    world.tick_with_news()
    assert world.background is not None
    for _ in range(3):
        world.background.advance()
    assert world.dbt.built == ["fold"]
    report = world.resident.tick()
    assert world.dbt.built == ["fold", "tail"]
    assert report.skipped == ("decide", "fire", "publish")
    assert world.numbers(Ledger.TICKS) == [many + 1]


def test_a_merge_is_made_once_though_a_tick_disturbs_its_publication(world: World) -> None:
    many = COMPACT_ALWAYS_AFTER_TICKS + 5
    remember_long(world, many)
    for _ in range(2):
        world.tick_with_news()
    assert world.background is not None
    while world.background.advance():
        pass
    world.tick_with_news()
    world.resident.finish()
    assert world.dbt.built == ["fold", "tail"]
    assert world.numbers(Ledger.TICKS) == [many + 1, many + 2, many + 3]


def test_a_process_that_ends_lets_nothing_go_on_and_records_nothing(world: World) -> None:
    world.tick_with_news()
    world.resident.close()
    world.pass_time()
    assert (world.published, world.numbers(Ledger.TICKS)) == ([], [])


def test_jobs_over_the_limit_of_starts_are_decided_again_once_that_is_recorded(
    world: World,
) -> None:
    world.models["job_blockers"] = lambda: [world.blocker("over_start_limit")]
    world.tick_with_news()
    assert world.resident.tick().skipped == ("decide", "fire", "publish")
    world.pass_time()
    assert world.resident.tick().skipped == ()


class Threads(ThreadPoolExecutor):
    """A thread of its own, as `run` has it."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)

    def advance(self) -> bool:
        return False


def test_nothing_begins_to_publish_beside_a_decision(world: World) -> None:
    world.background = Threads()  # type: ignore[assignment]
    world.resident = world.engine()
    begun: list[bool] = []
    deciding = threading.Event()

    def blockers() -> Sequence[dict[str, object]]:
        begun.append(deciding.is_set())
        return [world.blocker()]

    publisher = world.resident._publisher
    world.models["job_blockers"] = blockers
    with publisher.held_off():
        deciding.set()
        publisher.add(Tick(number=2, at=NOON), COUNTS)
        publisher.launch(STATE)
        time.sleep(0.05)
        deciding.clear()
    publisher.wait()
    assert begun == [False]
    world.resident.close()


def test_a_decision_that_has_to_wait_for_a_publication_lets_it_begin(world: World) -> None:
    world.background = Threads()  # type: ignore[assignment]
    world.resident = world.engine()
    publisher = world.resident._publisher
    with publisher.held_off():
        publisher.add(Tick(number=2, at=NOON), COUNTS)
        publisher.launch(STATE)
        publisher.wait()
        assert publisher.is_done
    world.resident.close()


def test_a_process_that_ends_waits_for_what_is_at_work(world: World) -> None:
    world.background = Threads()  # type: ignore[assignment]
    world.resident = world.engine()
    at_work, went_on = threading.Event(), threading.Event()

    def blockers() -> Sequence[dict[str, object]]:
        at_work.set()
        time.sleep(0.05)
        went_on.set()
        return [world.blocker()]

    world.models["job_blockers"] = blockers
    world.tick_with_news()
    at_work.wait()
    world.resident.close()
    # Else it would write to a table beside the process that is let in next.
    assert went_on.is_set()
    assert world.numbers(Ledger.TICKS) == []
