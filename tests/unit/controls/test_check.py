"""What only several rows, or the rows in force before, can show; and how findings are reported."""

from dataclasses import dataclass

import pytest

from harness.controls.findings import Code, Severity, findings_as_json, has_errors, render_findings
from tests.support.controls_text import HEADER, checked, line


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """A configuration without a job's command, or without any connection to Kafka."""

    job_id: int | None = None

    def lacks_command(self, job_id: int) -> bool:
        return job_id == self.job_id

    def lacks_connection(self, source: str, sensor_id: str) -> str | None:
        return "connections.kafka.shop" if source == "kafka" else None

    def catalog_without_files(self, source: str, sensor_id: str) -> str | None:
        return "prod-eu" if source == "hive_table" and sensor_id.count(".") == 1 else None


def test_two_rows_with_one_sensors_id_are_found_and_both_lines_are_named() -> None:
    (found,) = checked(line(), line(sensor_id="a.b"), line())
    assert (found.code, found.line, found.severity) == (Code.DUPLICATE_ROW, 4, Severity.ERROR)
    assert "line 2" in found.message


def test_two_upstreams_that_get_the_same_sensors_id_are_a_duplicate() -> None:
    first = line(sensor_source="trigger_file", sensor_id="sales_orders")
    (found,) = checked(first, line(sensor_id="sales.orders"))
    assert (found.code, "sales_orders_111" in found.message) == (Code.DUPLICATE_ROW, True)


def test_leading_zeros_do_not_make_another_job() -> None:
    (found,) = checked(line(), line(trigger_job_id="00111"))
    assert found.code is Code.DUPLICATE_ROW


def test_one_upstream_for_two_jobs_is_no_duplicate() -> None:
    assert checked(line(), line(trigger_job_id="112")) == []


def test_one_job_id_under_two_names_is_found() -> None:
    rows = [line(), line(sensor_id="a.b"), line(sensor_id="a.c", trigger_job_name="profit")]
    (found,) = checked(*rows)
    assert (found.code, found.line) == (Code.JOB_WITH_TWO_NAMES, 4)
    assert "'revenue' on line 2" in found.message


def test_a_job_with_mixed_states_is_a_warning() -> None:
    (found,) = checked(line(), line(sensor_id="a.b", job_state="PAUSED"))
    assert (found.code, found.severity) == (Code.JOB_WITH_MIXED_STATES, Severity.WARNING)
    assert "PAUSED on line 3 and UNPAUSED on line 2" in found.message


def test_a_job_with_only_soft_dependencies_is_a_warning() -> None:
    rows = [line(dependency_flag="false"), line(sensor_id="a.b", dependency_flag="FALSE")]
    (found,) = checked(*rows)
    assert (found.code, found.line, found.severity) == (Code.JOB_ONLY_SOFT, 2, Severity.WARNING)


def test_a_job_that_has_nothing_to_run_is_a_warning_on_its_first_line() -> None:
    rows = [line(), line(sensor_id="a.b"), line(trigger_job_id="112", trigger_job_name="stock")]
    (found,) = checked(*rows, configured=Lacking(job_id=111))
    assert (found.code, found.line) == (Code.JOB_WITHOUT_COMMAND, 2)
    assert found.severity is Severity.WARNING
    assert "jobs.local.commands" in found.message


def test_a_connection_that_is_missing_is_a_warning_on_the_first_row_that_needs_it() -> None:
    rows = [
        line(),
        *(line(sensor_source="kafka", sensor_id=f"shop: {topic}") for topic in ("a", "b")),
    ]
    (found,) = checked(*rows, configured=Lacking())
    assert (found.code, found.line) == (Code.CONNECTION_MISSING, 3)
    assert found.severity is Severity.WARNING
    assert "connections.kafka.shop" in found.message


def test_a_table_whose_catalog_lists_no_files_is_a_warning_with_what_to_do() -> None:
    rows = [
        line(),
        line(sensor_source="hive_table", sensor_id="hive_metastore.sales.stock"),
        line(sensor_source="hive_table", sensor_id="sales.returns"),
    ]
    (found,) = checked(*rows, configured=Lacking())
    assert (found.code, found.line) == (Code.CATALOG_WITHOUT_FILES, 4)
    assert found.severity is Severity.WARNING
    assert found.message.startswith("'sales.returns' is a table of the catalog prod-eu, which")
    assert "name hive_metastore.sales.returns if it is there" in found.message


def test_an_empty_flag_is_a_hard_dependency() -> None:
    rows = [line(dependency_flag=""), line(sensor_id="a.b", dependency_flag="FALSE")]
    assert checked(*rows) == []


