"""When alarms are evaluated after a tick, and that nothing here ever stops one."""

import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.config.observing import AlarmRule
from harness.config.secrets import EnvironmentSecrets
from harness.errors import DecideError, LockedError
from harness.inspect.rhythm import load_rhythms
from harness.inspect.status import read_status
from harness.observe.after_tick import Observers
from harness.observe.delivery import Result
from harness.observe.notify import Notifier, load_journal
from harness.observe.watch import Watch, alarms_now
from harness.store.public_tables import CONTROL_TABLE
from harness.store.rows import Question
from harness.store.writer.lock import note_tick
from harness.tick.engine import TickOptions
from harness.tick.report import TickReport
from tests.support.small_world import SmallContext, SmallWorld
from tests.support.watched import NEVER_SEEN
from tests.unit.observe.test_notify import Post

CHANNEL = "alarms:\n  unreadable_minutes: 0\n  channels: {team: {url: env:TEAM}}\n"


class World(SmallWorld):
    """An installation with one table and one job, and a channel that answers at once."""

    def __init__(self, project: Path, configuration: str = CHANNEL) -> None:
        super().__init__(project)
        (project / "heartbeat.yml").write_text(configuration)
        self.models.update(
            queue_upstreams=lambda: [NEVER_SEEN.to_row()],
            trigger_set=lambda: [],
            job_blockers=lambda: [],
        )
        self.remember(upstreams=(NEVER_SEEN,))
        self.post = Post()

    def watch(self, context: SmallContext | None = None) -> Watch:
        context = context or self.context()
        settings, secrets = context.settings.alarms, EnvironmentSecrets({"TEAM": "json://x/"})
        notifier = Notifier(settings, "shop", context.home.alarms, secrets, self.post.begin)
        return Watch(context, notifier)

    def tick(self, watch: Watch | None = None, *, seconds: float = 60) -> TickReport:
        """Let time pass, tick in a process of its own, and watch."""
        self.clock.sleep(seconds)
        report = self.engine().tick(TickOptions())
        (watch or self.watch()).after(report)
        return report


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_upstream_that_cannot_be_read_is_sent_and_so_is_its_recovery(world: World) -> None:
    world.probe_pool.reason = "the table is gone"
    world.tick()
    world.tick()
    world.probe_pool.reason = None
    world.tick()
    assert world.post.titles() == ["1 problem", "1 over"]
    assert "the table is gone" in str(world.post.sent[0]["body"])


def test_a_tick_that_fails_is_sent_once_and_so_is_the_next_that_succeeds(world: World) -> None:
    for _ in range(2):
        watch = world.watch()
        watch.failed(DecideError("dbt did not succeed"))
        watch.wait()
    world.tick()
    assert world.post.titles() == ["1 problem", "1 over"]
    assert "ticks fail: dbt did not succeed" in str(world.post.sent[0]["body"])


class Counting(SmallContext):
    """Resident; counts how often the public tables are read: once for each evaluation."""

    def __init__(self, world: SmallWorld) -> None:
        super().__init__(world)
        self.is_resident = True
        vars(self).update(store=world.store)
        self.evaluations = 0

    def expect(self, questions: Sequence[Question]) -> None:
        """Count."""
        self.evaluations += any(each.table == "heartbeat_control" for each in questions)


def test_an_idle_tick_of_a_resident_process_evaluates_nothing_within_a_minute(
    world: World,
) -> None:
    context = Counting(world)
    watch = world.watch(context)
    for _ in range(60):
        world.tick(watch, seconds=1)
    assert context.evaluations == 1
    world.tick(watch, seconds=1)
    assert context.evaluations == 2


def test_what_is_published_between_idle_ticks_is_evaluated_at_the_next_one(world: World) -> None:
    context = Counting(world)
    watch = world.watch(context)
    for _ in range(3):
        world.tick(watch, seconds=1)
    assert context.evaluations == 1
    context.home.status.write_text("{}")
    for _ in range(3):
        world.tick(watch, seconds=1)
    assert context.evaluations == 2


def test_an_upstream_that_goes_on_failing_is_no_change_to_a_resident_process(world: World) -> None:
    context = Counting(world)
    watch, world.probe_pool.reason = world.watch(context), "the table is gone"
    for _ in range(10):
        world.tick(watch, seconds=1)
    assert context.evaluations == 1


def test_a_resident_process_records_later_what_was_under_way(world: World) -> None:
    context = world.context()
    context.is_resident, world.post.hangs = True, True
    watch, world.probe_pool.reason = world.watch(context), "the table is gone"
    world.tick(watch)
    assert load_journal(world.home.alarms).channels == {}
    world.post.under_way[0].result = Result(delivered=1)
    world.tick(watch)
    assert len(load_journal(world.home.alarms).channels["team"].alarms) == 1


EXPECTED = "alarms: {upstreams: [{sensor_source: %s, sensor_id: '%s', every: 1h}]}\n"


