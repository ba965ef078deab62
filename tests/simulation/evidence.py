"""Gathers what is judged of a world of the simulation."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import cast

from harness.store.rows import Ledger, RunStatus
from tests.simulation.record import Attempt, Record, Row, attempt_of
from tests.simulation.world import World

#: What a run came to that had begun.
_ENDED = (RunStatus.FAILED, RunStatus.CANCELED, RunStatus.TIMED_OUT)


def record_of(world: World) -> Record:
    """Return everything that is to be judged of a world that has come to rest."""
    workspace, store = world.workspace, world.machine.store
    lines = [(line.job_id, line.sensor_id) for line in world.lines]
    watched = {sensor_id for _, sensor_id in lines}
    sources = world.machine.sources.all
    return Record(
        ledgers={ledger: store.read(ledger) for ledger in Ledger},
        runs=_runs(world),
        starts=workspace.starts,
        warnings=workspace.registry.warnings,
        outcomes=workspace.all_outcomes(),
        due={name: source.due() for name, source in sources.items() if name in watched},
        wanted=lines,
        name_of=_sensor_of,
        marks_of=lambda row: sources[_sensor_of(row)].marks_of(row),
        starts_per_tick=world.starts_per_tick,
        policies=store.fed,
        deleted=world.deleted,
        denied={run_id for run_id, times in workspace.said_unknown.items() if times > 1},
        noticed=world.noticed,
        reported=world.reported,
        seen={} if world.has_wrong_clock else store.seen,
        vouched=world.vouched,
        asked=world.asked,
        decided=_decided(world),
        successes=workspace.last_successes(),
        registered=world.producers.sent.keys() if world.producers else frozenset(),
        triggers=world.triggers.all if world.triggers else (),
        messages=Counter((message.kind, message.job_id) for _, _, message in world.sent),
        pulls=world.consumers.pulls if world.consumers else (),
        ticked_at=world.machine.ticked_at,
        through_tick=world.through_tick,
    )


def _sensor_of(row: Row) -> str:
    return str(row["upstream_id"]).partition(":")[2].rpartition(":")[0]


def _runs(world: World) -> Mapping[str, list[Mapping[str, object]]]:
    runs: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for _, event, facts in world.workspace.history.events:
        parameters = cast(Mapping[str, str], facts.get("parameters") or {})
        if event == "run_created" and "heartbeat_token" in parameters:
            runs[parameters["heartbeat_token"]].append(facts)
    return runs


def _decided(world: World) -> dict[Attempt, datetime]:
    """Return when each attempt was decided, by the world's clock and not the machine's.

    An attempt of which the Jobs API reported no beginning counts only if the latter was right.
    """
    store, decided, begun = world.machine.store, dict[Attempt, datetime](), set[Attempt]()
    for row, instant in zip(store.read(Ledger.RUNS), store.instants, strict=True):
        decided.setdefault(attempt_of(row), instant)
        if row["reported_by"] == "poll" and row["run_status"] in _ENDED and row["started_at"]:
            begun.add(attempt_of(row))
    if not world.has_wrong_clock:
        return decided
    return {attempt: instant for attempt, instant in decided.items() if attempt in begun}
