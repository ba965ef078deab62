"""One tick meets everything that is wrong at once, and the healthy jobs start."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.load import load_settings
from harness.config.sources import FirstSight
from harness.inspect.tick_summary import as_json
from harness.store.inbox import Message, MessageKind, send
from tests.simulation.fate import Fate
from tests.simulation.machine import Machine, Wiring
from tests.simulation.sources import Source
from tests.simulation.workspace import Workspace, client_of
from tests.simulation.world import BEGINNING, Line
from tests.support.fake_clock import FakeClock

HEALTHY, BROKEN, NEW = 101, 103, 105


class Shop:
    """Three jobs on an upstream each, and a Jobs API."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock(BEGINNING)
        fate = Fate(lambda line: None)
        self.workspace = Workspace(clock=self.clock, fate=fate, chance=random.Random(1))
        jobs = client_of(self.workspace)
        self.machine = Machine(
            folder, jobs=jobs, fate=fate, world_clock=self.clock, wiring=Wiring()
        )
        self.machine.configure(starts_per_tick=50, first_sight=FirstSight.EVENT)
        for job_id in (HEALTHY, BROKEN, NEW):
            self.workspace.put_job(job_id, runs_at_once=1, queues=False)
            versions = [(False, self.clock.now()), (True, self.clock.now())]
            self.machine.sources.by_id[f"db.u{job_id}"] = Source(versions=versions)

    def write(self, *job_ids: int, end: str = "") -> None:
        lines = [Line(sensor_id=f"db.u{each}", job_id=each, flag="TRUE") for each in job_ids]
        self.machine.write_controls([line.cells() for line in lines])
        with self.machine.controls_file.open("a") as file:
            file.write(end)

    def misconfigure(self) -> None:
        """Write a connection that is none; the next process reads it."""
        file = self.machine.settings.file
        file.write_text("connections: {kafka: {orders: 7}}\n")
        read = load_settings(self.machine.settings.project, {}, may_quarantine=True)
        self.machine.settings = replace(self.machine.settings, quarantined=read.quarantined)

    def tick(self) -> tuple[set[int], list[str]]:
        """Return the jobs that it has started, and what it has quarantined."""
        self.clock.sleep(60)
        report = self.machine.tick()
        assert report.is_clean is not bool(report.quarantined)
        assert len(as_json(report, 0)["quarantined"]) == len(report.quarantined)  # type: ignore[arg-type]
        return (
            {row.job_id for row in report.started},
            sorted(each.name for each in report.quarantined),
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_tick_that_meets_every_poison_at_once_starts_the_healthy_jobs_and_so_does_the_next(
    shop: Shop,
) -> None:
    # A second dependency of a job that is new, with a word that is none.
    row = f"delta_table,db.u{HEALTHY},batch,,,,{BROKEN},,ASLEEP,TRUE\n"
    shop.write(HEALTHY, BROKEN, end=row)
    inbox = shop.machine.home.inbox
    inbox.mkdir()
    (inbox / "1.json").write_text("[" * 200_000)
    (inbox / "2.json").write_text('{"kind": "complete", "job_id": Infinity}')
    os.mkfifo(inbox / "3.json")
    (inbox / "registered-1.jsonl").write_text('{"table": 7}\n')
    (inbox / "registered-2").symlink_to("/")
    shop.misconfigure()
    of_inbox = ["1.json", "2.json", "3.json", "registered-1.jsonl", "registered-2"]

    started, quarantined = shop.tick()
    assert started == {HEALTHY}
    assert quarantined == sorted([*of_inbox, "heartbeat.yml", "seeds/heartbeat_controls.csv:4"])

    send(inbox, Message(kind=MessageKind.COMPLETE, job_id=HEALTHY, sent_at=shop.clock.now()))
    shop.machine.sources.by_id[f"db.u{HEALTHY}"].versions.append((True, shop.clock.now()))
    shop.write(HEALTHY, BROKEN, NEW, end=row)
    shop.machine.end_process()
    started, quarantined = shop.tick()
    assert started >= {NEW}
    assert BROKEN not in started
    assert quarantined == ["heartbeat.yml", "seeds/heartbeat_controls.csv:5"]
    # It stays so, whether or not the file changes.
    assert shop.tick()[1] == ["heartbeat.yml", "seeds/heartbeat_controls.csv:5"]

    shop.write(HEALTHY, BROKEN, NEW)
    started, quarantined = shop.tick()
    assert BROKEN in started
    assert quarantined == ["heartbeat.yml"]


def test_a_file_that_is_torn_removes_nothing_and_stops_no_job_in_force(shop: Shop) -> None:
    shop.write(HEALTHY, BROKEN)
    assert shop.tick() == ({HEALTHY, BROKEN}, [])
    shop.machine.controls_file.write_text('sensor_source,"sensor')
    _, quarantined = shop.tick()
    assert set(quarantined) == {"seeds/heartbeat_controls.csv"}
    assert len(shop.machine.models.controls()) == 2
