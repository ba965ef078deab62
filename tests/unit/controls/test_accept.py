"""Which rows of the seeds are in force while some of them are wrong."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.controls.accept import SEEDS, Accepted, Desk, imported_in_force
from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import IMPORTED_SENSORS
from harness.controls.load import CONTROLS
from harness.controls.optional_seeds import SCHEDULED_JOBS, SEED_COLUMNS, SENSOR_ASSETS
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.errors import ControlsError
from harness.store.rows import ControlChangeRow, Ledger
from tests.support.ledgers import control, probe
from tests.support.memory_store import MemoryStore
from tests.support.triggers_text import row as daily

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(upstream: str, job: object, *, source: str = "delta_table", flag: str = "TRUE") -> str:
    return f"{source},{upstream},batch,,,,{job},,UNPAUSED,{flag}"


def trigger(name: str, job: object, table: str = "a.b", kind: str = "PARTITION") -> str:
    return daily(trigger_id=name, trigger_type=kind, job_id=str(job), job_name="j", table=table)


class Project:
    """The seeds of a project, and what has become of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore()
        self.at = NOON
        (folder / "seeds").mkdir()

    def write(self, *rows: str, seed: Path = CONTROLS) -> None:
        columns = COLUMNS if seed == CONTROLS else SEED_COLUMNS[seed]
        (self.folder / seed).write_text("\n".join([",".join(columns), *rows, ""]))

    def desk(self) -> Desk:
        return Desk(self.folder, self.folder / "home", self.store)

    def accept(self, *rows: str) -> Accepted:
        self.at += timedelta(minutes=1)
        if rows:
            self.write(*rows)
        return self.desk().accept(self.at)

    def cells(self, seed: Path = CONTROLS) -> list[dict[str, str]]:
        with (self.folder / "home" / seed).open(newline="") as file:
            return list(csv.DictReader(file))

    def in_force(self) -> list[tuple[str, str]]:
        """Job and upstream of each row in force."""
        return sorted((each["trigger_job_id"], each["sensor_id"]) for each in self.cells())


def recorded(number: int, upstream: str) -> ControlChangeRow:
    return control(
        1, NOON, upstream, control_id=f"{upstream.replace('.', '_')}_{number}", job_id=number
    )


