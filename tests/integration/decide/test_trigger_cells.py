"""What the check of the triggers lets pass, Spark renders: the models themselves, over made-up cells."""

import calendar
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controls.triggers.cells import problems_of
from harness.controls.triggers.parse import COLUMNS, TriggerRow
from harness.controls.triggers.time_zones import ZONES
from harness.events.partition import level, levels_from, parts_of, plain_text
from tests.integration.decide.conftest import SCHEMA, Dbt
from tests.support.local_rows import frame_of_rows
from tests.support.triggers_text import DAILY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOT = datetime(2026, 3, 1, 14, 5, 9, tzinfo=UTC)
#: In the order in which each reads those before it.
MODELS = (
    "stg_event_triggers",
    "int_trigger_conditions",
    "int_trigger_faults",
    "int_trigger_partitions",
    "int_event_partitions",
)
EVENT = "upstream_id string, event_id string, change_id string, `table` string, tick_number bigint,"
EVENT += " partition array<string>, tags map<string, string>, operation_type string,"
EVENT += " table_format string"

printable = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
letters = st.sampled_from("yMdDHmsT-_/.:, 0'[]{}#YhaZ年ü\"")
patterns = st.text(letters | printable, min_size=1, max_size=9)
right = st.lists(
    st.sampled_from(["yyyy", "MM", "dd", "HH", "mm", "ss", "DDD", "D", "MMM", "T", "-", ":", "年"]),
    min_size=1,
    max_size=6,
).map("".join)
functions = st.builds(
    "{{{}{}{}}}".format,
    st.sampled_from(["", "-1 day ", "+3 hours ", "-999999 months ", "1234567 days ", "x day "]),
    patterns | right | right.map("'{}'".format),
    st.sampled_from(["", " UTC", " Europe/Berlin", " America/Coyhaique", " EST", " Mars/Base"]),
)
values = st.none() | st.booleans() | st.integers() | st.text(printable, max_size=8)
values |= st.text(st.sampled_from('";[]\\,{} 7'), max_size=6)


def sampled(cells: st.SearchStrategy[object], count: int) -> list[object]:
    """Return made-up cells, the same in each run, for one query."""
    found = []

    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(cells)
    def keep(cell: object) -> None:
        found.append(cell)

    keep()
    return found


def trigger(number: int, **cells: str) -> TriggerRow:
    content = dict.fromkeys(COLUMNS, "") | DAILY | cells
    return TriggerRow(line=2, **content | {"trigger_id": f"t{number}"})


def is_right(row: TriggerRow) -> bool:
    return not list(problems_of(row))


@dataclass
class Models:
    """The models of the triggers over views of this test, without a table."""

    spark: "SparkSession"
    code: Mapping[str, str]

    def view(self, name: str, rows: Iterable[Sequence[object]], shape: str) -> None:
        frame_of_rows(self.spark, rows, shape).createOrReplaceTempView(f"cells_{name}")

    def make(self, *names: str) -> None:
        for name in names:
            code = self.code[name].replace(f"{SCHEMA}.", "cells_")
            self.spark.sql(f"create or replace temp view cells_{name} as {code}")

    def load(self, rows: Iterable[TriggerRow]) -> dict[str, str]:
        """Load triggers past the check; return why each cannot be evaluated that cannot."""
        shape = ", ".join(f"`{column}` string" for column in COLUMNS)
        cells = ([row.cells[column] or None for column in COLUMNS] for row in rows)
        self.view("event_triggers", cells, shape)
        self.make("stg_event_triggers", "int_trigger_conditions", "int_trigger_faults")
        found = self.spark.table("cells_int_trigger_faults").collect()
        return {row.upstream_id.removeprefix("trigger:"): row.fault for row in found}

    def rendered(self, faults: Iterable[str], slot: datetime = SLOT) -> dict[str, tuple[str, int]]:
        """Return the partition that each trigger without a fault waits for, and its key."""
        self.spark.sql(
            f"""
            create or replace temp view cells_int_trigger_slots as
            select distinct
                cells_stg_event_triggers.upstream_id,
                'PARTITION' as trigger_type,
                timestamp '{slot:%Y-%m-%d %H:%M:%S}' as slot,
                true as is_slot_new,
                false as is_ready,
                cast(null as array<string>) as missing_before,
                cast(null as timestamp) as expires_at,
                false as is_overdue,
                true as may_release
            from cells_stg_event_triggers
            left anti join cells_int_trigger_faults
                on cells_stg_event_triggers.upstream_id = cells_int_trigger_faults.upstream_id
            """
        )
        self.make("int_trigger_partitions")
        rows = self.spark.table("cells_int_trigger_partitions").collect()
        return {
            row.upstream_id.removeprefix("trigger:"): (
                row.waits_for.removeprefix("partition ").removesuffix(" of sales.orders"),
                row.partition_key,
            )
            for row in rows
        }


@pytest.fixture(scope="module")
def models(spark: "SparkSession", dbt: Dbt) -> Models:
    """The models as dbt compiles them."""
    compiled = dbt("compile", "--select", *MODELS)
    code = {each.node.name: each.node.compiled_code for each in compiled.results}
    return Models(spark=spark, code=code)


def expected(pattern: str, at: datetime) -> str:
    """Render a pattern as the page describes it, run of letters by run of letters."""
    text, rest = "", pattern
    while rest:
        run = rest[: len(rest) - len(rest.lstrip(rest[0]))]
        text, rest = text + _run(run, at), rest[len(run) :]
    return text


