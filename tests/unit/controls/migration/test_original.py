"""A control table of the original becomes the controls CSV; what cannot is reported, row by row."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from harness.controls.check import check
from harness.controls.findings import has_errors
from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import COLUMNS as IMPORTED_COLUMNS
from harness.controls.imported_sensors import ImportedStatus, problem_in
from harness.controls.load import CONTROLS
from harness.controls.migration.original import (
    STATE_COLUMNS,
    candidates_of,
    records_of_csv,
    records_of_table,
)
from harness.controls.migration.plan import Plan, plan, write
from harness.controls.migration.table import rows_of_table
from harness.controls.parse import parse_controls
from harness.errors import ControlsError

EVERY = (*COLUMNS, *STATE_COLUMNS)
ROW = {
    "sensor_source": "delta_table",
    "sensor_id": "sales.orders",
    "sensor_read_type": "streaming",
    "asset_description": "Orders",
    "trigger_job_id": "1",
    "trigger_job_name": "revenue",
    "job_state": "UNPAUSED",
    "dependency_flag": "TRUE",
}
SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)


def imported(tmp_path: Path, *rows: dict[str, str], header: tuple[str, ...] = EVERY) -> Plan:
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header)
        writer.writeheader()
        writer.writerows({**{k: v for k, v in ROW.items() if k in header}, **row} for row in rows)
    candidates, remarks = candidates_of(records_of_csv(path))
    result = plan(candidates)
    return Plan(rows=result.rows, sensors=result.sensors, remarks=(*remarks, *result.remarks))


def said(result: Plan) -> str:
    return "\n".join(map(str, result.remarks))


def test_the_ten_columns_go_into_the_csv_and_the_state_beside_it(tmp_path: Path) -> None:
    state = {
        "status": "COMPLETED",
        "status_change_timestamp": "2026-03-01T06:20:00.123Z",
        "latest_event_fetched_timestamp": "2026-03-01 06:00:00",
        "job_start_timestamp": "2026-03-01T07:01:00+01:00",
        "job_end_timestamp": "null",
    }
    result = imported(tmp_path, state)
    assert result.rows == (tuple(ROW.get(name, "") for name in COLUMNS),)
    (sensor,) = result.sensors
    assert (sensor.control_id, sensor.sensor_id, sensor.status) == (
        "sales_orders_1",
        "",
        "COMPLETED",
    )
    assert (sensor.fetched_at, sensor.job_ended_at) == (SIX, None)
    assert sensor.job_started_at == SIX.replace(minute=1)
    assert result.remarks == ()


def test_a_sensor_keeps_the_id_of_the_original_where_ours_differs(tmp_path: Path) -> None:
    rows = (
        {"sensor_source": "kafka", "sensor_id": "my-product: my.topic", "trigger_job_id": "1"},
        {"sensor_id": "sales.orders", "trigger_job_id": "2"},
    )
    (sensor,) = imported(tmp_path, *rows).sensors
    assert (sensor.control_id, sensor.sensor_id) == (
        "my_product__my_topic_1",
        "my-product__my_topic_1",
    )


def test_the_spelling_of_the_document_and_the_status_in_two_words_are_read(tmp_path: Path) -> None:
    header = tuple("dependancy_flag" if name == "dependency_flag" else name for name in EVERY)
    result = imported(
        tmp_path, {"dependancy_flag": "FALSE", "status": "in progress"}, header=header
    )
    assert result.rows[0][-1] == "FALSE"
    assert result.sensors[0].status is ImportedStatus.IN_PROGRESS
    assert "the end of the run is not recorded, so the job is held; a run that succeeds" in said(
        result
    )


def test_a_row_that_is_left_out_pauses_the_others_of_its_job(tmp_path: Path) -> None:
    rows = ({}, {"sensor_source": "oracle"}, {"sensor_id": "sales.returns", "trigger_job_id": "2"})
    result = imported(tmp_path, *rows)
    assert [(row[1], row[8]) for row in result.rows] == [
        ("sales.orders", "PAUSED"),
        ("sales.returns", "UNPAUSED"),
    ]
    assert "line 3: sensor_source: unknown source 'oracle'" in said(result)
    assert "line 2: job 1 has another row that is left out, so it is PAUSED" in said(result)
    assert [each.place for each in result.remarks if each.is_left_out] == ["line 3"]


def test_a_row_whose_job_cannot_be_read_pauses_every_job(tmp_path: Path) -> None:
    result = imported(tmp_path, {}, {"sensor_id": "sales.returns", "trigger_job_id": "1x"})
    assert [row[8] for row in result.rows] == ["PAUSED"]
    assert "every row: some job, which cannot be read, has another row that is left out" in (
        said(result)
    )


def test_of_two_rows_with_one_id_the_first_is_kept(tmp_path: Path) -> None:
    result = imported(tmp_path, {}, {"asset_description": "again"})
    assert [row[3] for row in result.rows] == ["Orders"]
    assert "line 3: sensor_id: the row repeats line 2" in said(result)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"status": "DONE"},
            "status 'DONE' is not a status of a control table, so the job is held",
        ),
        ({"job_end_timestamp": "soon"}, "job_end_timestamp 'soon' is not an instant"),
        ({"job_end_timestamp": "9999-12-31T23:59:59-23:00"}, "'9999-12-31T23:59:59-23:00' is no"),
        ({"job_end_timestamp": "0001-01-01 00:00:00"}, "'0001-01-01 00:00:00' is not an instant"),
        ({"status": "COMPLETED"}, "no timestamp records what was processed"),
        (
            {"sensor_source": "kafka", "sensor_id": "p: t", "status": "COMPLETED"},
            "a change of kafka has no time",
        ),
        ({"dependency_flag": "FALSE"}, "job 1 has only soft dependencies"),
    ],
)
def test_what_goes_on_otherwise_than_before_is_reported(
    tmp_path: Path, cells: dict[str, str], message: str
) -> None:
    result = imported(tmp_path, cells)
    assert message in said(result)
    assert len(result.rows) == 1


def test_an_event_that_waits_and_would_be_discarded_is_reported(tmp_path: Path) -> None:
    row = {**ROW, "status": "NEW_EVENT_AVAILABLE"}
    records = records_of_table([{name: row.get(name) for name in EVERY}], "a.b")
    _, remarks = candidates_of(records, discards_existing=lambda *_: True)
    assert "set first_sight: event for delta_table sales.orders" in str(remarks[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "is not a control table: it has no column sensor_source, sensor_id"),
        (",".join((*EVERY, "status")) + "\n", "has the column status twice"),
    ],
)
def test_what_is_no_control_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "export.csv"
    path.write_text(text)
    with pytest.raises(ControlsError, match=message):
        records_of_csv(path)


def test_a_row_with_too_many_cells_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(",".join(EVERY) + "\n" + "x," * 20 + "\n")
    records = records_of_csv(path)
    assert records.rows == ()
    assert str(records.remarks[0]).startswith(
        "line 2: the row has 21 cells, and the header has 15;"
    )


def test_a_delta_table_is_read_with_its_types(tmp_path: Path) -> None:
    table = {name: [ROW.get(name)] for name in COLUMNS} | {
        "dependency_flag": [True],
        "status": ["COMPLETED"],
        "latest_event_fetched_timestamp": [SIX],
    }
    path = str(tmp_path / "controls")
    write_deltalake(path, pa.table(table))
    candidates, _ = candidates_of(records_of_table(rows_of_table(path, _no_sql), path))
    result = plan(candidates)
    assert result.rows == (tuple(ROW.get(name, "") for name in COLUMNS),)
    assert result.sensors[0].fetched_at == SIX


def test_what_is_neither_a_file_nor_a_table_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        ControlsError, match="there is neither a Delta table nor a file; name a CSV"
    ):
        rows_of_table(str(tmp_path / "nothing"), _no_sql)


def _no_sql() -> None:
    raise AssertionError("no session is needed")


def test_seeds_with_rows_are_overwritten_with_force_alone(tmp_path: Path) -> None:
    result = imported(tmp_path, {})
    (tmp_path / "seeds").mkdir()
    (tmp_path / CONTROLS).write_text(",".join(COLUMNS) + "\n")
    write(tmp_path, result, force=False)
    assert (tmp_path / CONTROLS).read_text() == result.controls_text
    other = imported(tmp_path, {"sensor_id": "sales.returns"})
    with pytest.raises(ControlsError, match=r"in seeds/heartbeat_controls\.csv already; --force"):
        write(tmp_path, other, force=False)
    assert (tmp_path / CONTROLS).read_text() == result.controls_text
    write(tmp_path, other, force=True)
    assert (tmp_path / CONTROLS).read_text() == other.controls_text


def test_an_import_without_rows_overwrites_nothing_even_with_force(tmp_path: Path) -> None:
    result = imported(tmp_path, {})
    (tmp_path / "seeds").mkdir()
    write(tmp_path, result, force=False)
    assert write(tmp_path, Plan(), force=True) == ()
    assert (tmp_path / CONTROLS).read_text() == result.controls_text


HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "",
            "null",
            " NULL ",
            '"',
            '","',
            "a\nb",
            "a\r\nb",
            "\r",
            "\0",
            "\ufeff",
            "\u202e1",
            "\ud800",
            "=1+1",
            "1.0",
            "1e9",
            "9" * 50,
            "x" * 140_000,
            "2026-03-01T06:00:00Z",
            "9999-12-31T23:59:59-23:00",
            "IN PROGRESS",
            "COMPLETED",
            "sales.orders",
            "SELECT * FROM sensor_new_data; DROP TABLE x",
        ]
    ),
)
VALUES = st.one_of(
    HOSTILE,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.datetimes(),
    st.lists(st.integers(), max_size=2),
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows that are right but for some cells."""
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        row: dict[str, object] = {name: ROW.get(name) for name in EVERY}
        row["sensor_id"] = draw(st.sampled_from(["a.b", "a-b", "c.d", "p: t"]))
        row["trigger_job_id"] = draw(st.sampled_from(["1", "2"]))
        row |= draw(st.dictionaries(st.sampled_from(EVERY), VALUES, max_size=3))
        rows.append(row)
    return rows


