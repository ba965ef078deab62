"""How data-change events become events of an asset, once each, whichever process dies and when."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome

from heartbeat_airflow.assets import (
    CURSOR,
    MOST_UNCONFIRMED,
    DataChangeEventTrigger,
    EventStream,
    table_asset,
    triggering_events,
)
from heartbeat_airflow.client import HeartbeatError
from tests.conftest import CLUSTER, at, event

TAKEN, NOT_TAKEN = AdvanceOutcome(acked=1, failed=0), AdvanceOutcome(acked=0, failed=1)


class Ledger:
    """A Heartbeat whose events and ticks are given, one tick for each poll."""

    def __init__(self, ticks: list[int | None], events: list[dict[str, object]]) -> None:
        self._ticks = iter(ticks)
        self._events = events
        self.asked: list[tuple[int, int]] = []

    async def connect(self) -> "Ledger":
        return self

    async def told_through(self) -> int | None:
        try:
            return next(self._ticks)
        except StopIteration:
            raise Ended from None

    async def events(self, table: str, start: int, end: int) -> list[dict[str, object]]:
        self.asked.append((start, end))
        return [each for each in self._events if start <= int(str(each["event_ts"])) < end]


class Ended(Exception):
    """The given ticks are over."""


class Store:
    """An asset's state."""

    def __init__(self, cursor: int | None = None) -> None:
        self.kept: dict[str, object] = {} if cursor is None else {CURSOR: cursor}

    async def aget(self, key: str) -> object:
        return self.kept.get(key)

    async def aset(self, key: str, value: int) -> None:
        self.kept[key] = value


def watch(ledger: Ledger, store: Store, *, dies_after: int | None = None) -> list[str]:
    """Run a triggerer that confirms each event, until the ticks are over or it dies."""
    reported: list[str] = []

    async def watching() -> None:
        stream = EventStream(ledger.connect, "db.t", store, 0)
        async for found, cursor in stream.open_stream():
            reported.append(str(found["event_id"]))
            if len(reported) == dies_after:
                return
            await stream.advance([AdvanceItem(cursor, TAKEN)])

    with suppress(Ended):
        asyncio.run(watching())
    return reported


def test_what_was_told_before_the_watcher_is_not_told_again() -> None:
    ledger = Ledger([at(10), at(11)], [event(1, at(9)), event(2, at(10)), event(3, at(11))])
    assert watch(ledger, Store()) == ["e3"]


def test_each_event_is_told_once() -> None:
    ledger = Ledger([at(10), at(11), at(11), at(12)], [event(1, at(11)), event(2, at(12))])
    assert watch(ledger, Store()) == ["e1", "e2"]


def test_what_comes_while_no_triggerer_runs_is_told_by_the_next_one() -> None:
    store, events = Store(), [event(1, at(11)), event(2, at(12))]
    assert watch(Ledger([at(10)], []), store) == []
    assert watch(Ledger([at(13)], events), store) == ["e1", "e2"]
    assert watch(Ledger([at(14)], events), store) == []


def test_a_triggerer_that_dies_before_the_last_of_an_answer_loses_none() -> None:
    store, events = Store(at(10)), [event(1, at(11)), event(2, at(11)), event(3, at(11))]
    assert watch(Ledger([at(12)], events), store, dies_after=3) == ["e1", "e2", "e3"]
    assert watch(Ledger([at(12)], events), store) == ["e1", "e2", "e3"]


def test_a_flood_of_events_is_given_as_airflow_takes_them() -> None:
    flood = [event(number, at(11)) for number in range(3 * MOST_UNCONFIRMED)]
    stream = EventStream(Ledger([at(12)], flood).connect, "db.t", Store(at(10)), 0)
    given: list[int | None] = []

    async def give() -> None:
        async for _, cursor in stream.open_stream():
            given.append(cursor)

    async def story() -> None:
        giving = asyncio.create_task(give())
        for consumed in (1, 2, 3):
            while len(given) < consumed * MOST_UNCONFIRMED:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(given) == consumed * MOST_UNCONFIRMED
            new = given[-MOST_UNCONFIRMED:]
            await stream.advance([AdvanceItem(cursor, TAKEN) for cursor in new])
        with suppress(Ended):
            await giving

    asyncio.run(story())


def test_an_event_that_airflow_did_not_take_leaves_the_cursor_where_it_was() -> None:
    store = Store(at(10))
    stream = EventStream(Ledger([], []).connect, "db.t", store, 0)
    batch = [AdvanceItem(None, NOT_TAKEN), AdvanceItem(at(11), TAKEN)]
    with pytest.raises(RuntimeError, match="asked for again"):
        asyncio.run(stream.advance(batch))
    assert store.kept[CURSOR] == at(10)


def test_an_installation_without_a_tick_is_begun_with_at_its_first() -> None:
    ledger = Ledger([None, at(10), at(11)], [event(1, at(11))])
    assert watch(ledger, Store()) == ["e1"]


def test_a_clock_that_went_back_moves_no_cursor_back() -> None:
    store = Store(at(12))
    ledger = Ledger([at(11), at(13)], [event(1, at(11, 30)), event(2, at(13))])
    assert watch(ledger, store) == ["e2"]


def test_a_watcher_outlives_a_heartbeat_that_cannot_answer() -> None:
    class Failing(Ledger):
        async def events(self, table: str, start: int, end: int) -> list[dict[str, object]]:
            found = await super().events(table, start, end)
            if len(self.asked) == 1:
                raise HeartbeatError("The disk is full")
            return found

    assert watch(Failing([at(11), at(12)], [event(1, at(11))]), Store(at(10))) == ["e1"]


def test_an_asset_of_a_table_is_watched() -> None:
    asset = table_asset("lake.data.pageviews", cluster=CLUSTER)
    assert (asset.name, asset.uri) == (
        "lake.data.pageviews",
        f"heartbeat://{CLUSTER}/lake.data.pageviews",
    )
    [watcher] = asset.watchers
    assert watcher.trigger.asset == asset.name


@pytest.mark.parametrize(
    ("table", "uri"), [("/data/my lake", "data/my%20lake"), ("größe.t", "gr%C3%B6%C3%9Fe.t")]
)
def test_a_table_of_any_name_is_an_asset(table: str, uri: str) -> None:
    assert table_asset(table, cluster=CLUSTER).uri == f"heartbeat://{CLUSTER}/{uri}"


def test_two_assets_of_one_table_have_a_stream_each() -> None:
    assets = [table_asset("db.t", name=name) for name in ("one", "two")]
    keys = {asset.watchers[0].trigger.shared_stream_key() for asset in assets}
    assert len(keys) == 2


def test_a_triggerer_gets_the_same_trigger_again() -> None:
    trigger = table_asset("db.t").watchers[0].trigger
    path, options = trigger.serialize()
    assert path == f"{DataChangeEventTrigger.__module__}.{DataChangeEventTrigger.__name__}"
    assert DataChangeEventTrigger(**options).serialize() == trigger.serialize()


def test_a_dag_run_sees_each_event_once_though_it_was_told_twice() -> None:
    reported = [event(1, at(10)), event(2, at(10)), event(1, at(10))]
    from_trigger = [
        SimpleNamespace(extra={"from_trigger": True, "payload": each}) for each in reported
    ]
    by_hand = SimpleNamespace(extra={})
    found = triggering_events({"asset": [*from_trigger, by_hand]})
    assert [each["event_id"] for each in found] == ["e1", "e2"]
