"""The resident loop: its slots, its errors, and how it ends."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from harness.errors import ControlsError, DecideError, HeartbeatError, LockedError, StateError
from harness.platform.stopping import Interrupted, Stop
from harness.publish.publish import Publication
from harness.store.rows import Tick
from harness.tick.engine import TickOptions
from harness.tick.loop import Listeners, Pace, next_slot, run_loop
from harness.tick.report import TickReport
from tests.support.fake_clock import FakeClock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class FakeEngine:
    """Ticks that take some time and fail as specified."""

    clock: FakeClock
    seconds: float = 0.0
    failures: dict[int, Exception] = field(default_factory=dict)
    began: list[datetime] = field(default_factory=list)
    during: Callable[[], object] = lambda: None
    #: What each call of ``collect`` comes to: nothing, a publication, or why it failed.
    publications: list[Publication | Exception | None] = field(default_factory=list)
    is_publishing: bool = False
    finished: int = 0
    #: When a publication was let begin.
    published: list[datetime] = field(default_factory=list)
    #: When something is left in the inbox, in seconds from noon; a tick takes it out.
    mail: list[float] = field(default_factory=list)
    #: The ticks that were for the inbox alone, by their number.
    for_inbox: list[int] = field(default_factory=list)

    @property
    def has_news(self) -> bool:
        return any(NOON + timedelta(seconds=at) <= self.clock.now() for at in self.mail)

    def tick(self, options: TickOptions | None = None) -> TickReport:
        self.began.append(self.clock.now())
        if options and options.is_for_inbox:
            self.for_inbox.append(len(self.began))
        if len(self.began) not in self.failures:
            self.mail = [at for at in self.mail if NOON + timedelta(seconds=at) > self.began[-1]]
        self.clock.sleep(self.seconds)
        self.during()
        number = len(self.began)
        if number in self.failures:
            raise self.failures[number]
        return TickReport(tick=Tick(number=number, at=self.began[-1]))

    def collect(self) -> Publication | None:
        found = self.publications.pop(0) if self.publications else None
        if isinstance(found, Exception):
            raise found
        return found

    def publish(self) -> None:
        self.published.append(self.clock.now())

    def finish(self) -> None:
        self.finished += 1


@dataclass
class Heard:
    reports: list[TickReport] = field(default_factory=list)
    published: list[Publication] = field(default_factory=list)
    pauses: int = 0

    def listeners(self) -> Listeners:
        return Listeners(
            on_report=self.reports.append,
            on_publication=self.published.append,
            between=self.pause,
        )

    def pause(self) -> None:
        self.pauses += 1


def begun(engine: FakeEngine) -> list[float]:
    return [round((at - NOON).total_seconds(), 3) for at in engine.began]


def loop(engine: FakeEngine, pace: Pace, heard: Heard | None = None) -> int:
    with Stop() as stop:
        listeners = (heard or Heard()).listeners()
        return run_loop(engine, pace, clock=engine.clock, stop=stop, listeners=listeners)


def test_ticks_begin_at_their_slots_and_do_not_drift() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=3)
    loop(engine, Pace(every_seconds=10, ticks=4))
    assert begun(engine) == [0, 10, 20, 30]


def test_after_a_tick_longer_than_the_interval_the_next_begins_at_once() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=25)
    loop(engine, Pace(every_seconds=10, ticks=3))
    assert begun(engine) == [0, 25, 50]


def test_all_slots_that_a_long_tick_has_run_over_are_one_tick() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=34)
    engine.during = lambda: setattr(engine, "seconds", 1)
    loop(engine, Pace(every_seconds=10, ticks=4))
    assert begun(engine) == [0, 34, 40, 50]


def test_what_is_left_in_the_inbox_has_a_tick_at_once_that_probes_nothing() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=0.1, mail=[4.0, 14.0])
    loop(engine, Pace(every_seconds=10, ticks=5))
    early = [at for number, at in enumerate(begun(engine), 1) if number in engine.for_inbox]
    assert [4.0 <= early[0] < 4.3, 14.0 <= early[1] < 14.3] == [True, True]
    # The slots are where they were.
    assert [at for at in begun(engine) if at not in early] == [0, 10, 20]


def test_a_tick_for_the_inbox_comes_after_five_times_the_length_of_the_last_tick() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=1, mail=[1.5, 7.0, 7.5])
    loop(engine, Pace(every_seconds=60, ticks=3))
    assert begun(engine) == [0, 6, 12]


def test_a_tick_for_the_inbox_that_runs_over_a_slot_is_followed_by_that_slot() -> None:
    engine = FakeEngine(FakeClock(NOON), mail=[8.0])
    engine.during = lambda: setattr(engine, "seconds", 5 if len(engine.began) == 1 else 0)
    loop(engine, Pace(every_seconds=10, ticks=4))
    assert engine.for_inbox == [2]
    assert begun(engine)[2:] == [begun(engine)[1] + 5, 20]


def test_after_a_tick_that_failed_the_inbox_waits_for_the_next_slot() -> None:
    engine = FakeEngine(FakeClock(NOON), mail=[0.0], failures={1: DecideError("dbt")})
    loop(engine, Pace(every_seconds=10, ticks=2))
    assert (begun(engine), engine.for_inbox) == ([0, 10], [])


def test_the_loop_ends_before_a_slot_that_is_past_its_time() -> None:
    engine = FakeEngine(FakeClock(NOON))
    assert loop(engine, Pace(every_seconds=10, for_seconds=25)) == 3


def test_a_clock_that_jumps_back_does_not_stop_the_loop() -> None:
    clock = FakeClock(NOON)
    engine = FakeEngine(clock)
    engine.during = lambda: clock.set(clock.now() - timedelta(hours=1))
    assert loop(engine, Pace(every_seconds=10, ticks=3)) == 3
    assert clock.now() == NOON - timedelta(hours=3) + timedelta(seconds=20)


def test_one_failed_tick_does_not_stop_the_next() -> None:
    engine = FakeEngine(FakeClock(NOON), failures={1: DecideError("dbt"), 2: StateError("full")})
    heard = Heard()
    assert loop(engine, Pace(every_seconds=10, ticks=3), heard) == 3
    assert [report.tick.number for report in heard.reports] == [3]


@pytest.mark.parametrize("error", [ControlsError("line 3"), StateError("newer version")])
def test_what_a_person_must_put_right_ends_the_loop_at_its_start(error: HeartbeatError) -> None:
    engine = FakeEngine(FakeClock(NOON), failures={1: error})
    with pytest.raises(type(error)):
        loop(engine, Pace(every_seconds=10, ticks=3))


def test_a_process_whose_place_was_taken_ends_at_whatever_tick_it_learns_so() -> None:
    engine = FakeEngine(FakeClock(NOON), failures={3: LockedError("another has the lease")})
    with pytest.raises(LockedError):
        loop(engine, Pace(every_seconds=10, ticks=9))
    assert len(engine.began) == 3


def test_five_unforeseen_errors_in_a_row_end_the_loop() -> None:
    gone = {number: ConnectionError("the JVM is gone") for number in range(1, 100)}
    del gone[3]
    engine = FakeEngine(FakeClock(NOON), failures=gone)
    with pytest.raises(ConnectionError):
        loop(engine, Pace(every_seconds=10, ticks=50))
    assert len(engine.began) == 8


def test_housekeeping_comes_between_ticks_and_its_failure_stops_nothing() -> None:
    class Untidy(Heard):
        def pause(self) -> None:
            super().pause()
            raise StateError("the disk is full")

    heard = Untidy()
    assert loop(FakeEngine(FakeClock(NOON)), Pace(every_seconds=10, ticks=3), heard) == 3
    assert heard.pauses == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_breaks_off_the_tick_in_progress_and_no_other_begins(number: int) -> None:
    engine = FakeEngine(FakeClock(NOON), during=lambda: os.kill(os.getpid(), number))
    heard = Heard()
    with pytest.raises(Interrupted):
        loop(engine, Pace(every_seconds=10), heard)
    assert (len(engine.began), heard.reports) == (1, [])


def test_a_tick_that_fails_because_it_was_stopped_is_followed_by_no_other() -> None:
    stop = Stop()

    def cancelled() -> None:
        stop.is_wanted = True
        raise DecideError("the job was cancelled")

    engine = FakeEngine(FakeClock(NOON), during=cancelled)
    with pytest.raises(Interrupted):
        run_loop(
            engine,
            Pace(every_seconds=10),
            clock=engine.clock,
            stop=stop,
            listeners=Heard().listeners(),
        )
    assert len(engine.began) == 1


def test_signals_that_a_tick_took_for_itself_are_taken_back() -> None:
    def take() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    class Signalled(Heard):
        def pause(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    engine = FakeEngine(FakeClock(NOON), during=take)
    with pytest.raises(Interrupted):
        loop(engine, Pace(every_seconds=10, ticks=9), Signalled())
    assert len(engine.began) == 1


def test_no_slot_is_ticked_for_twice() -> None:
    assert next_slot(0, 0, 10) == 1
    # A wait may end a trifle before its slot.
    assert next_slot(1, 9.999, 10) == 2
    assert next_slot(1, 10, 10) == 2
    assert next_slot(1, 30, 10) == 3


def publication(number: int) -> Publication:
    return Publication(
        tick=Tick(number=number, at=NOON),
        blockers={},
        job_names={},
        changed=(),
        has_compacted=False,
        folded_through=-1,
    )


def test_what_was_published_meanwhile_is_recorded_before_the_next_slot() -> None:
    engine = FakeEngine(FakeClock(NOON), publications=[None, publication(1)])
    heard = Heard()
    loop(engine, Pace(every_seconds=10, ticks=2), heard)
    assert heard.published == [publication(1)]
    assert engine.publications == []


def test_a_publication_begins_when_it_has_been_quiet_for_half_a_second() -> None:
    engine = FakeEngine(FakeClock(NOON), seconds=1)
    loop(engine, Pace(every_seconds=1.3, ticks=3))
    assert engine.published == []
    engine = FakeEngine(FakeClock(NOON), seconds=1)
    loop(engine, Pace(every_seconds=1.7, ticks=2))
    assert [round((at - NOON).total_seconds(), 3) for at in engine.published] == [1.6]


def test_a_publication_that_failed_stops_no_tick() -> None:
    failure = StateError("the disk is full")
    engine = FakeEngine(FakeClock(NOON), publications=[publication(1), failure])
    heard = Heard()
    assert loop(engine, Pace(every_seconds=10, ticks=3), heard) == 3
    assert len(heard.reports) == 3


def test_a_loop_that_ends_in_order_has_published_everything() -> None:
    engine = FakeEngine(FakeClock(NOON))
    loop(engine, Pace(every_seconds=10, ticks=2))
    assert engine.finished == 1


def test_publications_that_fail_in_unforeseen_ways_end_the_loop_as_ticks_do() -> None:
    class Unpublished(FakeEngine):
        def collect(self) -> Publication | None:
            if not self.is_publishing:
                return None
            self.is_publishing = False
            raise ConnectionError("the JVM is gone")

    def begin() -> None:
        engine.is_publishing = True

    engine = Unpublished(FakeClock(NOON), during=begin)
    with pytest.raises(ConnectionError):
        loop(engine, Pace(every_seconds=10, ticks=50))
    assert len(engine.began) == 5


def test_a_process_whose_place_was_taken_while_it_published_ends() -> None:
    engine = FakeEngine(FakeClock(NOON), publications=[LockedError("another has the lease")])
    with pytest.raises(LockedError):
        loop(engine, Pace(every_seconds=10, ticks=9))
    assert len(engine.began) == 1


def test_what_keeps_the_first_tick_from_being_public_ends_the_loop_at_its_start() -> None:
    failure = StateError("the table cannot be written")
    engine = FakeEngine(FakeClock(NOON), publications=[failure], is_publishing=True)
    with pytest.raises(StateError):
        loop(engine, Pace(every_seconds=10, ticks=3))
    assert len(engine.began) == 1
