"""One row of the controls CSV at a time: every cell that is wrong is a finding."""

import pytest

from harness.controls.findings import Code, Severity
from tests.support.controls_text import checked, line

BIGINT = 9223372036854775807


def codes(*lines: str) -> list[tuple[Code, str | None, int]]:
    return [(each.code, each.column, each.line) for each in checked(*lines)]


@pytest.mark.parametrize(
    "cells",
    [
        {"sensor_source": " DELTA_TABLE "},
        {"sensor_read_type": "Batch"},
        {"job_state": "unpaused "},
        {"job_state": "paused"},
        {"dependency_flag": " true"},
        {"dependency_flag": ""},
    ],
)
def test_words_are_matched_whatever_their_case_and_padding(cells: dict[str, str]) -> None:
    assert checked(line(**cells)) == []


def test_an_unknown_source_is_found_and_the_legal_ones_are_listed() -> None:
    (found,) = checked(line(sensor_source="oracle"))
    assert (found.code, found.column, found.line) == (Code.SOURCE_UNKNOWN, "sensor_source", 2)
    assert "allowed are delta_table, lmu_delta_table" in found.message


def test_a_misspelled_source_names_the_one_that_is_meant() -> None:
    (found,) = checked(line(sensor_source="delta_tabel"))
    assert "did you mean delta_table?" in found.message


def test_a_missing_source_is_found() -> None:
    assert codes(line(sensor_source="")) == [(Code.SOURCE_UNKNOWN, "sensor_source", 2)]


def test_a_missing_sensor_id_is_found() -> None:
    assert codes(line(sensor_id=" ")) == [(Code.SENSOR_ID_MISSING, "sensor_id", 2)]


@pytest.mark.parametrize(
    "sensor_id",
    [
        "sales.orders",
        "main.sales.orders",
        "`my-db`.`odd.name`",
        "/data/orders",
        "file:/data/orders",
        "abfss://box@account.dfs.core.windows.net/orders",
        "s3://bucket/orders",
    ],
)
@pytest.mark.parametrize("source", ["delta_table", "lmu_delta_table"])
def test_a_delta_table_is_named_by_two_or_three_parts_or_a_path(
    source: str, sensor_id: str
) -> None:
    assert checked(line(sensor_source=source, sensor_id=sensor_id)) == []


@pytest.mark.parametrize(
    "sensor_id",
    ["shop:orders", "a.b.c.d", "sales.", "data/orders", "/", "sales.or ders", "a.b; drop table x"],
)
def test_another_name_of_a_delta_table_is_found(sensor_id: str) -> None:
    assert codes(line(sensor_id=sensor_id)) == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize("sensor_id", ["orders", "`odd name`"])
@pytest.mark.parametrize("source", ["delta_table", "lmu_delta_table"])
def test_a_delta_table_without_a_schema_is_a_warning(source: str, sensor_id: str) -> None:
    (found,) = checked(line(sensor_source=source, sensor_id=sensor_id))
    assert (found.code, found.line) == (Code.SENSOR_ID_WITHOUT_SCHEMA, 2)
    assert found.severity is Severity.WARNING
    assert f"write schema.{sensor_id}" in found.message


@pytest.mark.parametrize(
    "sensor_id",
    ["lake.sales.orders", "lake.sales.eu.`odd name`", "/lake/sales/orders", "s3://bucket/orders"],
)
def test_an_iceberg_table_is_named_by_its_catalog_or_a_path(sensor_id: str) -> None:
    assert checked(line(sensor_source="iceberg_table", sensor_id=sensor_id)) == []


@pytest.mark.parametrize(
    "sensor_id", ["orders", "sales.orders", "lake.sales.", "/", "a/b", "a.b.c d"]
)
def test_another_name_of_an_iceberg_table_is_found(sensor_id: str) -> None:
    (found,) = checked(line(sensor_source="iceberg_table", sensor_id=sensor_id))
    assert found.code == Code.SENSOR_ID_SHAPE
    assert "allowed are catalog.schema.table" in found.message