def _run(run: str, at: datetime) -> str:
    if run in ("MMM", "MMMM"):
        return (calendar.month_abbr if run == "MMM" else calendar.month_name)[at.month]
    if run == "yy":
        return f"{at.year % 100:02}"
    numbers = {"y": at.year, "M": at.month, "d": at.day, "H": at.hour, "m": at.minute}
    numbers |= {"s": at.second, "D": at.timetuple().tm_yday}
    return f"{numbers[run[0]]:0{len(run)}}" if run[0] in numbers else run


def test_a_partition_that_the_check_lets_pass_is_rendered_and_none_fails_the_query(
    models: Models,
) -> None:
    cells = [str(cell) for cell in sampled(functions, 600)]
    rows = [trigger(number, partition=cell) for number, cell in enumerate(cells)]
    faults = models.load(rows)
    rendered = models.rendered(faults)

    passed = {row.trigger_id for row in rows if is_right(row)}
    assert len(passed) > 50 and len(faults) > 50
    assert {each: faults[each] for each in passed & faults.keys()} == {}
    assert passed <= rendered.keys() and all(rendered[each][0] for each in passed)


def test_a_pattern_is_rendered_as_the_page_describes_it(models: Models) -> None:
    cells = sorted({str(cell) for cell in sampled(right, 300)})
    rows = [trigger(number, partition=f"{{{cell}}}") for number, cell in enumerate(cells)]
    rows = [row for row in rows if is_right(row)]
    rendered = models.rendered(models.load(rows))
    shown = {row.partition: rendered[row.trigger_id][0] for row in rows}
    assert len(shown) > 50
    assert shown == {row.partition: expected(row.partition[1:-1], SLOT) for row in rows}


def test_every_time_zone_that_the_check_lets_pass_is_rendered(models: Models) -> None:
    names = sorted(ZONES)
    rows = [
        trigger(number, partition="{'yyyy-MM-dd HH:mm'}", time_zone=name)
        for number, name in enumerate(names)
    ]
    assert all(map(is_right, rows))
    assert models.load(rows) == {}
    # Rules of long ago no longer change, whichever version of them a machine has.
    then = datetime(2005, 1, 15, 12, tzinfo=UTC)
    rendered = models.rendered((), then)
    assert {row.time_zone: rendered[row.trigger_id][0] for row in rows} == {
        name: f"{then.astimezone(ZoneInfo(name)):%Y-%m-%d %H:%M}" for name in names
    }


def test_what_the_check_refuses_elsewhere_waits_alone(models: Models) -> None:
    bad: Mapping[str, Mapping[str, str]] = {
        "zone": {"time_zone": "Mars/Base"},
        "start": {"start_timestamp": "soon"},
        "far": {"frequency": "9" * 19, "frequency_unit": "WEEKS"},
        "expiry": {"expires_after": "9999999999999999999 months"},
        "type": {"trigger_type": "PARTITON"},
        "no_list": {"partition": "[EU"},
        "no_string": {"partition": '"EU'},
    }
    rows = [
        replace(trigger(0, **cells), trigger_id=name) for name, cells in {**bad, "good": {}}.items()
    ]
    assert {row.trigger_id for row in rows if not is_right(row)} == bad.keys()
    faults = models.load(rows)
    assert faults.keys() == bad.keys()
    assert {name: text for name, (text, _) in models.rendered(faults).items()} == {
        "good": "2026-02-28"
    }


def spellings(partition: Sequence[object]) -> list[str]:
    """Write a partition in each form that means it."""
    json_levels = [json.dumps(each, ensure_ascii=False) for each in partition]
    found = [json.dumps(json_levels, ensure_ascii=False), ";".join(json_levels)]
    texts = [plain_text(level(each)) for each in json_levels]
    if not any(text.startswith('"') for text in texts):
        found.append(f"[{', '.join(json_levels)}]")
        if all(text == text.strip() and text and ";" not in text for text in texts):
            found += [";".join(texts)] if not texts[0].startswith("[") else []
    return found


def test_a_partition_matches_its_event_in_every_spelling(models: Models) -> None:
    partitions = [
        each
        for each in sampled(st.lists(values, min_size=1, max_size=3), 300)
        if isinstance(each, list)
        # A brace begins a function; nothing else can be meant by it.
        and not any(isinstance(value, str) and {*"{}"} & {*value} for value in each)
    ]
    levels = [tuple(level(json.dumps(value)) for value in each) for each in partitions]
    cells = [(number, cell) for number, each in enumerate(partitions) for cell in spellings(each)]
    rows = [trigger(number, partition=cell) for number, (_, cell) in enumerate(cells)]
    for row, (number, cell) in zip(rows, cells, strict=True):
        wanted = tuple(map(plain_text, levels[number]))
        assert (is_right(row), parts_of(cell)) == (True, wanted), cell
        assert tuple(map(plain_text, levels_from(cell))) == wanted, cell
    rendered = models.rendered(models.load(rows))
    events = [
        ("u", str(number), None, "sales.orders", 1, list(each), {}, "APPEND", "HIVE")
        for number, each in enumerate(levels)
    ]
    models.view("ledger_data_change_events", events, EVENT)
    models.make("int_event_partitions")
    keys = {
        int(row.event_id): row.partition_key
        for row in models.spark.table("cells_int_event_partitions").collect()
    }
    assert len(rows) > 500
    unmatched = [
        (cell, levels[number])
        for row, (number, cell) in zip(rows, cells, strict=True)
        if rendered[row.trigger_id][1] != keys[number]
    ]
    assert unmatched == []
