"""Runs that are followed, and one settling of them against a Jobs API in memory."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.fire.submit import Firing, Steps
from harness.platform.databricks.api import JobsApi
from harness.platform.databricks.rate_limit import TokenBucket
from harness.settle.settle import Settled, settle
from harness.store.inbox import Message, MessageKind
from harness.store.rows import Consumed, Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.memory_store import MemoryStore

JOB = 2**53 + 1
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
TICK = Tick(number=9, at=AT + timedelta(minutes=5))


def run_of(jobs: FakeJobs, *, status: RunStatus = RunStatus.STARTED, attempt: int = 1) -> Run:
    run_id = jobs.start_by_hand(JOB)
    return replace(intended(), run_id=run_id, started_at=AT, attempt=attempt, run_status=status)


def intended() -> Run:
    """A start that the Jobs API has not answered yet."""
    return Run(
        tick_number=3,
        step_number=1,
        recorded_at=AT,
        job_id=JOB,
        job_name="daily",
        intent_id="intent",
        attempt=1,
        token="token",
        run_status=RunStatus.INTENDED,
        reported_by="decision",
        decided_tick=3,
        decided_at=AT,
        consumed=(Consumed(upstream_id="u", from_tick=-1, through_tick=3),),
        event_count=1,
        event_ids=("e",),
        parameters=json.dumps({"heartbeat_intent_id": "intent", "heartbeat_token": "token"}),
    )


def fake_jobs() -> FakeJobs:
    jobs = FakeJobs(clock=FakeClock(AT))
    jobs.add_job(JOB)
    return jobs


def settled(
    jobs: JobsApi,
    run: Run,
    *messages: Message,
    tick: Tick = TICK,
    store: MemoryStore | None = None,
) -> Settled:
    firing = firing_of(jobs, at=tick.at, store=store)
    return settle([run], messages, tick=tick, firing=firing, steps=Steps())


def firing_of(jobs: JobsApi, *, at: datetime, store: MemoryStore | None = None) -> Firing:
    """What one process has to start and to follow runs with."""
    clock = FakeClock(at)
    return Firing(
        api=jobs,
        origin="here",
        store=store or MemoryStore(),
        starts=TokenBucket(clock, per_second=100),
        questions=TokenBucket(clock, per_second=100),
        payloads=Path("nowhere"),
        schema="heartbeat",
        crash_point=lambda name: None,
    )


def notice(*, run_id: int | None = None, intent_id: str | None = None) -> Message:
    return Message(
        kind=MessageKind.COMPLETE, job_id=JOB, run_id=run_id, intent_id=intent_id, sent_at=TICK.at
    )