@pytest.mark.parametrize(
    "sensor_id", ["sales.orders", "spark_catalog.sales.`odd name`", "hive_metastore.sales.orders"]
)
def test_a_hive_table_is_named_by_its_schema(sensor_id: str) -> None:
    assert checked(line(sensor_source="hive_table", sensor_id=sensor_id)) == []


@pytest.mark.parametrize("sensor_id", ["orders", "main.sales.orders", "/lake/orders", "sales."])
def test_another_name_of_a_hive_table_is_found(sensor_id: str) -> None:
    (found,) = checked(line(sensor_source="hive_table", sensor_id=sensor_id))
    assert found.code == Code.SENSOR_ID_SHAPE
    assert "allowed are schema.table and hive_metastore.schema.table" in found.message
    assert "is sensed as delta_table or iceberg_table" in found.message


@pytest.mark.parametrize("sensor_id", ["my_trigger", "sales/month end", "a..b/", "über"])
def test_a_trigger_folder_is_a_name_below_the_root(sensor_id: str) -> None:
    assert checked(line(sensor_source="trigger_file", sensor_id=sensor_id)) == []


@pytest.mark.parametrize("sensor_id", ["..", "a/../../b", "/etc", ".", "a//b", "s3://b/x", "c:\\x"])
def test_a_trigger_folder_outside_the_root_is_found(sensor_id: str) -> None:
    found = codes(line(sensor_source="trigger_file", sensor_id=sensor_id))
    assert found == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize(
    "sensor_id",
    [
        "/data/in",
        "/data/in/2025-*/orders_?.csv",
        "/data/in/[ab]*",
        "/data/in/_SUCCESS",
        "s3a://bucket/in/*.json",
        "file:///data/in",
        "dbfs:/Volumes/in",
        "/Volumes/a/b/my files/*.csv",
    ],
)
def test_files_are_named_by_an_absolute_path_or_a_uri(sensor_id: str) -> None:
    assert checked(line(sensor_source="file", sensor_id=sensor_id)) == []


@pytest.mark.parametrize(
    "sensor_id",
    ["in/*.csv", "*.csv", "/", "sales.orders", "s3a://*/in", "/in/{a,b}", "/in/**/x", "s3a://"],
)
def test_another_name_of_files_is_found(sensor_id: str) -> None:
    found = codes(line(sensor_source="file", sensor_id=sensor_id))
    assert found == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize(
    "sensor_id",
    [
        "sales.sensors: sales_orders_111",
        "main.sales.sensors:sales_orders_111",
        "sales.sensors: sales.orders",
        "sales.sensors: s3://bucket/orders",
        "/data/sales/sensors: sales_orders_111",
        "s3a://bucket/sensors: sales_orders_111",
    ],
)
def test_an_upstream_sensor_is_named_by_its_table_and_itself(sensor_id: str) -> None:
    assert checked(line(sensor_source="delta_upstream_sensor", sensor_id=sensor_id)) == []


@pytest.mark.parametrize(
    "sensor_id",
    ["sales.sensors", "sensors: orders", "sales.sensors: ", ": orders", "data/sensors: orders"],
)
def test_another_name_of_an_upstream_sensor_is_found(sensor_id: str) -> None:
    found = codes(line(sensor_source="delta_upstream_sensor", sensor_id=sensor_id))
    assert found == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


def test_a_topic_stands_behind_its_product() -> None:
    assert checked(line(sensor_source="kafka", sensor_id="my_product: my.topic")) == []


@pytest.mark.parametrize(
    "sensor_id", ["my.topic", "my_product:", "p: my topic", "p: a: b", "p: .."]
)
def test_another_name_of_a_topic_is_found(sensor_id: str) -> None:
    found = codes(line(sensor_source="kafka", sensor_id=sensor_id))
    assert found == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize("read_type", ["", "stream"])
def test_another_read_type_is_found(read_type: str) -> None:
    found = codes(line(sensor_read_type=read_type))
    assert found == [(Code.READ_TYPE, "sensor_read_type", 2)]


