"""Preprocess queries: one SELECT over the new rows, judged without running it."""

import pytest

from harness.controls.findings import Code
from harness.sense.preprocess.policy import ALLOWED, REFUSED
from tests.support.controls_text import checked, line
from tests.support.hostile import REACHING_OUT, READING_MORE, WITH_VARIABLES, WITHIN


def codes(query: str, *may_read: str) -> list[Code]:
    found = checked(line(preprocess_query=query, upstream_key="load_date"), may_read=may_read)
    assert all(each.column in {"preprocess_query", "upstream_key"} for each in found)
    return [each.code for each in found]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM sensor_new_data WHERE load_date >= current_date() - 7",
        "SELECT * FROM sensor_new_data WHERE ?upstream_key >= current_date() - 7",
        "select * from SENSOR_NEW_DATA where ?upstream_key > '?upstream_value'",
        "SELECT * FROM sensor_new_data WHERE ?upstream_key > ?upstream_value;",
        "SELECT 'is it new?' AS question FROM sensor_new_data",
        "with a as (select * from sensor_new_data) select * from a -- last week",
        "SELECT a:b.c, x::date FROM sensor_new_data LATERAL VIEW explode(items) t AS x",
        "FROM sensor_new_data SELECT *",
        "(select a from sensor_new_data) union all (select b from sensor_new_data)",
    ],
)
def test_a_single_select_over_the_new_rows_is_allowed(query: str) -> None:
    assert codes(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM sensor_new_data WHERE",
        "SELEC * FROM sensor_new_data",
        "SELECT * FROM sensor_new_data WHERE a = 'open",
        "SELECT count( FROM sensor_new_data",
    ],
)
def test_a_query_that_does_not_parse_is_found(query: str) -> None:
    assert codes(query)[0] in {Code.QUERY_SYNTAX, Code.QUERY_NOT_ONE_SELECT}


def test_a_syntax_error_names_the_place() -> None:
    (found,) = checked(line(preprocess_query="SELECT * FRM sensor_new_data WHERE"))
    assert (found.code, "near 'sensor_new_data'" in found.message) == (Code.QUERY_SYNTAX, True)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE sensor_new_data",
        "INSERT INTO x SELECT * FROM sensor_new_data",
        "WITH a AS (SELECT 1) INSERT INTO x SELECT * FROM sensor_new_data",
        "SELECT * FROM sensor_new_data; DROP TABLE x",
        "EXPLAIN SELECT * FROM sensor_new_data",
        "VALUES (1)",
        "-- nothing but a comment",
        ";",
    ],
)
def test_a_query_that_is_not_a_single_select_is_found(query: str) -> None:
    assert codes(query) == [Code.QUERY_NOT_ONE_SELECT]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'sensor_new_data'",
        "WITH sensor_new_data AS (SELECT 1 AS a) SELECT * FROM sensor_new_data",
    ],
)
def test_a_query_that_does_not_read_the_new_rows_is_found(query: str) -> None:
    assert codes(query) == [Code.QUERY_WITHOUT_NEW_DATA]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM sensor_new_data WHERE ?upstream_keys > 1",
        "SELECT * FROM sensor_new_data WHERE a > ?",
        "SELECT * FROM sensor_new_data WHERE a > :value",
    ],
)
def test_another_placeholder_is_found(query: str) -> None:
    assert codes(query) == [Code.QUERY_PLACEHOLDER]


def test_another_table_instead_of_the_new_rows_is_found_twice() -> None:
    assert codes("SELECT * FROM other.sensor_new_data") == [
        Code.QUERY_READS_MORE,
        Code.QUERY_WITHOUT_NEW_DATA,
    ]


@pytest.mark.parametrize("query", WITHIN)
def test_a_query_that_keeps_to_the_new_rows_is_allowed(query: str) -> None:
    assert codes(query) == []


@pytest.mark.parametrize("query", READING_MORE)
def test_a_query_that_reads_more_than_the_new_rows_is_found(query: str) -> None:
    assert set(codes(query)) & {Code.QUERY_READS_MORE, Code.QUERY_SYNTAX}


@pytest.mark.parametrize("query", REACHING_OUT)
def test_a_query_that_reaches_out_of_sql_is_found(query: str) -> None:
    assert set(codes(query)) & {Code.QUERY_FORBIDDEN, Code.QUERY_NOT_ONE_SELECT}


@pytest.mark.parametrize("query", WITH_VARIABLES)
def test_a_query_with_a_variable_of_the_process_is_found(query: str) -> None:
    assert codes(query) == [Code.QUERY_FORBIDDEN]


ANTI_JOIN = "SELECT * FROM sensor_new_data n LEFT ANTI JOIN Sales.`Seen` s ON n.id = s.id"


def test_a_table_that_the_configuration_names_may_be_read() -> None:
    assert codes(ANTI_JOIN) == [Code.QUERY_READS_MORE]
    assert codes(ANTI_JOIN, "sales.seen") == []


def test_a_table_is_allowed_by_its_whole_name_alone() -> None:
    assert codes(ANTI_JOIN, "main.sales.seen", "sales.seen_before") == [Code.QUERY_READS_MORE]


def test_a_table_that_may_be_read_is_no_reason_to_leave_the_new_rows_out() -> None:
    assert codes("SELECT * FROM sales.seen", "sales.seen") == [Code.QUERY_WITHOUT_NEW_DATA]


def test_the_sentence_names_the_table_and_the_setting() -> None:
    (found,) = checked(line(preprocess_query=ANTI_JOIN))
    assert found.message == (
        "the query reads 'sales.seen'; allowed are sensor_new_data and the tables that"
        " sensing.queries_may_read of heartbeat.yml names."
    )


def test_a_query_nested_without_end_is_found() -> None:
    query = "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " FROM sensor_new_data"
    assert codes(query) == [Code.QUERY_SYNTAX]


def test_no_function_is_both_allowed_and_refused() -> None:
    assert ALLOWED.isdisjoint(REFUSED)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_function_is_found(name: str) -> None:
    found = codes(f"SELECT {name}(a) FROM sensor_new_data")
    assert set(found) & {Code.QUERY_FORBIDDEN, Code.QUERY_SYNTAX}


def test_an_unknown_function_is_found_with_the_one_that_may_be_meant() -> None:
    (found,) = checked(line(preprocess_query="SELECT regexp_lke(a, 'b') FROM sensor_new_data"))
    assert found.message == (
        "the query calls 'regexp_lke', which is not among the allowed functions;"
        " perhaps regexp_like is meant."
    )
