"""Many upstreams side by side."""

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from random import Random

import pytest

from harness.platform.logs import FileFormatter, log_as_tick
from harness.platform.masking import mask
from harness.sense.pool import ProbePool
from harness.sense.probe import Continued, ProbeResult
from harness.store.work_lists import Upstream
from tests.support.golden import AT


def upstream(name: str, source: str = "delta_table") -> Upstream:
    return Upstream(
        upstream_id=name, source=source, sensor_id=name, read_type="batch", position="there"
    )


class FakeProbe:
    """Answers, raises for ``bad``, and hangs for ``hangs`` until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.hanging = threading.Event()
        self.back = threading.Event()
        self.seen: list[str] = []

    def group_of(self, upstream: Upstream) -> str:
        if upstream.sensor_id == "no group":
            raise ValueError("it has no colon")
        return upstream.sensor_id.partition(":")[0]

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        names = [one.sensor_id for one in group]
        self.seen.append(",".join(names))
        if "bad" in names:
            raise RuntimeError("the disk is on fire\nat line 7")
        if "hangs" in names:
            self.hanging.set()
            self.let_go.wait(30)
            self.back.set()
        return [
            ProbeResult(upstream_id=one.upstream_id, position="here")
            for one in group
            if one.sensor_id != "forgotten"
        ]


@pytest.fixture
def probe() -> Iterator[FakeProbe]:
    probe = FakeProbe()
    yield probe
    probe.let_go.set()


class Stopwatch:
    """Stands at zero until the probe hangs, then is past every deadline."""

    def __init__(self, probe: FakeProbe) -> None:
        self._probe = probe

    def __call__(self) -> float:
        hangs = self._probe.hanging.is_set() and not self._probe.let_go.is_set()
        return 1000.0 if hangs else 0.0


def test_every_upstream_gets_one_probe_in_the_order_given(probe: FakeProbe) -> None:
    names = [f"t{number}" for number in range(100)]

    results = ProbePool({"delta_table": probe}).probe_all([upstream(n) for n in names], at=AT)

    assert [result.upstream_id for result in results] == names


def test_a_probe_that_raises_is_a_failure_and_stops_no_other(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"delta_table": probe}, threads=1)

    bad, good = probe_pool.probe_all([upstream("bad"), upstream("good")], at=AT)

    assert bad.failure == ("delta_table bad cannot be sensed: RuntimeError: the disk is on fire.")
    assert (good.failure, good.position) == (None, "here")


def test_a_failure_keeps_the_position(probe: FakeProbe) -> None:
    [bad] = ProbePool({"delta_table": probe}).probe_all([upstream("bad")], at=AT)

    assert bad.position == "there"


def test_a_probe_that_hangs_is_a_failure_and_stops_no_other(probe: FakeProbe) -> None:
    probe_pool = ProbePool(
        {"delta_table": probe}, threads=1, deadline_seconds=60, monotonic=Stopwatch(probe)
    )

    results = probe_pool.probe_all([upstream("hangs"), upstream("good")], at=AT)

    assert [result.failure for result in results] == [
        "delta_table hangs did not answer within 60 s.",
        None,
    ]


def test_an_upstream_is_not_probed_while_its_last_probe_hangs(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"delta_table": probe}, monotonic=Stopwatch(probe))
    probe_pool.probe_all([upstream("hangs")], at=AT)

    [again] = probe_pool.probe_all([upstream("hangs")], at=AT)

    assert again.failure == "delta_table hangs has not answered since 2025-04-23T21:40:00+00:00."
    assert probe.seen == ["hangs"]


def test_an_upstream_is_probed_again_when_its_hung_probe_came_back(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"delta_table": probe}, monotonic=Stopwatch(probe))
    probe_pool.probe_all([upstream("hangs")], at=AT)
    probe.let_go.set()
    probe.back.wait(30)
    results = [ProbeResult(upstream_id="hangs", failure="not yet")]
    while results[0].failure:  # the thread puts its name off the list a moment after it is back
        results = probe_pool.probe_all([upstream("hangs")], at=AT)

    assert results[0].position == "here"


def test_upstreams_of_one_group_are_probed_together(probe: FakeProbe) -> None:
    ProbePool({"delta_table": probe}).probe_all([upstream("c:1"), upstream("c:2")], at=AT)

    assert probe.seen == ["c:1,c:2"]


def test_an_upstream_without_an_answer_is_a_failure(probe: FakeProbe) -> None:
    [result] = ProbePool({"delta_table": probe}).probe_all([upstream("forgotten")], at=AT)

    assert result.failure == "delta_table forgotten got no result from its probe."


def test_an_upstream_whose_group_cannot_be_determined_fails_alone(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"delta_table": probe})

    results = probe_pool.probe_all([upstream("no group"), upstream("good")], at=AT)

    assert [result.failure for result in results] == [
        "delta_table no group cannot be sensed: ValueError: it has no colon.",
        None,
    ]


def test_an_unknown_source_is_a_failure_that_names_the_known_ones(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"delta_table": probe})

    [result] = probe_pool.probe_all([upstream("x", source="pigeon")], at=AT)

    assert result.failure == "pigeon x has an unknown sensor_source; allowed are delta_table."


def test_each_result_is_reported_as_it_comes_in(probe: FakeProbe) -> None:
    reported: list[str] = []
    upstreams = [upstream("bad"), upstream("good"), upstream("x", source="pigeon")]

    ProbePool({"delta_table": probe}).probe_all(
        upstreams, at=AT, on_result=lambda result: reported.append(result.upstream_id)
    )

    assert sorted(reported) == ["bad", "good", "x"]


class Meeting(FakeProbe):
    """Waits until ``count`` probes run at the same time; with ``start``, those of such names alone."""

    def __init__(self, count: int, start: str = "") -> None:
        super().__init__()
        self._barrier = threading.Barrier(count, timeout=30)
        self._start = start

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        if group[0].sensor_id.startswith(self._start):
            self._barrier.wait()
        return super().probe(group, at=at)


def test_slow_probes_run_side_by_side() -> None:
    probe_pool = ProbePool({"delta_table": Meeting(8)}, threads=8)

    results = probe_pool.probe_all([upstream(f"t{number}") for number in range(8)], at=AT)

    assert [result.failure for result in results] == [None] * 8


class Patient(FakeProbe):
    """Returns only when the other source has been probed as often as it should be."""

    def __init__(self, others: int) -> None:
        super().__init__()
        self._others = others
        self._seen_others: list[str] = []
        self.all_seen = threading.Event()
        self.came_back: list[bool] = []

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        if group[0].source == "kafka":
            self.came_back.append(self.all_seen.wait(10))
        else:
            self._seen_others.append(group[0].sensor_id)
            if len(self._seen_others) == self._others:
                self.all_seen.set()
        return super().probe(group, at=at)


def test_the_hanging_probes_of_one_source_leave_threads_for_the_others() -> None:
    probe = Patient(others=20)
    probe_pool = ProbePool({"kafka": probe, "delta_table": probe}, threads=4, monotonic=lambda: 0.0)
    hanging = [upstream(f"k{number}:", "kafka") for number in range(10)]

    probe_pool.probe_all([*hanging, *(upstream(f"t{n}") for n in range(20))], at=AT)

    assert probe.came_back == [True] * 10


def test_a_source_has_its_own_time_limit(probe: FakeProbe) -> None:
    probe_pool = ProbePool({"kafka": probe}, limits={"kafka": 90}, monotonic=Stopwatch(probe))

    [result] = probe_pool.probe_all([upstream("hangs", "kafka")], at=AT)

    assert result.failure == "kafka hangs did not answer within 90 s."


class Shy(Stopwatch):
    """At 100 seconds while the probe hangs; lets it return once it has been read often enough."""

    def __init__(self, probe: FakeProbe) -> None:
        super().__init__(probe)
        self._probe = probe
        self._asked = 0

    def __call__(self) -> float:
        self._asked += self._probe.hanging.is_set()
        if self._asked > 3:
            self._probe.let_go.set()
        return 100.0 if self._probe.hanging.is_set() else 0.0


@pytest.mark.parametrize(
    ("usual", "limits"), [(200, {"kafka": 90}), (90, {"jdbc": 200})], ids=["others", "longer"]
)
def test_the_limit_of_a_source_is_its_own_and_no_other(
    probe: FakeProbe, usual: float, limits: dict[str, float]
) -> None:
    probe_pool = ProbePool(
        {"jdbc": probe}, deadline_seconds=usual, limits=limits, monotonic=Shy(probe)
    )

    [result] = probe_pool.probe_all([upstream("hangs", "jdbc")], at=AT)

    assert result.failure is None


class HangingDisk(FakeProbe):
    """Probes of ``t...`` hang; time passes while so many do. The others wait for a failure."""

    now = 0.0
    needed = 2
    #: Probes after so many begin long after the others.
    early = 1_000

    def __init__(self) -> None:
        super().__init__()
        self._begun = 0
        self.gave_up = threading.Event()

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        if group[0].sensor_id.startswith("t"):
            self.seen.append(group[0].sensor_id)
            self.let_go.wait(30)
        else:
            self.gave_up.wait(30)
        return [ProbeResult(upstream_id=one.upstream_id, position="here") for one in group]

    def monotonic(self) -> float:
        if threading.current_thread() is not threading.main_thread():
            self._begun += 1
            return self.now + (1e9 if self._begun > self.early else 0.0)
        if len(self.seen) >= self.needed and not self.gave_up.is_set():
            self.now += 1000.0
        return self.now

    def on_result(self, result: ProbeResult) -> None:
        if result.failure:
            self.gave_up.set()


@pytest.fixture
def disk() -> Iterator[HangingDisk]:
    disk = HangingDisk()
    yield disk
    disk.let_go.set()
    disk.gave_up.set()


def looker_at(disk: HangingDisk, threads: int = 4) -> ProbePool:
    probes = {"delta_table": disk, "kafka": disk}
    limits = {"kafka": 1e9}
    return ProbePool(probes, threads=threads, limits=limits, monotonic=disk.monotonic)


def test_when_half_of_all_threads_hang_on_a_source_its_others_are_put_off(
    disk: HangingDisk,
) -> None:
    results = looker_at(disk).probe_all([upstream(f"t{number}") for number in range(50)], at=AT)

    assert len(results) == len(disk.seen) < 10


def test_several_sources_that_hang_are_waited_for_together_and_not_in_turn(
    disk: HangingDisk,
) -> None:
    disk.needed = 16
    sources = ("delta_table", "file", "jdbc", "sap_bw")
    probe_pool = ProbePool(dict.fromkeys(sources, disk), threads=16, monotonic=disk.monotonic)
    upstreams = [upstream(f"t{source}{n}", source) for source in sources for n in range(20)]

    results = probe_pool.probe_all(upstreams, at=AT)

    assert len(results) == len(disk.seen) == 16


def test_what_is_put_off_in_one_source_is_probed_in_the_others(disk: HangingDisk) -> None:
    upstreams = [upstream(f"t{number}") for number in range(50)]
    upstreams += [upstream(f"k{number}:", "kafka") for number in range(50)]

    results = looker_at(disk).probe_all(upstreams, at=AT, on_result=disk.on_result)

    assert sum(result.position == "here" for result in results) == 50


def test_what_was_put_off_is_probed_by_the_next_pass(disk: HangingDisk) -> None:
    probe_pool = looker_at(disk)
    upstreams = [upstream(f"t{number}") for number in range(50)]
    first = {result.upstream_id for result in probe_pool.probe_all(upstreams, at=AT)}
    disk.let_go.set()
    disk.gave_up.set()
    rest = [each for each in upstreams if each.upstream_id not in first]

    results = probe_pool.probe_all(rest, at=AT)

    assert [result.failure for result in results] == [None] * len(rest)


def test_probes_that_hung_in_an_earlier_pass_put_nothing_off(disk: HangingDisk) -> None:
    probe_pool = looker_at(disk, threads=12)
    disk.needed = 6
    probe_pool.probe_all([upstream(f"t{n}") for n in range(6)], at=AT, on_result=disk.on_result)
    disk.gave_up.clear()
    disk.needed = disk.early = 7
    one_hangs = [upstream("t6"), *(upstream(f"q{number}") for number in range(20))]

    results = probe_pool.probe_all(one_hangs, at=AT, on_result=disk.on_result)

    assert len(results) == 21


class Counting(ProbePool):
    """Counts the threads that it starts."""

    started = 0

    def _start(self) -> None:
        self.started += 1
        super()._start()


def test_no_more_threads_are_started_than_find_a_probe_to_run() -> None:
    probe_pool = Counting({"delta_table": Meeting(40)}, threads=200)

    for _ in range(2):
        results = probe_pool.probe_all([upstream(f"t{number}") for number in range(40)], at=AT)
        assert [result.failure for result in results] == [None] * 40

    assert probe_pool.started == 40


class Crowded(ProbePool):
    """On a machine that gives so many threads and no more."""

    most = 1

    def _start(self) -> None:
        if self.most == 0:
            raise RuntimeError("can't start new thread")
        self.most -= 1
        super()._start()


def test_a_machine_without_more_threads_probes_with_those_it_has(probe: FakeProbe) -> None:
    results = Crowded({"delta_table": probe}).probe_all(
        [upstream(f"t{n}") for n in range(9)], at=AT
    )

    assert len(results) == 9


def test_a_machine_that_gives_no_thread_puts_off_what_is_left(probe: FakeProbe) -> None:
    probe_pool = Crowded({"delta_table": probe}, threads=4, monotonic=Stopwatch(probe))

    results = probe_pool.probe_all([upstream("hangs"), upstream("good")], at=AT)

    assert [result.upstream_id for result in results] == ["hangs"]


def test_a_failure_does_not_repeat_a_secret() -> None:
    mask("hunter2-hunter2")

    class Talkative(FakeProbe):
        def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
            if group[0].sensor_id == "raises":
                raise RuntimeError("login with hunter2-hunter2 refused")
            return [
                ProbeResult(upstream_id=group[0].upstream_id, failure="hunter2-hunter2 is wrong.")
            ]

    results = ProbePool({"kafka": Talkative()}).probe_all(
        [upstream("raises", "kafka"), upstream("tells", "kafka")], at=AT
    )

    assert [result.failure for result in results] == [
        "kafka raises cannot be sensed: RuntimeError: login with *** refused.",
        "*** is wrong.",
    ]


def test_nothing_to_probe_is_no_probe() -> None:
    assert ProbePool({}).probe_all([], at=AT) == []


def test_what_a_probe_logs_names_the_tick_that_requested_it() -> None:
    lines: list[str] = []

    class LoggingProbe(FakeProbe):
        def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
            lines.append(FileFormatter().format(logging.makeLogRecord({"msg": "looking"})))
            return super().probe(group, at=at)

    probe_pool = ProbePool({"delta_table": LoggingProbe()}, threads=1)
    for tick_id in ("first tick", "second tick"):
        with log_as_tick(tick_id):
            probe_pool.probe_all([upstream("a")], at=AT)
    assert ["first tick" in lines[0], "second tick" in lines[1]] == [True, True]


class ContinuingProbe(FakeProbe):
    """Answers for a group at once, except for those that it has to probe alone."""

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult | Continued]:  # type: ignore[override]
        return [
            ProbeResult(upstream_id=each.upstream_id, position="at once")
            if "idle" in each.sensor_id
            else Continued(upstream_id=each.upstream_id, probe=partial(self._alone, each, at))
            for each in group
        ]

    def _alone(self, upstream: Upstream, at: datetime) -> ProbeResult:
        return super().probe([upstream], at=at)[0]


@pytest.mark.parametrize("threads", [1, 32])
def test_what_a_group_continues_is_probed_alone_and_nothing_is_left_out(threads: int) -> None:
    names = [f"lake:{kind}-{number}" for number in range(50) for kind in ("idle", "changed")]
    probe_pool = ProbePool({"delta_table": ContinuingProbe()}, threads=threads)

    for _ in range(2):
        results = probe_pool.probe_all([upstream(each) for each in names], at=AT)

        assert [each.upstream_id for each in results] == names
        assert [each.position for each in results] == ["at once", "here"] * 50


def test_of_what_a_group_continues_one_that_hangs_or_raises_stops_no_other() -> None:
    probe = ContinuingProbe()
    probe.group_of = lambda upstream: "lake"  # type: ignore[method-assign]
    probe_pool = ProbePool(
        {"delta_table": probe}, threads=2, deadline_seconds=60, monotonic=Stopwatch(probe)
    )

    results = probe_pool.probe_all(
        [upstream(each) for each in ("hangs", "bad", "idle", "good")], at=AT
    )
    probe.let_go.set()

    assert [each.failure for each in results] == [
        "delta_table hangs did not answer within 60 s.",
        "delta_table bad cannot be sensed: RuntimeError: the disk is on fire.",
        None,
        None,
    ]


def standing_still() -> float:
    """Let no share take any time: each has twice as many tasks as the one before."""
    return 0.0


def quick(count: int) -> list[Upstream]:
    """Come before others: after 1 + 2 + 4, what follows begins a share of 8."""
    return [upstream(f"quick {number}") for number in range(count)]


def test_quick_probes_are_taken_many_at_a_time() -> None:
    # Each share has a context of its own, in which its probes run one after another.
    taken: ContextVar[int] = ContextVar("taken", default=0)
    counts: list[int] = []

    class CountingProbe(FakeProbe):
        def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
            taken.set(taken.get() + 1)
            counts.append(taken.get())
            return super().probe(group, at=at)

    ProbePool({"delta_table": CountingProbe()}, monotonic=standing_still).probe_all(quick(7), at=AT)

    assert counts == [1, 1, 2, 1, 2, 3, 4]


class Held(FakeProbe):
    """Holds the upstreams of some names until all others are reported."""

    def __init__(self, *held: str, others: int) -> None:
        super().__init__()
        self._held = held
        self._others = others
        self.all_others = threading.Event()
        self.were_others_first: list[bool] = []
        self.reported: list[str] = []

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        if group[0].sensor_id.startswith(self._held):
            self.were_others_first.append(self.all_others.wait(10))
        return super().probe(group, at=at)

    def on_result(self, result: ProbeResult) -> None:
        self.reported.append(result.upstream_id)
        if sum(not each.startswith(self._held) for each in self.reported) == self._others:
            self.all_others.set()


def test_what_a_thread_has_taken_and_not_begun_goes_to_others_when_its_probe_hangs() -> None:
    probe = Held("hanging", others=14)
    probe_pool = ProbePool({"delta_table": probe}, threads=2, monotonic=standing_still)
    same_share = [upstream(each) for each in ("hanging", *"abcdefg")]

    probe_pool.probe_all([*quick(7), *same_share], at=AT, on_result=probe.on_result)

    assert probe.were_others_first == [True]
    assert sorted(probe.reported) == sorted(probe.seen)


def test_slow_probes_after_quick_ones_still_run_side_by_side_on_all_threads() -> None:
    probe_pool = ProbePool(
        {"delta_table": Meeting(32, "slow")}, threads=32, monotonic=standing_still
    )
    slow = [upstream(f"slow {number}") for number in range(32)]

    results = probe_pool.probe_all([*quick(63), *slow], at=AT)

    assert [result.failure for result in results] == [None] * 95


def test_two_sources_in_both_of_which_probes_hang_leave_a_thread_for_what_works() -> None:
    probe = Held("hanging", others=20)
    probe_pool = ProbePool(
        {"kafka": probe, "delta_table": probe}, threads=4, monotonic=standing_still
    )
    hanging = [upstream(f"hanging {number}:", "kafka") for number in range(10)]

    probe_pool.probe_all(
        [*hanging, upstream("hanging"), *quick(20)], at=AT, on_result=probe.on_result
    )

    assert probe.were_others_first == [True] * 11


def test_an_abandoned_probe_that_comes_back_delivers_nothing_and_what_it_held_up_is_probed_once(
    probe: FakeProbe,
) -> None:
    reported: list[str] = []
    probe_pool = ProbePool({"delta_table": probe}, monotonic=Stopwatch(probe))
    same_share = [upstream(each) for each in ("hangs", *"abcdefg")]

    def on_result(result: ProbeResult) -> None:
        reported.append(result.upstream_id)

    probe_pool.probe_all([*quick(7), *same_share], at=AT, on_result=on_result)
    probe.let_go.set()
    probe.back.wait(30)
    probe_pool.probe_all([upstream("later")], at=AT, on_result=on_result)

    assert sorted(reported) == sorted(probe.seen)
    assert len(set(reported)) == len(reported) == 16


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Let the interpreter change the thread all the time, for races to show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Unsteady(FakeProbe):
    """Takes no time, or as long as collecting results, or about as long as the time limit."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult | Continued]:  # type: ignore[override]
        self._pause()
        if len(group) == 1:
            return [ProbeResult(upstream_id=group[0].upstream_id)]
        return [
            Continued(upstream_id=each.upstream_id, probe=partial(self._alone, each))
            if self._random.random() < 0.5
            else ProbeResult(upstream_id=each.upstream_id)
            for each in group
        ]

    def _alone(self, upstream: Upstream) -> ProbeResult:
        self._pause()
        return ProbeResult(upstream_id=upstream.upstream_id)

    def _pause(self) -> None:
        kind = self._random.random()
        if kind < 0.1:
            self.let_go.wait(self._random.uniform(0.07, 0.09))
        elif kind < 0.2:
            self.let_go.wait(self._random.uniform(0.0, 0.06))


@pytest.mark.parametrize("seed", range(4))
def test_each_upstream_gets_exactly_one_result_whatever_is_passed_on_and_abandoned(
    seed: int, eager_switching: None
) -> None:
    # Twice as many threads as there can be probes: those that pass their limit defer no others.
    probe_pool = ProbePool({"delta_table": Unsteady(seed)}, threads=700, deadline_seconds=0.08)
    names = [f"group {n // 4}:{n}" if n % 40 < 20 else f"alone {n}" for n in range(300)]

    for _ in range(3):
        reported: list[str] = []
        results = probe_pool.probe_all(
            [upstream(each) for each in names],
            at=AT,
            on_result=lambda result, reported=reported: reported.append(result.upstream_id),  # type: ignore[misc]
        )

        assert [each.upstream_id for each in results] == names
        assert sorted(reported) == sorted(names)