@pytest.mark.parametrize("state", ["", "RUNNING", "\tPAUSED"])
def test_another_job_state_is_found(state: str) -> None:
    found = {code for code, _, _ in codes(line(job_state=state))}
    assert found & {Code.JOB_STATE, Code.CONTROL_CHARACTER}


def test_a_misspelled_job_state_names_the_one_that_is_meant() -> None:
    (found,) = checked(line(job_state="UNPAUSE"))
    assert "did you mean UNPAUSED?" in found.message


@pytest.mark.parametrize("flag", ["YES", "1", "HARD"])
def test_another_dependency_flag_is_found(flag: str) -> None:
    assert codes(line(dependency_flag=flag)) == [(Code.DEPENDENCY_FLAG, "dependency_flag", 2)]


def test_a_missing_job_id_is_found() -> None:
    assert codes(line(trigger_job_id="")) == [(Code.JOB_ID_MISSING, "trigger_job_id", 2)]


@pytest.mark.parametrize(
    "job_id", ["my-job", "1.0", "1e9", "-1", "0", "1 2", "٣", str(BIGINT + 1), "9" * 5000]
)
def test_a_job_id_that_is_no_bigint_is_found(job_id: str) -> None:
    assert codes(line(trigger_job_id=job_id)) == [(Code.JOB_ID_NUMBER, "trigger_job_id", 2)]


@pytest.mark.parametrize("job_id", ["1", "0012", "9007199254740993", str(BIGINT)])
def test_every_bigint_from_one_is_a_job_id(job_id: str) -> None:
    assert checked(line(trigger_job_id=job_id)) == []


def test_a_job_without_a_name_is_a_warning() -> None:
    (found,) = checked(line(trigger_job_name=""))
    assert (found.code, found.severity) == (Code.JOB_NAME_MISSING, Severity.WARNING)


def test_a_table_of_a_database_needs_an_upstream_key() -> None:
    (found,) = checked(line(sensor_source="jdbc", sensor_id="shop: sales.orders"))
    assert (found.code, found.column) == (Code.UPSTREAM_KEY_MISSING, "upstream_key")


@pytest.mark.parametrize("key", ["", "LOAD_DATE"])
@pytest.mark.parametrize("source", ["sap_bw", "sap_b4"])
def test_a_process_chain_needs_no_upstream_key(source: str, key: str) -> None:
    row = line(sensor_source=source, sensor_id="SAP_CHAIN_ID_SAP_TABLE", upstream_key=key)
    assert checked(row) == []


@pytest.mark.parametrize(
    "sensor_id",
    [
        "shop: orders",
        "shop:sales.orders",
        "my-shop: db.sales.orders",
        'shop: "Sales"."my ""odd"" table"',
        "shop: /BIC/AORDERS00",
        "shop: (select * from orders where state = ')' and id in (1, 2))",
        "shop: (with a as (select 1 as id) select * from a)",
    ],
)
def test_a_connection_with_a_table_or_a_query_is_legal(sensor_id: str) -> None:
    assert checked(line(sensor_source="jdbc", sensor_id=sensor_id, upstream_key="id")) == []


@pytest.mark.parametrize(
    "sensor_id",
    [
        "orders",
        "shop:",
        "shop: ",
        ": orders",
        "shop: a b",
        "shop: a..b",
        "shop: a.b.c.d",
        "shop: orders; drop table orders",
        "shop: orders -- x",
        'shop: "orders',
        "shop: (delete from orders)",
        "shop: (select 1) union (select 2)",
        "shop: (select 1)) x; drop table y; (select (2)",
        "shop: (select 1 -- )",
        "shop: (select 1 /* ) */)",
        "shop: (select 1; select 2)",
        "shop: (select 'its)",
        "shop: (select '\\') or ('1')",
        "shop: (select 1",
    ],
)
def test_what_names_nothing_in_a_database_is_found(sensor_id: str) -> None:
    row = line(sensor_source="jdbc", sensor_id=sensor_id, upstream_key="id")
    assert codes(row) == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize("sensor_id", ["MY CHAIN", "A,B"])