@pytest.mark.parametrize(("with_events", "is_refused"), [(0, False), (4, False), (9, True)])
def test_only_the_removal_of_rows_that_have_had_events_has_to_be_confirmed(
    tmp_path: Path, with_events: int, is_refused: bool
) -> None:
    project = Project(tmp_path)
    upstreams = [f"sales.t{number}" for number in range(9)]
    rows = [recorded(number, name) for number, name in enumerate(upstreams)]
    project.store.append(Ledger.CONTROLS, rows)
    probes = [
        probe(1, NOON, row.upstream_id, latest_event_tick=1 if number < with_events else None)
        for number, row in enumerate(rows)
    ]
    project.store.append(Ledger.PROBES, probes)
    if is_refused:
        with pytest.raises(ControlsError, match="9 of the 9 rows in force are gone"):
            project.accept(row("b.mine", 7))
    else:
        project.accept(row("b.mine", 7))
        assert project.in_force() == [("7", "b.mine")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_seeds_without_a_mistake_are_in_force_as_they_are(project: Project) -> None:
    project.write(trigger("t", 1), seed=EVENT_TRIGGERS)
    accepted = project.accept(row("a.a", 1), row("a.b", 2))
    assert accepted.quarantined == ()
    assert accepted.has_triggers
    assert accepted.checksum == project.desk().checksum()
    for seed in (CONTROLS, EVENT_TRIGGERS):
        assert (project.folder / "home" / seed).read_text() == (project.folder / seed).read_text()


def test_a_row_that_is_removed_leaves_when_nothing_is_wrong(project: Project) -> None:
    project.accept(row("a.a", 1), row("a.b", 1))
    project.accept(row("a.a", 1))
    assert project.in_force() == [("1", "a.a")]


def test_a_wrong_row_is_quarantined_with_its_reason_and_the_other_jobs_go_on(
    project: Project,
) -> None:
    accepted = project.accept(row("a.a", 1), row("a.b", 2, source="delta_tabel"), row("a.c", 3))
    [item] = accepted.quarantined
    assert item.name == f"{CONTROLS}:3"
    assert "delta_table" in item.reason
    assert "job 2 stays as it was last accepted; if it is new, it waits" in item.reason
    assert project.in_force() == [("1", "a.a"), ("3", "a.c")]


def test_a_new_job_waits_with_all_its_rows_while_one_of_them_is_wrong(project: Project) -> None:
    project.accept(row("a.a", 1), row("a.b", 2), row("a.c", 2, flag="PERHAPS"))
    assert project.in_force() == [("1", "a.a")]


def test_a_job_in_force_keeps_its_rows_while_one_of_them_is_wrong(project: Project) -> None:
    project.accept(row("a.a", 1), row("a.b", 2, flag="TRUE"))
    project.accept(row("a.a", 1), row("a.b", 2, flag="FALSE"), row("a.c", 2, flag="PERHAPS"))
    assert project.in_force() == [("1", "a.a"), ("2", "a.b")]
    assert [each["dependency_flag"] for each in project.cells()] == ["TRUE", "TRUE"]


def test_a_healthy_job_changes_beside_a_wrong_row_of_another(project: Project) -> None:
    project.accept(row("a.a", 1), row("a.b", 2))
    project.accept(row("a.a", 1, flag="FALSE"), row("a.b", 2, source="none"), row("a.d", 4))
    flags = {each["trigger_job_id"]: each["dependency_flag"] for each in project.cells()}
    assert flags == {"1": "FALSE", "2": "TRUE", "4": "TRUE"}


def test_nothing_in_force_is_removed_while_a_row_is_wrong(project: Project) -> None:
    project.accept(row("a.a", 1), row("a.b", 1))
    project.accept(row("a.a", 1), row("a.b", "one"))
    assert project.in_force() == [("1", "a.a"), ("1", "a.b")]


@pytest.mark.parametrize("wrong", [row("a.b", "seven"), row("a.b", 2**63), "delta_table,a.b"])
def test_new_jobs_wait_while_it_cannot_be_read_which_job_a_row_is_about(
    wrong: str, project: Project
) -> None:
    project.accept(row("a.a", 1))
    [item, *_] = project.accept(row("a.a", 1, flag="FALSE"), wrong, row("a.c", 3)).quarantined
    assert "new jobs wait" in item.reason
    assert project.in_force() == [("1", "a.a")]
    assert project.cells()[0]["dependency_flag"] == "FALSE"


def test_a_wrong_row_of_a_trigger_holds_its_job_in_the_controls_too(project: Project) -> None:
    project.write(trigger("t", 1), trigger("u", 2, kind="PARTITON"), seed=EVENT_TRIGGERS)
    accepted = project.accept(row("a.a", 1), row("a.b", 2))
    assert next(item.name for item in accepted.quarantined) == f"{EVENT_TRIGGERS}:3"
    assert project.in_force() == [("1", "a.a")]
    assert [each["trigger_id"] for each in project.cells(EVENT_TRIGGERS)] == ["t"]


@pytest.mark.parametrize("wrong", [trigger("t", "x", "a.c"), trigger("t", 8, "a.c"), "t,PARTITION"])
def test_a_trigger_is_not_put_in_force_without_its_wrong_row(wrong: str, project: Project) -> None:
    project.accept(row("a.a", 1))
    project.write(trigger("t", 1), wrong, seed=EVENT_TRIGGERS)
    project.accept()
    assert project.cells(EVENT_TRIGGERS) == []
    project.write(trigger("t", 1), trigger("t", 1, "a.c"), seed=EVENT_TRIGGERS)
    project.accept()
    project.write(trigger("t", 1), wrong, seed=EVENT_TRIGGERS)
    project.accept()
    assert [each["table"] for each in project.cells(EVENT_TRIGGERS)] == ["a.b", "a.c"]


def test_a_wrong_row_of_the_scheduled_jobs_keeps_new_jobs_waiting(project: Project) -> None:
    project.accept(row("a.a", 1))
    project.write("2x,", seed=SCHEDULED_JOBS)
    project.accept(row("a.a", 1), row("a.b", 2))
    assert project.in_force() == [("1", "a.a")]


def test_a_wrong_asset_holds_no_job(project: Project) -> None:
    project.write("a.a,x", "a.b,", seed=SENSOR_ASSETS)
    accepted = project.accept(row("a.a", 1), row("a.b", 2))
    assert [item.name for item in accepted.quarantined] == [f"{SENSOR_ASSETS}:3"]
    assert project.in_force() == [("1", "a.a"), ("2", "a.b")]
    assert [each["sensor_id"] for each in project.cells(SENSOR_ASSETS)] == ["a.a"]


UNREADABLE = {
    "no header": b"a,b\n1,2\n",
    "nothing": b"",
    "another encoding": b"\xff\xfea\x00",
    "no UTF-8": ",".join(COLUMNS).encode() + b"\n" + row("a.\xe9", 1).encode("latin-1") + b"\n",
    "a NUL": ",".join(COLUMNS).encode() + b"\n" + row("a.\0", 1).encode() + b"\n",
    "torn in a quote": f'{",".join(COLUMNS)}\n{row("a.a", 1)}\ndelta_table,"a.b'.encode(),
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_leaves_all_that_was_accepted_in_force(
    content: bytes, project: Project
) -> None:
    with_names = [row("a.a", 1), row("a.b", 2)]
    (project.folder / CONTROLS).write_bytes(content)
    with pytest.raises(ControlsError, match=r"heartbeat_controls\.csv: "):
        project.accept()
    project.accept(*with_names)
    (project.folder / CONTROLS).write_bytes(content)
    accepted = project.accept()
    assert any("last accepted stay in force" in each.reason for each in accepted.quarantined)
    assert project.in_force() == [("1", "a.a"), ("2", "a.b")]


def test_a_file_that_is_gone_or_is_a_folder_leaves_what_was_accepted_in_force(
    project: Project,
) -> None:
    project.accept(row("a.a", 1))
    (project.folder / CONTROLS).unlink()
    assert project.accept().quarantined
    (project.folder / CONTROLS).mkdir()
    (project.folder / SCHEDULED_JOBS).symlink_to("scheduled_jobs.csv")
    assert len(project.accept().quarantined) == 2
    assert project.in_force() == [("1", "a.a")]


def test_what_an_earlier_version_has_loaded_counts_as_accepted(project: Project) -> None:
    cells = dict(zip(COLUMNS, row("a.b", 2).split(","), strict=True))
    project.store.replace(CONTROLS.stem, [{name: cell or None for name, cell in cells.items()}])
    project.accept(row("a.b", 2, flag="PERHAPS"))
    assert project.in_force() == [("2", "a.b")]


def test_a_problem_is_quarantined_since_it_is_there_and_no_longer_when_it_is_put_right(
    project: Project,
) -> None:
    [first] = project.accept(row("a.a", 1, flag="PERHAPS")).quarantined
    [again] = project.accept(row("a.a", 1, flag="PERHAPS"), row("a.b", 2)).quarantined
    assert first.since == again.since
    assert project.desk().quarantined == (again,)
    assert project.accept(row("a.a", 1), row("a.b", 2)).quarantined == ()
    assert project.desk().quarantined == ()
    assert project.in_force() == [("1", "a.a"), ("2", "a.b")]


def test_every_seed_that_operators_edit_is_accepted_here() -> None:
    assert set(SEEDS) == {CONTROLS, *SEED_COLUMNS}


def test_a_wrong_row_of_the_imported_sensors_is_left_out_and_holds_no_job(project: Project) -> None:
    rows = ("a_1,,COMPLETED,2026-03-01T06:00:00Z,,,", "b_2,,DONE,,,,", "b_2")
    project.write(*rows, seed=IMPORTED_SENSORS)
    accepted = project.accept(row("a", 1), row("b", 2))
    names = [item.name for item in accepted.quarantined]
    assert names == [f"{IMPORTED_SENSORS}:3", f"{IMPORTED_SENSORS}:4"]
    assert "(the row is left out)" in accepted.quarantined[0].reason
    assert project.in_force() == [("1", "a"), ("2", "b")]
    assert set(imported_in_force(project.folder / "home")) == {"a_1"}