def test_an_expected_upstream_without_any_event_is_overdue_from_its_first_tick_on(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, EXPECTED % (NEVER_SEEN.source, NEVER_SEEN.sensor_id))
    named = {"sensor_source": NEVER_SEEN.source, "sensor_id": NEVER_SEEN.sensor_id}
    row = dict.fromkeys(CONTROL_TABLE.columns) | named
    job = {"trigger_job_id": 1, "trigger_job_name": "a", "job_state": "UNPAUSED"}
    world.store.replace("heartbeat_control", [row | job])
    world.tick()
    assert [each.last for each in load_rhythms(world.home.arrivals).values()] == [world.clock.now()]
    world.tick(seconds=3600)
    assert rules_now(world) == []
    world.tick(seconds=60)
    assert rules_now(world) == [AlarmRule.UPSTREAM_OVERDUE]


def rules_now(world: World) -> list[AlarmRule]:
    """What a probe in a process of its own reports."""
    note_tick(world.home.folder, world.clock.now())
    context = world.context()
    status = read_status(context, every_run=False)
    return [each.rule for each in alarms_now(context, status)]


def test_a_probe_reports_a_failing_tick_an_unreachable_channel_and_that_there_is_no_tick(
    world: World,
) -> None:
    world.post.reason = "connection refused"
    watch = world.watch()
    watch.failed(DecideError("dbt did not succeed"))
    watch.wait()
    assert rules_now(world) == [AlarmRule.TICK_FAILING, AlarmRule.UNDELIVERED]
    world.clock.sleep(3600)
    context = world.context()
    found = alarms_now(context, read_status(context, every_run=False))
    assert AlarmRule.NO_TICK in {each.rule for each in found}


def test_a_probe_writes_nothing(world: World) -> None:
    before = sorted(world.home.folder.rglob("*"))
    context = world.context()
    alarms_now(context, read_status(context, every_run=False))
    assert sorted(world.home.folder.rglob("*")) == before


def test_without_a_configuration_nothing_is_watched(tmp_path: Path) -> None:
    world = World(tmp_path, "")
    assert Observers(world.context())._observers == {}


@dataclass
class Broken:
    """An observer that fails."""

    calls: list[str] = field(default_factory=list)

    def after(self, report: TickReport) -> None:
        self.calls.append("after")
        raise RuntimeError("no disk")

    def failed(self, error: Exception) -> None:
        self.calls.append("failed")
        raise RuntimeError("no disk")

    def wait(self) -> None:
        self.calls.append("wait")
        raise RuntimeError("no disk")


def test_an_observer_that_fails_stops_no_tick_and_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    observers, broken = Observers(world.context()), Broken()
    observers._observers = {"metrics": broken}
    report = world.engine().tick(TickOptions())
    with caplog.at_level(logging.WARNING):
        observers.after(report)
        observers.after(report)
        observers.wait()
        with pytest.raises(DecideError), observers.watching():
            raise DecideError("dbt did not succeed")
    assert broken.calls == ["after", "after", "wait", "failed", "wait"]
    warnings = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert warnings == ["metrics: not up to date (no disk); the next tick tries again"]


@pytest.mark.parametrize("error", [LockedError("another process ticks"), ValueError("cancelled")])
def test_what_is_no_failure_of_a_tick_is_not_reported_as_one(
    world: World, error: Exception
) -> None:
    context = world.context()
    context.stop.is_wanted = isinstance(error, ValueError)
    observers, broken = Observers(context), Broken()
    observers._observers = {"metrics": broken}
    observers.failed(error)
    assert broken.calls == []


def test_a_tick_without_a_configuration_imports_no_library_of_those_who_watch() -> None:
    code = (
        "import sys; from types import SimpleNamespace as Some;"
        "from harness.observe.after_tick import Observers;"
        "off = Some(is_on=False); settings = Some(alarms=off, lineage=off, metrics=off);"
        "Observers(Some(settings=settings, stop=None));"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}));"
        "print(*sorted(name for name in sys.modules if name.startswith('harness.observe.')))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    packages, own = answer.stdout.splitlines()
    heavy = {"apprise", "openlineage", "prometheus_client", "requests", "pyspark", "deltalake"}
    assert not heavy & set(packages.split())
    assert own.split() == ["harness.observe.after_tick"]


def test_one_that_cannot_begin_keeps_no_other_from_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    both = "metrics: {textfile: x.prom}\nlineage: {file: y.jsonl}\n"
    with caplog.at_level(logging.WARNING):
        observers = Observers(World(tmp_path, both).context())
    assert list(observers._observers) == ["lineage"]
    assert [each.message for each in caplog.records] == [
        "metrics: not up to date (the package prometheus-client is missing; pip install"
        " 'heartbeat[metrics]'); the next tick tries again"
    ]


def test_a_damaged_table_is_noticed_within_an_hour_and_so_is_its_repair(world: World) -> None:
    commits = world.home.warehouse / "heartbeat.db" / "ledger_runs" / "_delta_log"
    commits.mkdir(parents=True)
    (commits / f"{1:020}.json").write_text("{")
    world.tick()
    (commits / f"{1:020}.json").unlink()
    commits.rmdir()
    commits.parent.rmdir()
    world.tick(seconds=600)
    assert len(world.post.titles()) == 1
    assert "table ledger_runs" in str(world.post.sent[0]["body"])
    world.tick(seconds=3600)
    assert len(world.post.titles()) == 2
    assert "table ledger_runs: over" in str(world.post.sent[1]["body"])