def test_what_is_no_chain_id_is_found(sensor_id: str) -> None:
    row = line(sensor_source="sap_bw", sensor_id=f'"{sensor_id}"')
    assert codes(row) == [(Code.SENSOR_ID_SHAPE, "sensor_id", 2)]


@pytest.mark.parametrize("placeholder", ["?upstream_key", "'?upstream_value'"])
def test_a_query_with_a_placeholder_needs_an_upstream_key(placeholder: str) -> None:
    query = f"SELECT * FROM sensor_new_data WHERE {placeholder} > '2025'"
    assert codes(line(preprocess_query=query)) == [(Code.UPSTREAM_KEY_MISSING, "upstream_key", 2)]


@pytest.mark.parametrize("query", ["SELECT * FROM sensor_new_data WHERE ?upstream_key > 1", "x"])
def test_a_query_on_a_trigger_file_is_found_and_nothing_else_about_it(query: str) -> None:
    row = line(sensor_source="Trigger_File", sensor_id="my_trigger", preprocess_query=query)
    (found,) = checked(row)
    assert (found.code, found.column) == (Code.QUERY_WITHOUT_ROWS, "preprocess_query")
    assert found.severity is Severity.ERROR


def test_an_upstream_key_on_a_trigger_file_is_a_warning_since_it_plays_no_part() -> None:
    (found,) = checked(
        line(sensor_source="trigger_file", sensor_id="my_trigger", upstream_key="load_date")
    )
    assert (found.code, found.column) == (Code.UPSTREAM_KEY_UNUSED, "upstream_key")
    assert found.severity is Severity.WARNING


def test_a_manual_upload_needs_no_upstream_key() -> None:
    assert checked(line(sensor_source="lmu_delta_table", sensor_read_type="batch")) == []


@pytest.mark.parametrize("key", ["load_date", "payload.loaded_at", "`load date`", "größe"])
def test_an_upstream_key_is_a_column_name(key: str) -> None:
    assert checked(line(upstream_key=key)) == []


@pytest.mark.parametrize("key", ["load date", "1x", "a; drop table b", "max(x)", "a."])
def test_an_upstream_key_that_is_no_column_name_is_found(key: str) -> None:
    assert codes(line(upstream_key=key)) == [(Code.UPSTREAM_KEY_SHAPE, "upstream_key", 2)]


def test_a_control_character_is_found_and_shown_escaped() -> None:
    (found,) = checked(line(trigger_job_name="rev\x1b[31menue"))
    assert (found.code, found.column) == (Code.CONTROL_CHARACTER, "trigger_job_name")
    assert "\\x1b[31m" in found.message
    assert "\x1b" not in found.message


def test_a_text_that_turns_the_direction_of_reading_is_found_in_an_id() -> None:
    (found,) = checked(line(sensor_id="sales.\u202eorders"))
    assert (found.code, "\\u202e" in found.message) == (Code.CONTROL_CHARACTER, True)


def test_line_breaks_and_emoji_belong_in_a_description() -> None:
    assert checked(line(asset_description="Orders\n\tof 👩‍🔬")) == []


def test_all_findings_of_a_row_come_at_once() -> None:
    found = codes(line(sensor_source="x", sensor_read_type="x", job_state="x", dependency_flag="x"))
    assert found == [
        (Code.SOURCE_UNKNOWN, "sensor_source", 2),
        (Code.READ_TYPE, "sensor_read_type", 2),
        (Code.JOB_STATE, "job_state", 2),
        (Code.DEPENDENCY_FLAG, "dependency_flag", 2),
    ]


def test_findings_are_sorted_by_line() -> None:
    found = checked(line(), line(sensor_id="a.b", job_state="x"), line(sensor_id="a."), line())
    assert [(each.line, each.code) for each in found] == [
        (3, Code.JOB_STATE),
        (4, Code.SENSOR_ID_SHAPE),
        (5, Code.DUPLICATE_ROW),
    ]
