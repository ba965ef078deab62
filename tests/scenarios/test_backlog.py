"""A table that ran far ahead of us: the same is reported, recorded and passed to the job."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.store.rows import Ledger, LedgerRow, Store
from tests.scenarios.conftest import Killed, Story
from tests.support.golden import GoldenTable, add, info

pytestmark = pytest.mark.long


class DiesBetween:
    """A store at which the process dies after the events and before the cursors."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        if ledger is Ledger.PROBES and rows:
            raise Killed
        self._store.append(ledger, rows)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def versions(events: Sequence[Mapping[str, object]]) -> list[int]:
    """Return every version that recorded events report, as often as they do."""
    reported: list[int] = []
    for event in events:
        tags, newest = dict(event["tags"]), int(str(event["snapshot_id"]))  # type: ignore[call-overload]
        reported += range(int(tags.get("coalesced_from", newest)), newest + 1)
    return sorted(reported)


def test_a_backlog_of_hundreds_of_commits_starts_its_job_once_though_the_tick_dies_on_the_way(
    story: Story,
) -> None:
    job = story.job(1)
    table = GoldenTable(story.folder / "orders").create()
    story.control(str(table.path), job)
    assert story.started(story.tick()) == []

    def run_ahead(commits: int) -> None:
        for _ in range(commits):
            table.commit(info("WRITE"), add(f"f{table.version}"))

    def recorded() -> list[dict[str, object]]:
        return story.context.store.read(Ledger.EVENTS, where=[("table", "=", str(table.path))])

    run_ahead(740)
    story.context.__dict__["store"] = DiesBetween(story.context.store)
    with pytest.raises(Killed):
        story.tick()
    story.restart()
    run_ahead(100)
    mended = story.tick()

    assert story.started(mended) == [job]
    assert mended.started[0].event_count == len(recorded()) == 501
    assert versions(recorded()) == [*range(1, 741)]

    story.restart()
    story.end(job)
    after = story.tick()
    story.end(job)
    story.tick()
    idle = story.tick()

    assert story.started(after) == [job]
    assert after.started[0].event_count == 100
    assert versions(recorded()) == [*range(1, 841)]
    assert (story.started(idle), idle.event_count, idle.skipped) == (
        [],
        0,
        ("decide", "fire", "publish"),
    )


def test_an_event_of_a_dead_tick_is_recorded_once_though_the_ledgers_are_compacted_before_its_table_is_back(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.publish.publish.COMPACT_AFTER_TICKS", 1)
    monkeypatch.setattr("harness.publish.publish._MANY_ROWS", 0)
    job, other = story.job(1), story.job(2)
    flights, orders = story.table("flights"), story.table("orders")
    story.control(flights, job)
    story.control(orders, other)
    story.tick()
    story.end(job)
    story.end(other)
    story.append(flights)
    story.context.__dict__["store"] = DiesBetween(story.context.store)
    with pytest.raises(Killed):
        story.tick()
    story.restart()
    lost = Path(flights).rename(f"{flights}-lost")
    story.append(orders)
    assert story.started(story.tick()) == [other]
    (left,) = story.context.store.read(
        Ledger.EVENTS, where=[("snapshot_id", "=", "1"), ("table", "=", flights)]
    )
    (compacted,) = story.context.rows("int_compaction")
    assert compacted["folded_through"] >= left["tick_number"]
    # Nothing but the ledgers is left of the processes so far.
    story.context.home.state.unlink()
    story.restart()
    story.tick()
    lost.rename(flights)

    found = story.tick()

    assert (story.started(found), found.started[0].event_count) == ([job], 1)
    rows = story.context.store.read(Ledger.EVENTS, where=[("table", "=", flights)])
    assert sorted(str(row["snapshot_id"]) for row in rows) == ["0", "1"]
