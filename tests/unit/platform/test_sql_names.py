"""A check of the controls and a probe of an upstream agree on what names a column."""

import pytest

from harness.controls.identifiers import upstream_key_problem
from harness.errors import ProbeFailedError
from harness.platform.sql_names import in_sql, is_table, parts_of, table_key
from harness.sense.preprocess.query import rendered
from harness.store.work_lists import Upstream

KEYS = (
    "load_date",
    "LOAD_DATE",
    "_x9",
    "payload.loaded_at",
    "`load date`",
    "payload.`loaded at`",
    "`a.b`.c",
    "größe",
    "`; drop table x`",
    "load date",
    "1x",
    "a.",
    ".a",
    "a..b",
    "a; drop table b",
    "max(x)",
    "`",
    "``",
    "`a",
    "`a`b",
    "`a``b`",
    "a\n",
    "1=1 or x",
)


def can_be_rendered(key: str) -> bool:
    upstream = Upstream(
        upstream_id="u",
        source="delta_table",
        sensor_id="a.b",
        read_type="batch",
        upstream_key=key,
        preprocess_query="select * from sensor_new_data where ?upstream_key > 1",
    )
    try:
        return rendered(upstream) is not None
    except ProbeFailedError:
        return False


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_passes_the_check_passes_the_probe_and_no_other_does(key: str) -> None:
    assert can_be_rendered(key) == (upstream_key_problem(key) is None)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("orders", "`orders`"),
        ("sales.orders", "`sales`.`orders`"),
        ("`my-db`.`odd.name`", "`my-db`.`odd.name`"),
        ("x; drop table y", "`x; drop table y`"),
    ],
)
def test_each_part_of_a_name_stands_in_backticks(name: str, spelled: str) -> None:
    assert in_sql(name) == spelled


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Sales.Orders", "sales.orders"),
        ("`sales`.`Orders`", "sales.orders"),
        (" spark_catalog.sales.orders ", "sales.orders"),
        ("main.sales.orders", "main.sales.orders"),
        ("spark_catalog.orders", "spark_catalog.orders"),
        ("`a.b`.c", "`a.b`.c"),
        ("/lake/Orders/", "/lake/Orders"),
        ("file:/lake/Orders", "/lake/Orders"),
        ("file:///lake/Orders", "/lake/Orders"),
        ("delta.`/lake/Orders`", "/lake/Orders"),
        ("delta.`s3://lake/Orders`", "s3://lake/Orders"),
        ("s3://lake/Orders", "s3://lake/Orders"),
        ("delta.orders", "delta.orders"),
        ("  ", ""),
    ],
)
def test_spellings_of_one_table_have_one_key(name: str, key: str) -> None:
    assert table_key(name) == key


def test_a_backtick_between_backticks_is_written_twice() -> None:
    assert parts_of("`prod-eu`.sales.`a``b.c`") == ("prod-eu", "sales", "a`b.c")
    assert in_sql("prod-eu.sales.`a``b.c`") == "`prod-eu`.`sales`.`a``b.c`"
    assert table_key("Lake.Sales.`a``b`") == "lake.sales.`a``b`"
    assert is_table("lake.sales.`a``b`")
