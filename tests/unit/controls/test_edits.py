"""Edits of ``heartbeat_control`` by others are reported, and the table is published again."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.controls.edits import TABLE, PublishedTable
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.errors import StateError
from harness.store.quarantine import Quarantined
from harness.store.rows import ControlChangeRow, Ledger
from tests.support.memory_store import MemoryStore
from tests.support.small_world import SmallWorld

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = (
    "Delta_Table,sales.orders,Streaming,,,,1,daily,unpaused,\n"
    "delta_table,sales.refunds,batch,Refunds,day,,1,daily,UNPAUSED,FALSE\n"
)
RECORDED = ControlChangeRow(
    tick_number=1,
    recorded_at=NOW,
    control_id="sales_orders_1",
    change="added",
    upstream_id="u",
    sensor_source="delta_table",
    sensor_id="sales.orders",
    sensor_read_type="streaming",
    asset_description=None,
    upstream_key=None,
    preprocess_query=None,
    job_id=1,
    job_name="daily",
    job_state="UNPAUSED",
    dependency_flag="TRUE",
)
REFUNDS = replace(
    RECORDED,
    control_id="sales_refunds_1",
    sensor_id="sales.refunds",
    sensor_read_type="batch",
    asset_description="Refunds",
    upstream_key="day",
    dependency_flag="FALSE",
)


class World:
    """A project with two control rows, both recorded and published."""

    def __init__(self, project: Path) -> None:
        self.project = project
        (project / "seeds").mkdir()
        self.write(LINES)
        self.store = MemoryStore((*Ledger, TABLE))
        self.store.append(Ledger.CONTROLS, [RECORDED, REFUNDS])
        self.rows = [shown(RECORDED), shown(REFUNDS)]
        self.publish()
        self.table.note(self.table.fingerprint())

    @property
    def table(self) -> PublishedTable:
        return PublishedTable(self.project / "published.json", self.store, self.project)

    def write(self, lines: str) -> None:
        (self.project / CONTROLS).write_text(",".join(COLUMNS) + "\n" + lines)

    def publish(self) -> None:
        """Commit the rows of the table, as a tick or another writer does."""
        self.store.replace(TABLE, self.rows)

    def edits(self) -> tuple[Quarantined, ...]:
        self.publish()
        return self.table.edits(NOW)


def shown(row: ControlChangeRow) -> dict[str, object]:
    return {
        "sensor_source": row.sensor_source,
        "sensor_id": row.sensor_id,
        "sensor_read_type": row.sensor_read_type,
        "asset_description": row.asset_description,
        "upstream_key": row.upstream_key,
        "preprocess_query": row.preprocess_query,
        "trigger_job_id": str(row.job_id),
        "trigger_job_name": row.job_name,
        "status": "COMPLETED",
        "job_state": row.job_state,
        "dependency_flag": row.dependency_flag,
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_edited_cell_is_reported_with_the_line_of_the_csv_to_edit(world: World) -> None:
    world.rows[1]["job_state"] = "PAUSED"
    world.rows[1]["upstream_key"] = None
    [edit] = world.edits()
    assert edit.name == "heartbeat_control: sales.refunds of job 1"
    assert edit.reason == (
        "upstream_key was changed from day to nothing, job_state was changed from UNPAUSED to "
        "PAUSED. The table only shows the controls, so that nothing follows from an edit of it, "
        "and the row is published again: edit line 3 of seeds/heartbeat_controls.csv instead."
    )
    assert edit.path == world.project / CONTROLS


def test_an_edit_is_reported_until_the_table_is_published(world: World) -> None:
    world.rows[0]["job_state"] = "PAUSED"
    assert world.edits() == world.table.edits(NOW) != ()
    world.rows[0]["job_state"] = "UNPAUSED"
    world.publish()
    world.table.note(world.table.fingerprint())
    assert world.table.edits(NOW) == ()


def test_a_row_that_was_added_or_deleted_is_reported(world: World) -> None:
    world.rows[1] = {**world.rows[0], "sensor_id": "sales.other"}
    reported = {each.name: each.reason for each in world.edits()}
    assert reported["heartbeat_control: sales.other of job 1"].startswith("the row was added.")
    assert (
        "edit seeds/heartbeat_controls.csv instead"
        in (reported["heartbeat_control: sales.other of job 1"])
    )
    assert reported["heartbeat_control: sales.refunds of job 1"].startswith("the row was deleted.")


def test_a_table_that_no_process_has_written_to_is_not_read(world: World) -> None:
    world.store.read = None  # type: ignore[method-assign,assignment]
    assert world.table.edits(NOW) == ()


@pytest.mark.parametrize("column", ["status", "job_start_timestamp"])
def test_what_heartbeat_states_of_a_row_is_written_again_without_a_report(
    world: World, column: str
) -> None:
    world.rows[0][column] = None
    assert world.edits() == ()


def test_a_commit_that_changes_no_row_is_read_once(world: World) -> None:
    assert world.edits() == ()
    world.store.read = None  # type: ignore[method-assign,assignment]
    assert world.table.edits(NOW) == ()


def test_what_a_plain_dbt_build_shows_of_an_edited_csv_is_no_edit(world: World) -> None:
    world.write(
        "delta_table,sales.orders,streaming,,,,1,daily,paused,\n"
        "delta_table,sales.new,streaming,,,,1,daily,UNPAUSED,TRUE\n"
    )
    world.rows[0]["job_state"] = "PAUSED"
    world.rows[1] = {**shown(RECORDED), "sensor_id": "sales.new"}
    assert world.edits() == ()


def test_what_a_tick_that_died_while_it_published_has_left_is_no_edit(world: World) -> None:
    removed = replace(REFUNDS, tick_number=2, change="removed")
    world.store.append(Ledger.CONTROLS, [removed])
    world.write(LINES.splitlines()[0] + "\n")
    assert world.edits() == ()


def test_a_csv_that_cannot_be_read_names_no_line(world: World) -> None:
    (world.project / CONTROLS).unlink()
    world.rows[0]["job_state"] = "PAUSED"
    [edit] = world.edits()
    assert "edit seeds/heartbeat_controls.csv instead" in edit.reason


@pytest.mark.parametrize("text", ["", "{}", "[]", "[" * 100_000, '{"fingerprint": 3}'])
def test_a_note_that_cannot_be_read_only_costs_a_comparison(world: World, text: str) -> None:
    (world.project / "published.json").write_text(text)
    assert world.table.edits(NOW) == ()


def test_a_value_of_any_length_and_kind_is_reported_on_one_line(world: World) -> None:
    world.rows[0]["asset_description"] = "\x1b[2J\n" + "x" * 100_000
    [edit] = world.edits()
    assert edit.reason.isprintable()
    assert len(edit.reason) < 500


def test_a_tick_reports_an_edit_and_publishes_the_table_again(tmp_path: Path) -> None:
    world = SmallWorld(tmp_path, LINES)
    world.models = {"trigger_set": tuple, "job_blockers": tuple}
    world.store.append(Ledger.CONTROLS, [RECORDED, REFUNDS])
    world.store.replace(TABLE, [shown(RECORDED), {**shown(REFUNDS), "job_state": "PAUSED"}])
    world.remember()
    report = world.engine().tick()
    assert [each.name for each in report.quarantined] == [
        "heartbeat_control: sales.refunds of job 1"
    ]
    assert not report.is_clean
    assert TABLE in world.published


def test_a_state_directory_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    world = SmallWorld(tmp_path, LINES)
    world.store.append(Ledger.CONTROLS, [RECORDED, REFUNDS])
    world.store.replace(TABLE, [shown(RECORDED), shown(REFUNDS)])
    world.home.folder.mkdir(exist_ok=True)
    (world.home.folder / "version.json").write_text('{"state_version": 99, "models": ""}')
    with pytest.raises(StateError, match="newer Heartbeat"):
        world.engine().tick()
    assert not world.home.published.exists()
