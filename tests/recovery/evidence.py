"""Gathers what is judged of a real installation: its ledgers, and the Jobs API's own history."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from harness.platform.databricks.api import Outcome
from harness.platform.databricks.run_states import OUTCOME_OF_RESULT
from harness.store.rows import Ledger
from tests.recovery.machine import Machine
from tests.simulation.record import Record, Row

_STARTS_PER_TICK = 50


def record_of(machine: Machine) -> Record:
    """Return everything that is to be judged of a machine that has come to rest."""
    return Record(
        ledgers={ledger: sorted(machine.store.read(ledger), key=_place) for ledger in Ledger},
        runs=_runs(machine),
        starts=tuple(machine.server.starts),
        warnings=tuple(machine.server.registry.warnings),
        outcomes=_outcomes(machine),
        due={
            path: set(map(str, range(newest + 1)))
            for path, newest in machine.newest_versions().items()
        },
        wanted=machine.lines,
        starts_per_tick=_STARTS_PER_TICK,
    )


def changes_of_the_past(machine: Machine) -> Iterator[str]:
    """Report steps that a later tick has changed or taken away."""
    for number, (before, after) in enumerate(pairwise(machine.pasts), start=1):
        gone = [row for row in before if row not in after]
        if gone:
            yield f"tick {number + 1} changed {gone}"


def _place(row: Row) -> tuple[int, int]:
    return int(str(row["tick_number"])), int(str(row.get("step_number") or 0))


def _history(machine: Machine, event: str) -> Iterator[dict[str, object]]:
    file = machine.home / "jobs-api" / "history.jsonl"
    for line in file.read_text().splitlines():
        facts = json.loads(line)
        if facts["event"] == event:
            yield {**facts, "run_id": int(facts["run_id"])}


def _runs(machine: Machine) -> Mapping[str, list[Row]]:
    runs: dict[str, list[Row]] = defaultdict(list)
    for facts in _history(machine, "run_created"):
        parameters = facts["parameters"]
        assert isinstance(parameters, dict)
        runs[parameters["heartbeat_token"]].append(facts)
    return runs


def _outcomes(machine: Machine) -> Mapping[int, set[Outcome]]:
    outcomes: dict[int, set[Outcome]] = defaultdict(set)
    for facts in _history(machine, "run_ended"):
        outcomes[int(str(facts["run_id"]))].add(OUTCOME_OF_RESULT[str(facts["result"])])
    return outcomes