def test_a_file_without_rows_is_a_warning() -> None:
    (found,) = checked()
    assert (found.code, found.severity) == (Code.NO_ROWS, Severity.WARNING)


def keys(count: int) -> list[str]:
    return [f"sales_table{number}_111" for number in range(count)]


def rows(count: int) -> list[str]:
    return [line(sensor_id=f"sales.table{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"sensor_source": "delta_tabel"},
            "unknown source 'delta_tabel'; did you mean delta_table?",
        ),
        (
            {"sensor_id": "or/ders"},
            "'or/ders' is not the name of a Delta table; write schema.table,",
        ),
        ({"trigger_job_id": "abc"}, "'abc' is not a job id; write a positive whole number"),
    ],
)
def test_a_wrong_cell_is_named_with_what_is_right(changed: dict[str, str], message: str) -> None:
    (found,) = checked(line(**changed))
    assert found.message.startswith(message)


def test_a_mass_removal_of_rows_requires_yes() -> None:
    (found,) = checked(*rows(4), previous_keys=keys(10))
    assert (found.code, found.severity) == (Code.MASS_REMOVAL, Severity.ERROR)
    assert "6 of the 10 rows" in found.message
    assert "--yes" in found.message


def test_five_of_six_rows_are_a_mass_removal() -> None:
    (found,) = checked(*rows(1), previous_keys=keys(6))
    assert found.code is Code.MASS_REMOVAL


def test_findings_of_several_rows_stand_between_those_of_single_rows() -> None:
    found = checked(line(), line(), line(sensor_id="a.b", job_state="x"))
    assert [(each.line, each.code) for each in found] == [
        (3, Code.DUPLICATE_ROW),
        (4, Code.JOB_STATE),
    ]


def test_a_mass_removal_that_is_meant_is_no_finding() -> None:
    assert checked(*rows(4), previous_keys=keys(10), removal_is_meant=True) == []


@pytest.mark.parametrize(("left", "before"), [(5, 10), (1, 5), (100, 10)])
def test_half_of_the_rows_or_fewer_than_five_may_go(left: int, before: int) -> None:
    assert checked(*rows(left), previous_keys=keys(before)) == []


def test_a_first_file_removes_nothing() -> None:
    assert checked(*rows(1), previous_keys=None) == []


def test_the_same_rows_in_another_order_remove_nothing() -> None:
    assert checked(*reversed(rows(10)), previous_keys=keys(10)) == []


def test_warnings_alone_are_no_errors() -> None:
    assert not has_errors(checked(line(dependency_flag="FALSE")))


def test_a_finding_is_reported_with_file_line_severity_and_column() -> None:
    (reported,) = render_findings(checked(line(job_state="x")), "controls.csv")
    assert reported.startswith("controls.csv:2: error: job_state: 'x' is not allowed;")


def test_colour_is_only_there_when_it_is_requested() -> None:
    found = checked(line(job_state="x"))
    plain, coloured = (render_findings(found, "f", colour=each)[0] for each in (False, True))
    assert ("\x1b" in plain, "\x1b[31merror\x1b[0m" in coloured) == (False, True)


def test_a_finding_is_an_object_for_scripts() -> None:
    (reported,) = findings_as_json(checked(line(job_state="x")))
    assert (reported["code"], reported["line"], reported["column"]) == ("job_state", 2, "job_state")


def test_one_upstream_query_is_parsed_once_however_many_rows_have_it() -> None:
    from harness.controls.cells import RowChecks

    checks = RowChecks(columns=HEADER.split(","))
    parsed = checks._query_problems.cache_info
    query = "SELECT * FROM sensor_new_data"
    from pathlib import Path

    from harness.controls.parse import parse_controls

    lines = [line(sensor_id=f"a.b{number}", preprocess_query=query) for number in range(50)]
    for row in parse_controls("\n".join([HEADER, *lines]).encode(), Path("c")).rows:
        list(checks.findings(row))
    assert parsed().misses == 1


def test_of_a_hundred_thousand_rows_every_finding_is_reported_the_last_line_included() -> None:
    rows = [line(sensor_id=f"a.b{number}") for number in range(100_000)]
    rows[0] = line(sensor_source="delta_tabel")
    rows[-1] = line(sensor_id="the.last", job_state="x")

    found = checked(*rows)

    assert [(each.code, each.line) for each in found] == [
        (Code.SOURCE_UNKNOWN, 2),
        (Code.JOB_STATE, 100_001),
    ]
