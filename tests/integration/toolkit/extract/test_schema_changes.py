"""What becomes of bronze when the columns of a source change; Delta and plain tables alike."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from harness.toolkit.extract import api as appending
from harness.toolkit.extract.schema import apply as evolving
from tests.support.lake import LONG, Given, Lake, day, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()
BOTH = pytest.mark.parametrize("lake", ["delta", "parquet"], indirect=True)
STOP = extract.OnChange.STOP


@pytest.fixture
def lake(spark: "SparkSession", request: pytest.FixtureRequest) -> Iterator[Lake]:
    lake = Lake(spark, f"s{next(_NUMBERS)}", getattr(request, "param", "delta"))
    yield lake
    lake.drop()


def put(lake: Lake, number: int, sql: str, **options: object) -> extract.Extraction:
    """Extract the rows of a query on a day."""
    return lake.take(day(number), source=Given(sql), **options)


def told(done: extract.Extraction) -> list[str]:
    return [f"{each.kind}: {each.sentence}" for each in done.schema_changes]


def listed(lake: Lake) -> list[tuple[object, ...]]:
    rows = extract.schema_changes(lake.spark, lake.bronze).collect()
    return [tuple(row)[1:] for row in rows]


def bronze(lake: Lake, *columns: str) -> list[tuple[object, ...]]:
    rows = lake.spark.table(lake.bronze).orderBy("p_extracted_at", "id").selectExpr(*columns)
    return [tuple(row) for row in rows.collect()]


@LONG
@BOTH
def test_columns_come_and_go_in_any_case_and_order(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, 'a' as Name")
    put(lake, 2, "select 'b' as NAME, date'2026-03-01' as `born on`, 2 as ID")
    made = put(lake, 3, "select 3 as id, null as nothing")

    assert bronze(lake, "id", "Name", "cast(`born on` as string)") == [
        (1, "a", None),
        (2, "b", "2026-03-01"),
        (3, None, None),
    ]
    assert "nothing" not in lake.spark.table(lake.bronze).columns
    assert told(made) == [
        "missing_column: Name was string and is missing: filled with NULL",
        "missing_column: born on was date and is missing: filled with NULL",
    ]
    assert listed(lake) == [
        ("case", "Name", "Name", "NAME", "kept as bronze spells it"),
        ("order", "all columns", "id, name", "name, id", "kept in the order of bronze"),
        ("new_column", "born on", None, "date", "added"),
        ("case", "id", "id", "ID", "kept as bronze spells it"),
        ("missing_column", "Name", "string", None, "filled with NULL"),
        ("missing_column", "born on", "date", None, "filled with NULL"),
    ]


@LONG
@BOTH
def test_what_never_had_a_value_is_taken_once_it_has_one(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, null as a, named_struct('b', null) as s")
    put(lake, 2, "select 2 as id, 5 as a, named_struct('b', 'x') as s")

    assert bronze(lake, "id", "a", "s.b") == [(1, None, None), (2, 5, "x")]


@BOTH
def test_a_changed_type_keeps_what_was_and_what_came(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, 7 as amount")
    changed = put(
        lake,
        2,
        "select * from values (2, '8'), (3, '007'), (4, 'many'), (5, null) as t(id, amount)",
    )
    put(lake, 3, "select 6 as id, 9 as amount")
    again = put(lake, 4, "select 7 as id, 2.5d as amount")

    assert bronze(lake, "id", "amount", "amount_text") == [
        (1, 7, None),
        (2, 8, "8"),
        (3, None, "007"),
        (4, None, "many"),
        (5, None, None),
        (6, 9, None),
        (7, None, "2.5"),
    ]
    assert told(changed) == [
        "changed_type: amount was int and is string: kept as text in amount_text"
    ]
    assert told(again) == [
        "changed_type: amount was int and is double: kept as text in amount_text"
    ]
    everything = bronze(lake, "coalesce(amount_text, cast(amount as string))")
    assert everything == [("7",), ("8",), ("007",), ("many",), (None,), ("9",), ("2.5",)]


def test_a_delta_table_is_widened_in_place(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, cast(1.5 as decimal(4, 2)) as money, cast(0.5 as float) as part")
    put(lake, 2, "select 9007199254740993 as id, 12345.678 as money, 0.1d as part")
    put(lake, 3, "select 3 as id, 1Y as money, cast(0.25 as float) as part")

    assert lake.spark.table(lake.bronze).dtypes[:3] == [
        ("id", "bigint"),
        ("money", "decimal(8,3)"),
        ("part", "double"),
    ]
    assert bronze(lake, "id", "cast(money as string)", "part") == [
        (1, "1.500", 0.5),
        (9007199254740993, "12345.678", 0.1),
        (3, "1.000", 0.25),
    ]
    assert [row[0] for row in listed(lake)] == ["widened_type"] * 3


@LONG
def test_a_plain_table_gets_text_where_it_cannot_be_widened(spark: "SparkSession") -> None:
    lake = Lake(spark, f"s{next(_NUMBERS)}", "parquet")
    put(lake, 1, "select 1 as id, 7 as amount")
    put(lake, 2, "select * from values (2, 8L), (3, 9007199254740993L) as t(id, amount)")
    found = bronze(lake, "id", "amount", "amount_text")
    lake.drop()

    assert found == [(1, 7, None), (2, 8, "8"), (3, None, "9007199254740993")]


LINES = (
    "select {id} as id, named_struct('a', {id}{a}) as s, array(named_struct('price', {id}{l})) as"
    " `the lines`, map('k', named_struct('z', {id}{m})) as m"
)


def test_fields_are_added_and_widened_within_structs_arrays_and_maps(lake: Lake) -> None:
    put(lake, 1, LINES.format(id=1, a="", l="", m=""))
    made = put(lake, 2, LINES.format(id=2, a=", 'b c', 'new'", l="L, 'item', 'x'", m=", 'w', 5"))
    put(lake, 3, LINES.format(id=3, a="", l="", m=""))

    columns = ("to_json(s)", "to_json(`the lines`)", "to_json(m)")
    assert bronze(lake, *columns) == [
        ('{"a":1}', '[{"price":1}]', '{"k":{"z":1}}'),
        ('{"a":2,"b c":"new"}', '[{"price":2,"item":"x"}]', '{"k":{"z":2,"w":5}}'),
        ('{"a":3}', '[{"price":3}]', '{"k":{"z":3}}'),
    ]
    assert told(made) == [
        "new_field: s.b c was not there and is string: added",
        "new_field: the lines.element.item was not there and is string: added",
        "widened_type: the lines.element.price was int and is bigint: widened",
        "new_field: m.value.w was not there and is int: added",
    ]


@LONG
def test_a_plain_table_keeps_new_fields_as_json(spark: "SparkSession") -> None:
    lake = Lake(spark, f"s{next(_NUMBERS)}", "parquet")
    put(lake, 1, "select 1 as id, named_struct('a', 1) as s")
    put(lake, 2, "select 2 as id, named_struct('B', 'new', 'A', 2) as s")
    put(lake, 3, "select 3 as id, cast(null as struct<a: int, b: string>) as s")
    found = bronze(lake, "id", "s.a", "s_text")
    lake.drop()

    assert found == [(1, 1, None), (2, 2, '{"B":"new","A":2}'), (3, None, None)]


@LONG
@BOTH
def test_a_struct_that_becomes_text_and_text_that_becomes_a_struct_lose_nothing(
    lake: Lake,
) -> None:
    put(lake, 1, "select 1 as id, named_struct('a', 1) as s, 'x' as t")
    with zone(lake.spark, "UTC"):
        put(lake, 2, "select 2 as id, 'word' as s, named_struct('at', timestamp'2026-03-01T06:00:00Z', 'n', null) as t")  # fmt: skip

    assert bronze(lake, "to_json(s)", "s_text", "t") == [
        ('{"a":1}', None, "x"),
        (None, "word", '{"at":"2026-03-01T06:00:00.000Z","n":null}'),
    ]


@LONG
def test_an_instant_as_text_is_the_same_in_every_zone(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, 5 as at, 6 as raw")
    # Half past two in Berlin, the second time that night.
    sql = "select 2 as id, timestamp'2026-10-25T01:30:00.000005Z' as at, unhex('61FF') as raw"
    with zone(lake.spark, "Europe/Berlin"):
        put(lake, 2, sql)

    assert bronze(lake, "at_text", "raw_text")[1] == ("2026-10-25 01:30:00.000005Z", "Yf8=")


@BOTH
def test_a_rule_set_to_stop_leaves_everything_as_it_was(lake: Lake) -> None:
    put(lake, 1, "select 1 as id, 7 as amount")
    before = lake.spark.table(lake.bronze).schema
    rules = extract.SchemaRules(changed_type=STOP, new_column=STOP)

    with pytest.raises(ExtractError, match="stop at changed_type, new_column: ") as raised:
        put(lake, 2, "select 2 as id, 'x' as amount, 1 as more", schema=rules)
    assert "amount was int and is string" in str(raised.value)
    assert "more was not there and is int" in str(raised.value)
    assert (lake.spark.table(lake.bronze).schema, lake.partitions()) == (before, [day(1)])
    assert listed(lake) == []
    assert put(lake, 2, "select 2 as id", schema=rules).rows == 1


@BOTH
def test_a_process_killed_between_the_columns_and_the_rows_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lake, 1, "select 1 as id, 7 as amount")

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    for module, step in ((evolving, "_statement"), (appending, "write")):
        with monkeypatch.context() as patched:
            patched.setattr(module, step, die)
            with pytest.raises(Killed):
                put(lake, 2, "select 2 as id, 'x' as amount")
    put(lake, 2, "select 2 as id, 'x' as amount")

    assert bronze(lake, "id", "amount", "amount_text") == [(1, 7, None), (2, None, "x")]
    assert [row[:2] for row in listed(lake)] == [("changed_type", "amount")]


@LONG
def test_the_column_that_is_followed_must_not_change_its_kind(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.create("id bigint, status string, updated_at string")

    with pytest.raises(ConfigurationError, match="updated_at is of the kind text, and in bronze_"):
        lake.take(day(2))
