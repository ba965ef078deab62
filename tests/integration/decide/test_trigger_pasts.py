"""Made-up pasts of many triggers: the real models return what the keeper of the simulation does.

The histories of ``tests/simulation`` are played with that keeper in the place of the models.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.decide.triggers import DUE_SLOTS
from harness.events.event import ChangeEvent, EventRow
from harness.platform.dbt import Dbt
from harness.store.local import LocalStore
from harness.store.rows import Ledger, ProbeOutcome, ProbeRow, TriggerEvaluationRow
from tests.conftest import PROJECT
from tests.simulation.triggers import Producers, Triggers
from tests.support.decisions import world
from tests.support.fake_clock import FakeClock
from tests.support.parsed_project import give_parsed
from tests.support.trigger_keeper import Question, Trigger, answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

SCHEMA = "trigger_pasts"
BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
TRIGGERS, MOST_CANDIDATES, FOLD_AFTER = 80, 8, 4
#: Hours between two evaluations: now and then one is late, and slots are missed.
GAPS = (1, 2, 3, 7, 26)

#: Cursor, released slots with their events, and reason.
Said = tuple[dict[str, object], list[tuple[str, int, str]], str | None]


@dataclass
class Past:
    """What the models and the keeper returned for each trigger, evaluation by evaluation."""

    by_models: list[dict[str, Said]] = field(default_factory=list)
    by_keeper: list[dict[str, Said]] = field(default_factory=list)


class Lake:
    """The triggers, their events, and both evaluators: the models and the keeper."""

    def __init__(self, spark: "SparkSession", home: Path, seed: int) -> None:
        self._spark = spark
        self._chance = random.Random(seed)
        self.clock = FakeClock(BEGAN)
        tables = home / "warehouse"
        self._store = LocalStore(tables, SCHEMA)
        spark.sql(f"create database {SCHEMA} location '{tables / f'{SCHEMA}.db'}'")
        give_parsed(home, SCHEMA)
        self._dbt = Dbt(PROJECT, home, target="local", before=lambda: None)
        self._dbt.build_everything(with_triggers=True)
        drawn = Triggers(self._chance, (1, 2, 3), (), BEGAN, count=TRIGGERS)
        self._triggers = drawn.all
        self._producers = Producers(home / "inbox", self.clock, drawn)
        rows = [
            {name: cell or None for name, cell in row.items()}
            for line in drawn.lines
            for row in line.rows()
        ]
        spark.sql(f"delete from {SCHEMA}.event_triggers")
        world.append(spark, f"{SCHEMA}.event_triggers", rows)
        self._dbt.build("trigger_terms")
        self._folded_through = -1
        self._positions: dict[str, str] = {}
        #: The triggers whose last release no run has consumed.
        self._released: set[str] = set()

    def probe(self, tick: int) -> tuple[dict[str, Said], dict[str, Said]]:
        """Let time pass and events come, and evaluate both; record what the models return."""
        self.clock.sleep(self._chance.choice(GAPS) * 3600)
        self._register(tick)
        at = self.clock.now()
        self._store.append(
            Ledger.TRIGGER_EVALUATIONS, [TriggerEvaluationRow(tick_number=tick, looked_at=at)]
        )
        self._spark.sql(
            "insert overwrite {0}.{1} select * from {0}.{2}".format(SCHEMA, *DUE_SLOTS)
        ).collect()
        found = self._spark.table(f"{SCHEMA}.queue_trigger_evaluations").collect()
        by_models = {row.upstream_id: _said(row.asDict(recursive=True)) for row in found}
        question = Question(
            looked_at=at,
            look_tick=tick,
            events=self._store.read(Ledger.EVENTS),
            folded_through=self._folded_through,
        )
        answers = [self._ask(trigger, question) for trigger in self._triggers]
        self._record([row.asDict(recursive=True) for row in found], tick)
        return by_models, {
            str(row["upstream_id"]): _said(row) for row in answers if row is not None
        }

    def fold(self, through: int) -> None:
        """Compact the ledgers, as publishing does now and then."""
        variables = {"fold_after": self._folded_through, "folded_through": through}
        self._dbt.build("fold", variables)
        self._dbt.build("tail", variables)
        self._folded_through = through

    def _ask(self, trigger: Trigger, question: Question) -> dict[str, object] | None:
        before = self._positions.get(trigger.upstream_id)
        may_release = trigger.upstream_id not in self._released
        output = answer(trigger, before, question, may_release=may_release)
        if output is not None:
            self._positions[trigger.upstream_id] = str(output["position"])
        return output

    def _register(self, tick: int) -> None:
        known = set(self._producers.sent)
        for _ in range(self._chance.choice((0, 5, 40))):
            self._producers.register(self._chance, {})
        new = [each for number, each in self._producers.sent.items() if number not in known]
        rows = [_row(event, tick) for event in new]
        # What a sensor finds, too, has the same name and is another row.
        again = [replace(row, event_id=f"{row.event_id}-again") for row in rows[::7]]
        self._store.append(Ledger.EVENTS, [*rows, *again])

    def _record(self, rows: list[dict[str, object]], tick: int) -> None:
        # Of every other trigger somebody has already processed what it released.
        for row in rows:
            if row["matched"] and int(str(row["upstream_id"])[-1]) % 2:
                self._released.add(str(row["upstream_id"]))
        self._store.append(
            Ledger.PROBES,
            [
                ProbeRow(
                    tick_number=tick,
                    recorded_at=self.clock.now(),
                    upstream_id=str(row["upstream_id"]),
                    outcome=ProbeOutcome.MOVED,
                    reason=None,
                    failing_since=None,
                    position=str(row["position"]),
                    upstream_value=None,
                    latest_event_tick=tick if row["upstream_id"] in self._released else None,
                    latest_event_at=None,
                    recent_events=(),
                )
                for row in rows
            ],
        )


def _row(event: ChangeEvent, tick: int) -> EventRow:
    number = event.tags["n"]
    return EventRow(
        tick_number=tick,
        event_ts=event.snapshot_ts or 0,
        event_id=f"event-{number}",
        upstream_id=f"registered:{event.table}",
        table=event.table,
        partition=event.partition,
        snapshot_id=event.snapshot_id,
        snapshot_ts=event.snapshot_ts,
        prev_snapshot_id=None,
        table_format=str(event.table_format),
        operation_type=str(event.operation_type),
        tags=event.tags,
        change_id=f"change-{number}",
    )


def _said(row: Mapping[str, object]) -> Said:
    # Both identify the pace of a trigger by their own number; the keeper computes expiry again.
    cursor = {
        name: each
        for name, each in json.loads(str(row["position"])).items()
        if name not in ("pace_key", "expires")
    }
    matched = row["matched"]
    assert isinstance(matched, list)
    released = sorted(
        (f"{each['slot']:%Y-%m-%d %H:%M}", int(each["tick_number"]), str(each["event_id"]))
        for each in matched
    )
    return cursor, released, None if row["reason"] is None else str(row["reason"])


@pytest.fixture(scope="module")
def past(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEARTBEAT_SCHEMA", SCHEMA)
        lake = Lake(spark, tmp_path_factory.mktemp("past"), seed=1)
        past = Past()
        for tick in range(MOST_CANDIDATES):
            by_models, by_keeper = lake.probe(tick)
            past.by_models.append(by_models)
            past.by_keeper.append(by_keeper)
            if tick == FOLD_AFTER:
                lake.fold(tick)
        yield past


@pytest.mark.parametrize("look", range(MOST_CANDIDATES))
def test_the_models_return_for_each_trigger_what_the_keeper_returns(past: Past, look: int) -> None:
    assert past.by_models[look] == past.by_keeper[look]


def test_the_pasts_have_releases_expired_slots_and_slots_that_wait(past: Past) -> None:
    output = [each for result in past.by_models for each in result.values()]
    assert sum(bool(released) for _, released, _ in output) > 20
    assert sum("expired" in (reason or "") for _, _, reason in output) > 5
    assert sum("missed" in (reason or "") for _, _, reason in output) > 5
    assert sum(bool(cursor.get("waiting")) for cursor, _, _ in output) > 20
