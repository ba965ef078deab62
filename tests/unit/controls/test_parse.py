"""Reading the controls CSV: its lines, its bytes, and what dbt would make of it."""

from pathlib import Path

import pytest
from dbt_common.clients import agate_helper
from hypothesis import given
from hypothesis import strategies as st

from harness.controls.findings import Code
from harness.controls.header import COLUMNS
from harness.controls.parse import ControlsFile, parse_controls, read_controls
from harness.errors import ControlsError, ExitCode
from tests.support.controls_text import HEADER, checked, line


def parsed(text: str | bytes) -> ControlsFile:
    data = text.encode() if isinstance(text, str) else text
    return parse_controls(data, Path("controls.csv"))


def test_a_file_of_good_rows_has_no_finding() -> None:
    assert checked(line(), line(sensor_id="sales.customers")) == []


def test_the_shipped_controls_are_a_header_alone() -> None:
    shipped = Path(__file__).parents[3] / "seeds" / "heartbeat_controls.csv"
    assert shipped.read_text() == f"{HEADER}\n"


def test_a_missing_file_is_one_sentence_and_the_usage_exit_code(tmp_path: Path) -> None:
    with pytest.raises(ControlsError, match="No such file") as caught:
        read_controls(tmp_path / "none.csv")
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_row_after_a_cell_of_several_lines_has_the_line_on_which_it_starts() -> None:
    query = "SELECT *\nFROM sensor_new_data\nWHERE a > 1"
    controls = parsed("\n".join((HEADER, line(preprocess_query=query), line())) + "\n")
    assert [row.line for row in controls.rows] == [2, 5]


def test_a_byte_order_mark_is_no_part_of_the_header() -> None:
    controls = parsed(b"\xef\xbb\xbf" + f"{HEADER}\n{line()}\n".encode())
    assert controls.findings == ()


def test_windows_line_ends_count_as_one_line() -> None:
    query = "SELECT *\r\nFROM sensor_new_data"
    controls = parsed("\r\n".join((HEADER, line(preprocess_query=query), line(), "")))
    assert [row.line for row in controls.rows] == [2, 4]


def test_a_quoted_comma_belongs_to_the_cell() -> None:
    controls = parsed(f"{HEADER}\n{line(asset_description='Orders, by line')}\n")
    assert controls.rows[0].asset_description == "Orders, by line"


def test_spaces_around_a_cell_are_no_part_of_it() -> None:
    controls = parsed(f"{HEADER}\n{line(sensor_id='  sales.orders ')}\n")
    assert controls.rows[0].sensor_id == "sales.orders"


@pytest.mark.parametrize("cell", ["", "  ", "null", "NULL", " null "])
def test_an_empty_cell_and_the_word_null_are_no_value(cell: str) -> None:
    controls = parsed(f"{HEADER}\n{line(upstream_key=cell)}\n")
    assert controls.rows[0].upstream_key == ""


@pytest.mark.parametrize("blank", ["", "   ", ",,,,,,,,,"])
def test_a_blank_line_is_no_row(blank: str) -> None:
    controls = parsed(f"{HEADER}\n{blank}\n{line()}\n")
    assert ([row.line for row in controls.rows], controls.findings) == ([3], ())


@pytest.mark.parametrize(
    ("sensor_id", "job_id", "key"),
    [
        ("sales.orders", "0012", "sales_orders_12"),
        ("/data/über-sicht", "7", "_data__ber_sicht_7"),
        ("a.b", "9007199254740993", "a_b_9007199254740993"),
    ],
)
def test_the_sensors_id_is_the_munged_sensor_id_and_the_job_id(
    sensor_id: str, job_id: str, key: str
) -> None:
    controls = parsed(f"{HEADER}\n{line(sensor_id=sensor_id, trigger_job_id=job_id)}\n")
    assert controls.keys == {key}


def test_a_file_that_is_not_utf8_names_each_line() -> None:
    text = f"{HEADER}\n{line()}\n{line(sensor_id='a.b', asset_description='Größe')}\n"
    found = parsed(text.encode("latin-1")).findings
    assert [(each.code, each.line) for each in found] == [(Code.NOT_UTF8, 3)]


