"""When a tick evaluates the triggers, and what it leaves: without Spark and dbt."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.config.sources import Source
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.errors import StateError
from harness.inspect.tick_summary import as_json, headline
from harness.store.rows import Ledger
from harness.store.work_lists import EVENT_TRIGGER
from harness.tick.engine import TickOptions
from harness.tick.install import Installation, models_checksum
from harness.tick.report import TickReport
from tests.support.small_world import NOON, SmallWorld
from tests.support.triggers_text import row, text
from tests.support.watched import NEVER_SEEN

DAILY = replace(
    NEVER_SEEN,
    upstream_id="trigger:daily",
    source=EVENT_TRIGGER,
    sensor_id="daily",
    job_ids=(1,),
)
PLACE = '{"looked_through":0,"next_due_at":"2026-03-01T13:00:00Z"}'
MOVED = {
    "upstream_id": "trigger:daily",
    "position": PLACE.replace("0", "1", 1),
    "reason": None,
}


class World(SmallWorld):
    """An installation with a table and a trigger, in whose models the test writes."""

    def __init__(self, project: Path) -> None:
        super().__init__(project)
        self.results: list[dict[str, object]] = []
        self.asked = 0
        self.models.update(
            queue_upstreams=lambda: [NEVER_SEEN.to_row(), DAILY.to_row()],
            queue_control_changes=lambda: [],
            queue_trigger_evaluations=self._ask,
            trigger_set=lambda: [],
            job_blockers=lambda: [],
        )
        daily = replace(DAILY, position=PLACE)
        self.remember(upstreams=(NEVER_SEEN, daily), triggers_due_at=NOON + timedelta(minutes=30))

    def _ask(self) -> list[dict[str, object]]:
        self.asked += 1
        return [{**each, "matched": each.get("matched")} for each in self.results]

    def tick(self, *, minutes: float, options: TickOptions | None = None) -> TickReport:
        """Let time pass, and tick in a process of its own."""
        self.clock.sleep(minutes * 60)
        report = self.engine().tick(options)
        assert all(each.source == "delta_table" for each in self.probe_pool.looked_at)
        return report


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_idle_tick_does_not_evaluate_triggers_that_are_not_due(world: World) -> None:
    report = world.tick(minutes=29)
    assert (world.asked, len(report.results), world.store.commits) == (0, 1, [])
    assert "triggers" not in report.seconds


def test_a_trigger_is_evaluated_when_its_slot_comes_and_not_again_before_the_next(
    world: World,
) -> None:
    world.results = [MOVED]
    reports = [world.tick(minutes=each) for each in (31, 28, 0.5, 0.5)]

    assert [report.findings.released is not None for report in reports] == [
        True,
        False,
        False,
        True,
    ]
    assert "triggers" in reports[0].seconds
    assert [row["tick_number"] for row in world.store.read(Ledger.TRIGGER_EVALUATIONS)] == [2, 3]


def test_a_trigger_that_moved_in_silence_is_remembered_and_decides_nothing(world: World) -> None:
    world.results = [MOVED]
    report = world.tick(minutes=31)
    assert report.skipped == ("decide", "fire", "publish")
    assert world.store.commits == [Ledger.TRIGGER_EVALUATIONS, Ledger.PROBES]
    # The next process reads it from the checkpoint: the same answer moves nothing.
    world.tick(minutes=60)
    assert world.store.commits[2:] == [Ledger.TRIGGER_EVALUATIONS]


def test_that_no_trigger_had_anything_to_report_is_remembered_too(world: World) -> None:
    reports = [world.tick(minutes=each) for each in (31, 28, 1)]
    assert [report.findings.released is not None for report in reports] == [True, False, True]
    assert [row["tick_number"] for row in world.store.read(Ledger.TRIGGER_EVALUATIONS)] == [2, 3]


def test_a_slot_that_opens_is_decided_on_so_that_people_see_what_it_waits_for(
    world: World,
) -> None:
    place = '{"waiting":["2026-03-01T12:30:00Z"],"missing":[["partition a of t"]]}'
    world.results = [{**MOVED, "position": place}]
    assert world.tick(minutes=31).skipped == ()


@pytest.mark.parametrize(
    "options",
    [TickOptions(sources=frozenset({"kafka"})), TickOptions(jobs=frozenset({2}))],
)
def test_a_tick_for_a_part_of_the_upstreams_evaluates_every_trigger(
    world: World, options: TickOptions
) -> None:
    report = world.tick(minutes=31, options=options)
    assert (world.asked, len(report.results)) == (1, 0)


def test_an_edited_seed_has_every_trigger_evaluated_at_once(world: World) -> None:
    (world.project / EVENT_TRIGGERS).write_text(text(row()))
    assert world.tick(minutes=1).skipped == ()
    assert world.asked == 1


def test_no_control_row_may_name_a_trigger_as_its_source() -> None:
    assert EVENT_TRIGGER not in set(Source)


def test_the_first_trigger_has_its_models_built_and_later_an_edit_has_those_of_the_csv_built_again(
    world: World,
) -> None:
    version = world.context().home.folder / "version.json"
    version.write_text(json.dumps({"state_version": 1, "models": models_checksum(world.project)}))
    (world.project / CONTROLS).write_text(",".join(COLUMNS) + "\n\n")
    world.tick(minutes=1)
    Installation(world.context()).ensure_triggers(NOON)
    assert world.dbt.built == ["triggers", "trigger_terms"]
    assert json.loads(version.read_text())["with_triggers"]


def fails(reason: str) -> Callable[[], Sequence[Mapping[str, object]]]:
    """Return a model that cannot be read."""

    def read() -> Sequence[Mapping[str, object]]:
        raise StateError(reason)

    return read


def outcomes(world: World) -> list[tuple[object, object, object]]:
    rows = world.store.read(Ledger.PROBES)
    return [(row["upstream_id"], row["outcome"], row["reason"]) for row in rows]


def test_a_trigger_that_cannot_be_evaluated_is_recorded_once_and_shown_by_every_tick(
    world: World,
) -> None:
    world.results = [{**MOVED, "position": None, "failure": "unknown time zone Mars/Base"}]
    reports = [world.tick(minutes=each) for each in (31, 1, 60)]

    assert outcomes(world) == [("trigger:daily", "failed", "unknown time zone Mars/Base")]
    assert [report.is_clean for report in reports] == [False, False, False]
    (shown,) = as_json(reports[1], 0)["failing_triggers"]  # type: ignore[misc]
    assert (shown["trigger_id"], shown["reason"]) == ("daily", "unknown time zone Mars/Base")
    assert "1 trigger cannot be evaluated" in headline(reports[1])

    world.results = []
    (world.project / EVENT_TRIGGERS).write_text(text(row()))
    failing = replace(DAILY, position=PLACE, failing_since=NOON, reason="unknown time zone")
    world.models["queue_upstreams"] = lambda: [NEVER_SEEN.to_row(), failing.to_row()]
    recovered = world.tick(minutes=1)
    assert outcomes(world)[1:] == [("trigger:daily", "recovered", None)]
    assert (recovered.is_clean, recovered.skipped) == (True, ())


def test_an_evaluation_that_fails_as_a_whole_keeps_nothing_from_being_decided_and_started(
    world: World,
) -> None:
    answer = world.models["queue_trigger_evaluations"]
    world.models["queue_trigger_evaluations"] = fails("queue_trigger_evaluations cannot be read")
    world.models["trigger_set"] = lambda: []
    failed = world.tick(minutes=31)

    reason = "no trigger can be evaluated: queue_trigger_evaluations cannot be read"
    assert outcomes(world) == [("trigger:daily", "failed", reason)]
    assert (failed.skipped, failed.is_clean) == ((), False)
    assert "sensors" in world.published
    assert world.read.index("trigger_set") < world.read.index("job_blockers")

    # The next tick evaluates again, though nothing is due, and what the models read is rebuilt.
    world.models["queue_trigger_evaluations"] = answer
    world.dbt.built.clear()
    again = world.tick(minutes=1)
    assert world.asked == 1
    assert world.dbt.built == ["triggers"]
    assert outcomes(world)[1:] == [("trigger:daily", "recovered", None)]
    assert again.is_clean


@pytest.mark.parametrize(
    ("broken", "missing"),
    [
        ("trigger_terms", "trigger_terms"),
        ("int_trigger_due_slots", "int_trigger_opening_slots"),
    ],
)
def test_models_of_triggers_that_cannot_be_built_keep_nothing_from_being_decided(
    world: World, broken: str, missing: str
) -> None:
    (world.project / EVENT_TRIGGERS).write_text(text(row()))
    world.dbt.broken = broken
    report = world.tick(minutes=1)
    assert (report.skipped, report.is_clean, world.asked) == ((), False, 0)
    assert outcomes(world) == [
        ("trigger:daily", "failed", f"no trigger can be evaluated: there is no {missing}")
    ]
    assert "sensors" in world.published

    # A process of its own tries again.
    world.dbt.broken = ""
    assert world.tick(minutes=1).is_clean


def test_a_ledger_that_cannot_be_written_still_stops_the_tick(world: World) -> None:
    world.results = [{**MOVED, "position": '{"waiting":[]}'}]
    append = world.store.append

    def full(ledger: Ledger, rows: Sequence[object]) -> None:
        if ledger is Ledger.PROBES and rows:
            raise StateError("the disk is full")
        append(ledger, rows)  # type: ignore[arg-type]

    world.store.append = full  # type: ignore[method-assign, assignment]
    with pytest.raises(StateError, match="the disk is full"):
        world.tick(minutes=31)
