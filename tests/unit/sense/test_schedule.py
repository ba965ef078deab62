"""The probes of one tick: what is due, what is deferred, and what the next process reads of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.config.load import load_settings
from harness.config.sources import FirstSight
from harness.sense.backoff import BackOff, load_back_off
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Listening, Sweep, Sweeps
from harness.store.work_lists import Upstream
from tests.support.golden import AT
from tests.support.watched import NEVER_SEEN

NOBODY = Listening()


def watched(name: str, *, fails: bool = True) -> Upstream:
    return replace(
        NEVER_SEEN,
        upstream_id=name,
        source="kafka",
        sensor_id=f"shop: {name}",
        read_type="stream",
        failing_since=AT if fails else None,
        reason="it is down." if fails else None,
    )


@dataclass
class FakeLooker:
    """Fails for ``down``, and leaves ``left_out`` out, as if others hung."""

    down: set[str] = field(default_factory=lambda: {"dead"})
    left_out: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        ids = [each.upstream_id for each in upstreams]
        self.asked.append(ids)
        self.meanwhile()
        return [
            ProbeResult(upstream_id=each, failure="it is down." if each in self.down else None)
            for each in ids
            if each not in self.left_out
        ]


@dataclass
class Ticking:
    """Ticks every 30 seconds, each one in a process of its own."""

    folder: Path
    probe_pool: FakeLooker = field(default_factory=FakeLooker)
    number: int = 0
    text: str = ""
    upstreams: list[Upstream] = field(
        default_factory=lambda: [watched("dead"), watched("alive", fails=False)]
    )

    @property
    def sweeps(self) -> Sweeps:
        (self.folder / "heartbeat.yml").write_text(self.text)
        return Sweeps(load_settings(self.folder, {}), self.folder / "back_off.json")

    def tick(self, upstreams: Sequence[Upstream] | None = None) -> Sweep:
        at = AT + timedelta(seconds=30 * self.number)
        self.number += 1
        wanted = self.upstreams if upstreams is None else upstreams
        return self.sweeps.probe(wanted, lambda: self.probe_pool, at=at, listening=NOBODY)

    def ticks(self, count: int) -> Sweep:
        return [self.tick() for _ in range(count)][-1]


@pytest.fixture
def ticking(tmp_path: Path) -> Ticking:
    return Ticking(tmp_path)


def test_what_keeps_failing_is_put_off_and_the_others_are_probed(ticking: Ticking) -> None:
    made = ticking.ticks(4)
    assert ticking.probe_pool.asked[-1] == ["alive"]
    assert [result.upstream_id for result in made.results] == ["alive"]


def test_what_is_put_off_is_reported_with_its_reason_and_its_next_probe(ticking: Ticking) -> None:
    [deferred] = ticking.ticks(4).deferred
    assert (deferred.upstream_id, deferred.reason) == ("dead", "it is down.")
    assert deferred.next_probe_at == AT + timedelta(seconds=120)
    assert deferred.is_failing


def test_what_is_put_off_is_no_probe_at_all(ticking: Ticking) -> None:
    assert "dead" not in {result.upstream_id for result in ticking.ticks(4).results}


def test_what_is_put_off_is_probed_when_its_time_has_come(ticking: Ticking) -> None:
    ticking.ticks(5)
    assert ticking.probe_pool.asked[-1] == ["alive", "dead"]


def test_a_resident_process_puts_off_just_as_fresh_ones_do(ticking: Ticking) -> None:
    sweeps = ticking.sweeps
    for number in range(5):
        sweeps.probe(
            ticking.upstreams,
            lambda: ticking.probe_pool,
            at=AT + timedelta(seconds=30 * number),
            listening=NOBODY,
        )
    fresh = Ticking(ticking.folder / "fresh")
    fresh.folder.mkdir()
    fresh.ticks(5)
    assert ticking.probe_pool.asked == fresh.probe_pool.asked


def test_a_success_puts_nothing_off_any_longer(ticking: Ticking) -> None:
    ticking.ticks(4)
    ticking.probe_pool.down.clear()
    ticking.tick()
    ticking.probe_pool.down.add("dead")
    ticking.ticks(2)
    assert ticking.probe_pool.asked[-1] == ["alive", "dead"]


def test_an_edited_control_row_is_probed_by_the_next_tick(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.sweeps.try_again(["dead"])
    ticking.tick()
    assert ticking.probe_pool.asked[-1] == ["alive", "dead"]


def test_the_edited_row_of_another_upstream_changes_nothing(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.sweeps.try_again(["alive"])
    ticking.tick()
    assert ticking.probe_pool.asked[-1] == ["alive"]


def test_what_is_no_longer_probed_is_forgotten(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.sweeps.keep_only(["alive"])
    assert not (ticking.folder / "back_off.json").exists()


def test_a_wait_that_a_person_ends_while_a_sweep_probes_has_ended(ticking: Ticking) -> None:
    ticking.upstreams.append(watched("slow"))
    ticking.probe_pool.down.add("slow")
    ticking.ticks(4)
    ticking.probe_pool.meanwhile = (ticking.folder / "back_off.json").unlink
    ticking.tick()
    ticking.tick()
    assert ticking.probe_pool.asked[-1] == ["alive", "dead", "slow"]


def test_an_edited_configuration_is_tried_by_the_next_tick(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.text = "connections: {kafka: {shop: {bootstrap_servers: 'other:9092'}}}"
    ticking.tick()
    assert ticking.probe_pool.asked[-1] == ["alive", "dead"]


def test_what_works_under_an_edited_configuration_is_no_longer_shown_as_failing(
    ticking: Ticking,
) -> None:
    ticking.ticks(3)
    ticking.text = "connections: {kafka: {shop: {bootstrap_servers: 'other:9092'}}}"
    ticking.probe_pool.down.clear()
    ticking.tick()
    assert load_back_off(ticking.folder / "back_off.json") == BackOff()


def test_what_nothing_needs_is_forgotten_under_an_edited_configuration_too(
    ticking: Ticking,
) -> None:
    ticking.ticks(3)
    ticking.text = "connections: {kafka: {shop: {bootstrap_servers: 'other:9092'}}}"
    ticking.sweeps.keep_only(["alive"])
    assert load_back_off(ticking.folder / "back_off.json") == BackOff()


def test_an_upstream_that_fails_no_more_by_the_ledgers_is_probed(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.tick([replace(watched("dead"), failing_since=None)])
    assert ticking.probe_pool.asked[-1] == ["dead"]


def test_a_tick_that_probes_a_part_forgets_nothing_of_the_rest(ticking: Ticking) -> None:
    ticking.ticks(3)
    ticking.tick([watched("alive", fails=False)])
    ticking.number -= 1
    ticking.tick()
    assert ticking.probe_pool.asked[-1] == ["alive"]


def test_what_worked_at_its_last_probe_is_probed_before_what_failed(ticking: Ticking) -> None:
    ticking.tick()
    assert ticking.probe_pool.asked == [["alive", "dead"]]


def test_what_others_hold_up_is_put_off_to_the_next_tick_and_not_failing(ticking: Ticking) -> None:
    ticking.probe_pool.left_out.add("alive")
    [deferred] = ticking.tick().deferred
    assert (deferred.upstream_id, deferred.next_probe_at, deferred.is_failing) == (
        "alive",
        None,
        False,
    )
    assert deferred.reason == "too many other probes of kafka hang"


def test_no_looker_is_made_when_all_is_put_off(ticking: Ticking) -> None:
    ticking.upstreams = [watched("dead")]
    ticking.ticks(4)
    assert len(ticking.probe_pool.asked) == 3


def test_the_number_of_probes_to_come_is_reported_without_those_put_off(ticking: Ticking) -> None:
    ticking.ticks(3)
    reported: list[int] = []
    ticking.sweeps.probe(
        ticking.upstreams,
        lambda: ticking.probe_pool,
        at=AT + timedelta(seconds=90),
        listening=Listening(on_plan=reported.append),
    )
    assert reported == [1]


def test_a_file_that_cannot_be_written_stops_no_tick(ticking: Ticking) -> None:
    (ticking.folder / "back_off.json").mkdir()
    assert len(ticking.tick().results) == 2


def test_what_was_never_probed_begins_as_the_configuration_states(ticking: Ticking) -> None:
    ticking.text = "sensing: {first_sight: baseline}\n"

    [swept] = ticking.tick([watched("new", fails=False)]).upstreams

    assert swept.on_first_sight is FirstSight.BASELINE


def test_what_was_probed_before_is_probed_as_it_is(ticking: Ticking) -> None:
    ticking.text = "sensing: {first_sight: baseline}\n"
    known = replace(watched("known", fails=False), position="there")

    [swept] = ticking.tick([known]).upstreams

    assert swept is known