def test_a_utf16_file_is_one_finding() -> None:
    found = parsed(f"{HEADER}\n{line()}\n".encode("utf-16")).findings
    assert [(each.code, each.line) for each in found] == [(Code.NOT_UTF8, 1)]


def test_a_nul_byte_is_found_on_its_line() -> None:
    found = parsed(f"{HEADER}\n{line()}\n{line(sensor_id='a.b')}\0\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.NUL_BYTE, 3)]


def test_a_line_broken_in_the_middle_is_one_finding_that_names_both_halves() -> None:
    whole = line(sensor_id="a.b")
    broken = whole[: whole.index('"streaming"')] + "\n" + whole[whole.index('"streaming"') :]
    found = parsed(f"{HEADER}\n{line()}\n{broken}\n{line(sensor_id='a.c')}\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.BROKEN_LINE, 3)]
    assert "line 4" in found[0].message


def test_too_few_cells_are_found_on_their_line() -> None:
    found = parsed(f"{HEADER}\ndelta_table,a.b,batch\n{line()}\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.TOO_FEW_CELLS, 2)]


def test_too_few_cells_on_the_last_line_are_found() -> None:
    found = parsed(f"{HEADER}\n{line()}\ndelta_table,a.b,batch").findings
    assert [(each.code, each.line) for each in found] == [(Code.TOO_FEW_CELLS, 3)]


def test_too_many_cells_are_found_on_their_line() -> None:
    found = parsed(f"{HEADER}\n{line()}\n{line()},more\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.TOO_MANY_CELLS, 3)]


def test_an_unclosed_quote_is_found_on_the_line_that_opens_it() -> None:
    bad = 'delta_table,a.b,batch,"Orders,,,1,n,PAUSED,TRUE'
    found = parsed(f"{HEADER}\n{line()}\n{bad}\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.UNCLOSED_QUOTE, 3)]


def test_lines_below_an_unclosed_quote_are_still_judged() -> None:
    bad = 'delta_table,a.b,batch,"Orders,,,1,n,PAUSED,TRUE'
    found = checked(bad, line(job_state="HALTED"))
    assert [(each.code, each.line) for each in found] == [
        (Code.UNCLOSED_QUOTE, 2),
        (Code.JOB_STATE, 3),
    ]


def test_text_behind_a_closing_quote_is_found() -> None:
    bad = 'delta_table,a.b,batch,"Orders" new,,,1,n,PAUSED,TRUE'
    found = parsed(f"{HEADER}\n{bad}\n{line()}\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.MISPLACED_QUOTE, 2)]


def test_a_cell_longer_than_dbt_reads_is_found() -> None:
    found = parsed(f"{HEADER}\n{line(asset_description='x' * 131_073)}\n").findings
    assert [(each.code, each.line) for each in found] == [(Code.CELL_TOO_LONG, 2)]


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(data: bytes) -> None:
    assert isinstance(parsed(data), ControlsFile)


@given(st.text(alphabet='",\n\r a\0é', max_size=80))
def test_no_text_below_the_header_makes_the_reader_fail(text: str) -> None:
    controls = parsed(f"{HEADER}\n{text}")
    assert all(row.line >= 2 for row in controls.rows)


@given(st.lists(st.text(alphabet='x",\n é', max_size=8), min_size=10, max_size=10))
def test_a_quoted_row_reads_as_dbt_reads_it(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = tmp_path_factory.mktemp("agate") / "controls.csv"
    text = line(**dict(zip(COLUMNS, cells, strict=True)))
    path.write_text(f"{HEADER}\n{text}\n", encoding="utf-8")
    table = agate_helper.from_csv(path, text_columns=dict.fromkeys(COLUMNS, "string"))
    theirs = [(value or "").strip(" ") for value in table.rows[0]]
    ours = [[getattr(row, column) for column in COLUMNS] for row in read_controls(path).rows]
    assert (ours or [[""] * 10]) == [theirs]
