"""A real triggerer that watches a table, is killed, and goes on; Heartbeat's answers are given."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.utils.session import create_session
from sqlalchemy import select

from heartbeat_airflow.assets import CURSOR
from heartbeat_airflow.client import iso
from tests.conftest import FakeHeartbeat, airflow, at, event

PATIENCE = 120


@contextmanager
def triggerer() -> Iterator[None]:
    """Run a triggerer, and kill it and its children without notice."""
    process = subprocess.Popen(
        [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def told() -> list[str]:
    """The data-change events that have become events of an asset, in their order."""
    with create_session() as session:
        events = session.scalars(select(AssetEvent).order_by(AssetEvent.id))
        return [each.extra["payload"]["event_id"] for each in events]


def cursor() -> int | None:
    with create_session() as session:
        kept = session.scalars(
            select(AssetStateStoreModel.value).where(AssetStateStoreModel.key == CURSOR)
        ).one_or_none()
        return None if kept is None else int(kept)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, (told(), cursor())
        time.sleep(0.2)


@pytest.mark.timeout(400)
@pytest.mark.whole
def test_a_triggerer_that_is_killed_neither_loses_nor_doubles_what_it_confirmed(
    database: None, heartbeat: FakeHeartbeat
) -> None:
    airflow("dags", "reserialize")
    for tick in (at(10), at(11)):
        heartbeat.says("status", {"last_tick_at": iso(tick)})
    heartbeat.says("events", [event(1, at(11)), event(2, at(11))])
    with triggerer():
        wait_for(lambda: cursor() == at(11) + 1)
        assert told() == ["e1", "e2"]
    # While no triggerer runs, there is another event.
    heartbeat.says("status", {"last_tick_at": iso(at(12))})
    heartbeat.says("events", [event(3, at(12))])
    with triggerer():
        wait_for(lambda: cursor() == at(12) + 1)
    assert told() == ["e1", "e2", "e3"]
    ranges = [each[4:7:2] for each in heartbeat.asked if each[0] == "events"]
    assert ranges == [[iso(at(10) + 1), iso(at(11) + 1)], [iso(at(11) + 1), iso(at(12) + 1)]]
