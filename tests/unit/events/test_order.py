"""The order in which a job, a query and Airflow get events."""

import itertools
import random

import pytest

from harness.events.order import in_order


def told(
    snapshot: str,
    before: str | None = None,
    *,
    kind: str = "ICEBERG",
    tick: int = 1,
    at: int = 0,
    table: str = "t",
) -> dict[str, object]:
    return {
        "event_id": f"{table} {snapshot}",
        "table": table,
        "table_format": kind,
        "snapshot_id": snapshot,
        "prev_snapshot_id": before,
        "snapshot_ts": at,
        "tick_number": tick,
    }


def order_of(*rows: dict[str, object]) -> list[object]:
    found = in_order(rows, reported_at=lambda row: (int(str(row["tick_number"])),))
    return [row["snapshot_id"] for row in found]


@pytest.mark.parametrize("seed", range(30))
def test_snapshots_of_one_tick_come_one_behind_the_other_whatever_their_ids_and_clocks_show(
    seed: int,
) -> None:
    chance = random.Random(seed)
    ids = [str(each) for each in chance.sample(range(10**18), 6)]
    rows = [
        told(each, before, at=chance.randrange(1000))
        for before, each in itertools.pairwise(["1", *ids])
    ]
    chance.shuffle(rows)
    assert order_of(*rows) == ids


def test_snapshots_with_one_between_them_that_is_no_event_come_by_their_time() -> None:
    assert order_of(told("3", "2", at=7), told("9", "8", at=5)) == ["9", "3"]


def test_versions_come_by_their_number_whatever_the_clocks_of_their_writers_showed() -> None:
    rows = [told("10", "9", kind="DELTA", at=5), told("9", "8", kind="DELTA", at=70)]
    assert order_of(*rows) == ["9", "10"]


def test_what_an_earlier_tick_reported_comes_first() -> None:
    assert order_of(told("5", tick=2, at=1), told("6", "5", tick=1, at=2)) == ["6", "5"]


def test_a_snapshot_follows_only_those_of_its_own_table() -> None:
    assert order_of(told("5", "6", at=1), told("6", table="another", at=2)) == ["5", "6"]


def test_snapshots_in_a_circle_are_all_there_once() -> None:
    assert sorted(map(str, order_of(told("5", "6"), told("6", "5"), told("7", "7")))) == [
        "5",
        "6",
        "7",
    ]
