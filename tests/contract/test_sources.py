"""What every source keeps to, whatever is behind it: the same cases in every world."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.config.sources import FirstSight
from harness.events.event import ChangeEvent
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.store.work_lists import Upstream
from tests.support.sources.worlds import WORLDS, World

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)


class Watcher:
    """Probes a world again and again, as ticks do, and keeps the cursor between."""

    def __init__(self, world: World, **more: Any) -> None:
        self.world = world
        self.upstream = Upstream(
            upstream_id="u",
            source=world.source,
            sensor_id=world.sensor_id,
            read_type="batch",
            **{**world.options, **more},
        )
        self.restart()

    def restart(self) -> None:
        """Drop all that is only in memory, as a new process does."""
        self.probe = self.world.probe()

    def peek(self, at: datetime = AT) -> ProbeResult:
        """Probe without keeping the result, as a tick does that dies before it records."""
        [result] = self.probe.probe([self.upstream], at=at)
        return result

    def probe_once(self) -> ProbeResult:
        """Probe once, and keep the result unless it failed."""
        result = self.peek()
        if result.failure is None:
            self.upstream = replace(
                self.upstream, position=result.position, upstream_value=result.upstream_value
            )
        return result

    def reported(self) -> list[ChangeEvent]:
        """Probe as often as data needs to be reported, and return the events."""
        events: list[ChangeEvent] = []
        for _ in range(self.world.probes_until_reported):
            result = self.probe_once()
            assert result.failure is None, result.failure
            events += result.events
        return events

    def before_news(self) -> "Watcher":
        """Probe until the next probe is the one that reports what has just arrived."""
        for _ in range(self.world.probes_until_reported - 1):
            assert self.probe_once().failure is None
        return self


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    world = WORLDS[request.param](request, tmp_path)
    world.create()
    return world


@pytest.fixture
def watcher(world: World) -> Watcher:
    """A watcher that has seen the upstream with some data in it."""
    world.add()
    watcher = Watcher(world)
    watcher.reported()
    return watcher


def ids(events: list[ChangeEvent]) -> list[str]:
    return [event.id_at("u") for event in events]


# First probe


def test_first_sight_of_an_upstream_without_data_is_silent(world: World) -> None:
    assert Watcher(world).reported() == []


def test_first_sight_of_data_is_an_event(world: World) -> None:
    world.add()

    assert len(Watcher(world).reported()) == 1


def test_first_sight_as_baseline_is_silent(world: World) -> None:
    world.add()

    assert Watcher(world, on_first_sight=FirstSight.BASELINE).reported() == []


def test_what_follows_a_baseline_is_reported(world: World) -> None:
    world.add()
    watcher = Watcher(world, on_first_sight=FirstSight.BASELINE)
    watcher.reported()
    world.add()

    assert len(watcher.reported()) == 1


def test_what_follows_the_first_sight_of_nothing_is_reported(world: World) -> None:
    watcher = Watcher(world)
    watcher.reported()
    world.add()

    assert len(watcher.reported()) == 1


# New data, and none


def test_an_idle_probe_finds_nothing(watcher: Watcher) -> None:
    assert watcher.reported() == []


def test_an_idle_probe_has_the_very_same_cursor(watcher: Watcher) -> None:
    before = watcher.upstream.position

    assert watcher.probe_once().position == before


def test_new_data_is_reported(watcher: Watcher) -> None:
    watcher.world.add()

    assert len(watcher.reported()) == 1


def test_new_data_is_reported_once(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.reported()

    assert watcher.reported() == []


def test_each_arrival_is_another_event(watcher: Watcher) -> None:
    watcher.world.add()
    first = ids(watcher.reported())
    watcher.world.add()

    assert set(first).isdisjoint(ids(watcher.reported()))


def test_what_was_probed_but_not_recorded_is_the_same_event_again(watcher: Watcher) -> None:
    watcher.world.add()
    lost = watcher.before_news().peek().events

    assert (len(lost), ids(list(lost))) == (1, ids(list(watcher.probe_once().events)))


def test_an_event_follows_its_upstream(watcher: Watcher) -> None:
    watcher.world.add()
    [event] = watcher.reported()

    assert (bool(event.table), bool(event.snapshot_id)) == (True, True)


# The cursor


def test_a_restart_reports_nothing_again(watcher: Watcher) -> None:
    watcher.restart()

    assert watcher.reported() == []


def test_a_restart_goes_on_from_the_position_alone(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.restart()

    assert len(watcher.reported()) == 1


def test_a_restart_at_each_probe_reports_the_same(watcher: Watcher) -> None:
    watcher.world.add()
    events = []
    for _ in range(watcher.world.probes_until_reported):
        watcher.restart()
        events += watcher.probe_once().events

    assert len(events) == 1


def test_the_position_is_json_text(watcher: Watcher) -> None:
    assert json.loads(watcher.upstream.position or "") is not None


@pytest.mark.parametrize("year", [1999, 2199])
def test_our_clock_plays_no_part(watcher: Watcher, year: int) -> None:
    watcher.world.add()
    watcher.before_news()
    normal = watcher.peek()
    watcher.restart()
    odd = watcher.peek(at=AT.replace(year=year))

    assert (odd.position, ids(list(odd.events))) == (normal.position, ids(list(normal.events)))


# Failures


def test_an_upstream_that_is_away_is_a_failure(watcher: Watcher) -> None:
    watcher.world.take_away()

    assert watcher.probe_once().failure is not None


def test_an_upstream_that_is_away_at_first_sight_is_a_failure(world: World) -> None:
    world.take_away()

    assert Watcher(world).probe_once().failure is not None


def test_a_failure_is_one_sentence_that_names_the_upstream(watcher: Watcher) -> None:
    watcher.world.take_away()
    failure = watcher.probe_once().failure or ""

    assert failure.endswith(".") and "\n" not in failure and watcher.upstream.sensor_id in failure


def test_a_failure_has_no_events(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.world.take_away()

    assert watcher.probe_once().events == ()


def test_an_upstream_that_comes_back_unchanged_has_no_new_data(watcher: Watcher) -> None:
    watcher.world.take_away()
    watcher.probe_once()
    watcher.world.bring_back()

    assert watcher.reported() == []


def test_what_arrived_before_a_failure_is_reported_after_it(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.world.take_away()
    watcher.probe_once()
    watcher.world.bring_back()

    assert len(watcher.reported()) == 1


def test_what_arrives_after_a_failure_is_reported(watcher: Watcher) -> None:
    watcher.world.take_away()
    watcher.probe_once()
    watcher.world.bring_back()
    watcher.world.add()

    assert len(watcher.reported()) == 1


def test_a_restart_while_it_was_away_loses_nothing(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.world.take_away()
    watcher.probe_once()
    watcher.restart()
    watcher.probe_once()
    watcher.world.bring_back()

    assert len(watcher.reported()) == 1


def test_one_that_is_missing_fails_alone(watcher: Watcher) -> None:
    watcher.world.add()
    watcher.before_news()
    missing = replace(
        watcher.upstream, upstream_id="m", sensor_id=watcher.world.missing_id, position=None
    )
    results = ProbePool({watcher.world.source: watcher.probe}).probe_all(
        [missing, watcher.upstream], at=AT
    )

    assert [(result.failure is None, len(result.events)) for result in results] == [
        (False, 0),
        (True, 1),
    ]


def test_a_position_of_another_version_of_heartbeat_is_a_failure(watcher: Watcher) -> None:
    watcher.restart()
    watcher.upstream = replace(watcher.upstream, position='{"v":0}')

    assert "another version of Heartbeat" in (watcher.probe_once().failure or "")


# Queries


def query_of(world: World, index: int) -> str:
    if world.queries is None:
        pytest.skip(f"{world.source} has no rows to query.")
    return world.queries[index]


def test_a_query_that_returns_a_row_lets_the_event_through(world: World) -> None:
    watcher = Watcher(world, preprocess_query=query_of(world, 0))
    watcher.reported()
    world.add()

    assert len(watcher.reported()) == 1


def test_a_query_that_returns_no_row_makes_it_no_event(world: World) -> None:
    watcher = Watcher(world, preprocess_query=query_of(world, 1))
    watcher.reported()
    world.add()

    assert watcher.reported() == []


def test_what_a_query_turned_down_is_passed(world: World) -> None:
    watcher = Watcher(world, preprocess_query=query_of(world, 1))
    watcher.reported()
    world.add()
    watcher.reported()
    watcher.upstream = replace(watcher.upstream, preprocess_query=query_of(world, 0))

    assert watcher.reported() == []


def test_a_query_that_cannot_run_is_a_failure_and_nothing_is_passed(world: World) -> None:
    good = query_of(world, 0)
    watcher = Watcher(world, preprocess_query="select no_such_column from sensor_new_data")
    watcher.reported()
    world.add()
    failure = watcher.before_news().probe_once().failure
    watcher.upstream = replace(watcher.upstream, preprocess_query=good)

    assert (failure is None, len(watcher.probe_once().events)) == (False, 1)
