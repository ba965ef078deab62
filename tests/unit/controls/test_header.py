"""The header of the controls CSV: ten columns, their names, their order."""

from harness.controls.findings import Code
from harness.controls.header import COLUMNS
from tests.support.controls_text import HEADER, checked, line


def test_an_empty_file_has_no_header() -> None:
    assert [each.code for each in checked(header="")] == [Code.HEADER_MISSING]


def test_a_row_in_place_of_the_header_is_no_header() -> None:
    assert [each.code for each in checked(line(), header=line())] == [Code.HEADER_MISSING]


def test_a_missing_column_is_found() -> None:
    header = HEADER.replace(",asset_description", "")
    row = "delta_table,a.b,batch,,,1,n,PAUSED,TRUE"
    found = checked(row, header=header)
    assert [(each.code, each.column, each.line) for each in found] == [
        (Code.COLUMN_MISSING, "asset_description", 1)
    ]


def test_an_extra_column_is_found() -> None:
    found = checked(line() + ",x", header=HEADER + ",owner")
    assert [each.code for each in found] == [Code.COLUMN_UNKNOWN]
    assert "'owner'" in found[0].message


def test_a_misspelled_column_is_reported_with_the_one_that_is_meant() -> None:
    found = checked(line(), header=HEADER.replace("dependency_flag", "dependancy_flag"))
    assert [each.code for each in found] == [Code.COLUMN_UNKNOWN]
    assert "did you mean dependency_flag?" in found[0].message


def test_a_column_in_upper_case_is_misspelled_because_dbt_would_type_it_otherwise() -> None:
    found = checked(line(), header=HEADER.upper())
    assert [each.code for each in found] == [Code.COLUMN_UNKNOWN] * len(COLUMNS)


def test_the_cells_under_a_misspelled_column_are_still_judged() -> None:
    header = HEADER.replace("job_state", "job_status")
    found = checked(line(job_state="HALTED"), header=header)
    assert [each.code for each in found] == [Code.COLUMN_UNKNOWN, Code.JOB_STATE]


def test_a_repeated_column_is_found() -> None:
    found = checked(line() + ",x", header=HEADER + ",job_state")
    assert (Code.COLUMN_REPEATED, "job_state") in [(each.code, each.column) for each in found]


def test_another_order_is_found_and_the_right_one_is_shown() -> None:
    header = ",".join(("sensor_id", "sensor_source", *COLUMNS[2:]))
    row = "a.b,delta_table,batch,,,,1,n,PAUSED,TRUE"
    found = checked(row, header=header)
    assert [each.code for each in found] == [Code.COLUMN_ORDER]
    assert HEADER in found[0].message