@given(tables())
def test_whatever_the_cells_hold_the_seeds_are_right_and_every_row_is_in_them_or_reported(
    rows: list[dict[str, object]],
) -> None:
    candidates, remarks = candidates_of(records_of_table(rows, "a.b"))
    result = plan(candidates)

    controls = parse_controls(result.controls_text.encode(), CONTROLS)
    assert not has_errors(check(controls)) or not result.rows
    assert len(controls.rows) == len(result.rows)
    left_out = {each.place for each in result.remarks if each.is_left_out}
    assert len(result.rows) + len(left_out) >= len({place for place in _places(candidates)})
    _assert_no_job_lost_a_dependency(rows, result)

    lines = list(csv.reader(io.StringIO(result.sensors_text, newline="")))
    assert lines[0] == list(IMPORTED_COLUMNS)
    assert [problem_in(cells) for cells in lines[1:]] == [None] * len(result.sensors)
    assert {each.control_id for each in result.sensors} <= controls.keys
    assert all(
        each.reason and each.remedy and "\n" not in str(each)
        for each in (*remarks, *result.remarks)
    )


def _places(candidates: list) -> list[str]:
    return [each.place for each in candidates]


def _assert_no_job_lost_a_dependency(rows: list[dict[str, object]], result: Plan) -> None:
    if {str(row["trigger_job_id"]) for row in rows} - {"1", "2"} and len(result.rows) < len(rows):
        # The row that is left out may be about any job.
        return
    for job in ("1", "2"):
        wanted = [row for row in rows if row["trigger_job_id"] == job]
        kept = [row for row in result.rows if row[6].strip() == job]
        if 0 < len(kept) < len(wanted):
            assert {row[8].strip().upper() for row in kept} == {"PAUSED"}


@given(st.binary(max_size=300))
def test_whatever_bytes_an_export_holds_it_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("export") / "export.csv"
    path.write_bytes(",".join(EVERY).encode() + b"\n" + content)
    candidates, _ = candidates_of(records_of_csv(path))
    result = plan(candidates)
    assert (
        not has_errors(check(parse_controls(result.controls_text.encode(), CONTROLS)))
        or not result.rows
    )
