"""Turns data-change events of a table into events of an Airflow asset."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from airflow.sdk import Asset, AssetWatcher
from airflow.sdk.execution_time.context import AssetStateStoreAccessor
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from heartbeat_airflow.client import HeartbeatError
from heartbeat_airflow.events import Event, distinct
from heartbeat_airflow.hook import HeartbeatHook

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

#: Connects to the installation.
Connect = Callable[[], Awaitable["Asked"]]

#: The key in the asset's state: up to when events have become events of the asset.
CURSOR = "heartbeat_told_through"


class Store(Protocol):
    """What keeps the cursor: Airflow's state of an asset."""

    async def aget(self, key: str) -> object:
        """Return what is kept."""
        ...

    async def aset(self, key: str, value: int) -> None:
        """Keep it."""
        ...


#: Airflow lets a subscriber have 1,024 events unread, and fails the watcher after that.
MOST_UNCONFIRMED = 500


class Asked(Protocol):
    """The requests to Heartbeat."""

    async def told_through(self) -> int | None:
        """Return up to when all events are recorded."""
        ...

    async def events(self, table: str, start: int, end: int) -> list[dict[str, object]]:
        """Return the events of a table and an interval."""
        ...


def table_asset(
    table: str,
    *,
    cluster: str = HeartbeatHook.default_conn_name,
    name: str | None = None,
    poll_interval: float = 30.0,
) -> Asset:
    """Return the asset of a table, with a watcher that has an asset event for each change.

    Args:
        table: The table, as Heartbeat's controls name it.
        cluster: The connection that names the installation of Heartbeat.
        name: Of the asset; the table's own if it is not given.
        poll_interval: How many seconds lie between two polls.
    """
    name = name or table
    trigger = DataChangeEventTrigger(
        table=table, cluster=cluster, asset=name, poll_interval=poll_interval
    )
    return Asset(
        name=name,
        uri=f"heartbeat://{cluster}/{quote(table.strip('/'))}",
        watchers=[AssetWatcher(name=f"heartbeat: {name}", trigger=trigger)],
    )


def triggering_events(triggering_asset_events: Mapping[Any, Sequence[Any]]) -> list[Event]:
    """Return the data-change events that a DAG run was started for, each once.

    Args:
        triggering_asset_events: What Airflow gives a task under this name.
    """
    payloads = [
        event.extra["payload"]
        for events in triggering_asset_events.values()
        for event in events
        if event.extra.get("from_trigger")
    ]
    return distinct([each for each in payloads if "event_id" in each])


class EventStream(SharedStreamProducer):
    """Requests the events after the cursor, and moves it when Airflow has them in its database.

    So a triggerer that dies anywhere loses no event. It may emit those again that it had not
    confirmed; they have the same `event_id`.

    Args:
        heartbeat: Returns a client of the installation; called for each request, as the
            connection may change.
        table: The table.
        store: Keeps the cursor.
        poll_interval: How many seconds lie between two polls.
    """

    def __init__(self, heartbeat: Connect, table: str, store: Store, poll_interval: float) -> None:
        self._heartbeat = heartbeat
        self._table = table
        self._store = store
        self._poll_interval = poll_interval
        self._problem = ""
        self._unconfirmed = 0

    async def open_stream(self) -> AsyncIterator[tuple[Event, int | None]]:
        """Yield each event; the last one of an answer with the cursor after it."""
        kept = await self._store.aget(CURSOR)
        cursor = None if kept is None else int(str(kept))
        while True:
            if cursor is None:
                cursor = await self._begin()
            else:
                events, through = await self._ask(cursor)
                for number, event in enumerate(events, 1):
                    await self._room()
                    yield event, through if number == len(events) else None
                cursor = through
            await asyncio.sleep(self._poll_interval)

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Keep the cursor after the last event that Airflow has."""
        self._unconfirmed -= len(batch)
        for item in batch:
            if not item.outcome.is_clean:
                raise RuntimeError(
                    f"Airflow has not taken an event of {self._table}: it is asked for again"
                )
        cursors = [item.broker_payload for item in batch if item.broker_payload is not None]
        if cursors:
            await self._store.aset(CURSOR, cursors[-1])

    async def _room(self) -> None:
        """Wait until Airflow has confirmed enough events to be given one more."""
        while self._unconfirmed >= MOST_UNCONFIRMED:
            await asyncio.sleep(min(self._poll_interval, 0.5))
        self._unconfirmed += 1

    async def _begin(self) -> int | None:
        """Begin with what comes from now on, and keep that cursor for a restart."""
        reported = await self._tried(self._told_through)
        if reported is None:
            return None
        await self._store.aset(CURSOR, reported + 1)
        return reported + 1

    async def _ask(self, cursor: int) -> tuple[list[dict[str, object]], int]:
        async def answer() -> tuple[list[dict[str, object]], int]:
            reported = await self._told_through()
            if reported is None or reported < cursor:
                return [], cursor
            heartbeat = await self._heartbeat()
            return await heartbeat.events(self._table, cursor, reported + 1), reported + 1

        return await self._tried(answer) or ([], cursor)

    async def _told_through(self) -> int | None:
        return await (await self._heartbeat()).told_through()

    async def _tried(self, question: Callable[[], Awaitable[_Answer]]) -> _Answer | None:
        """Poll, and survive every failure: nothing would restart a watcher."""
        try:
            answer = await question()
        except HeartbeatError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("%s is not asked for events: %s", self._table, error)
            return None
        if self._problem:
            log.warning("%s is asked for events again", self._table)
        self._problem = ""
        return answer


class DataChangeEventTrigger(BaseEventTrigger):
    """Fires for each data-change event of a table.

    Args:
        table: The table, as Heartbeat's controls name it.
        cluster: The connection that names the installation of Heartbeat.
        asset: The name of the asset that is watched; its state has the cursor.
        poll_interval: How many seconds lie between two polls.
    """

    def __init__(
        self, *, table: str, cluster: str, asset: str, poll_interval: float = 30.0
    ) -> None:
        super().__init__()
        self.table = table
        self.cluster = cluster
        self.asset = asset
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow needs to create the trigger again."""
        return ("heartbeat_airflow.assets.DataChangeEventTrigger", self._options())

    def shared_stream_key(self) -> Hashable:
        """Name the stream: one for each asset, since each has a cursor of its own."""
        return ("heartbeat", *self._options().values())

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """Return the stream, which is acknowledged by Airflow's database."""
        hook = HeartbeatHook(kwargs["cluster"])
        store = AssetStateStoreAccessor(name=kwargs["asset"])
        return EventStream(hook.aget_conn, kwargs["table"], store, kwargs["poll_interval"])

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Event]
    ) -> AsyncIterator[TriggerEvent]:
        """Fire for each event."""
        async for event in shared_stream:
            yield TriggerEvent(dict(event))

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Refuse to run alone: acknowledgements by Airflow's database would be missing."""
        raise NotImplementedError("Data-change events are fired from a shared stream only")
        yield TriggerEvent({})

    def _options(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "cluster": self.cluster,
            "asset": self.asset,
            "poll_interval": self.poll_interval,
        }
