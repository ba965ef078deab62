"""From the events that were passed to a dbt run to the range that its models read: as in Python."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.platform.sql_names import table_key
from harness.toolkit.changes import ChangeEvent
from harness.toolkit.changes.chain import chain_of
from tests.support.change_events import DELTA, HIVE, ICEBERG, at, of_partition, step
from tests.support.macro_calls import CompilationError, Macros

MACROS = Macros()
TABLE: Mapping[str, object] = {
    "name": "sales.orders",
    "format": "DELTA",
    "location": "file:/lake/orders",
    "partition_columns": [{"name": "day", "type": "date"}, {"name": "hour", "type": "int"}],
}


def chained(events: list[ChangeEvent], macros: Macros = MACROS) -> dict[str, object]:
    listed = [event.to_json() for event in events]
    table = {**TABLE, "format": str(events[0].table_format)}
    return dict(macros.call._chain_of_events(listed, table))


def ends(chain: Mapping[str, object]) -> tuple[str | None, str | None]:
    since, until = chain["since"], chain["until"]
    return None if since is None else str(since), None if until is None else str(until)


SNAPSHOTS = st.one_of(st.none(), st.integers(0, 6))
TAGS = st.sampled_from(
    [{}, {}, {}]
    + [{tag: "true"} for tag in ("first_sight", "gap", "overwrite", "rolled_back", "recreated")]
    + [{"table_id": "one"}, {"table_id": "two"}]
)


@given(
    kind=st.sampled_from([DELTA, ICEBERG]),
    steps=st.lists(
        st.tuples(SNAPSHOTS, SNAPSHOTS, TAGS, st.one_of(st.none(), st.integers(1, 5))),
        min_size=1,
        max_size=6,
    ),
)
@example(kind=DELTA, steps=[(0, 1, {}, 1), (1, 2, {}, 2), (1, 2, {"gap": "true"}, 2)])
@example(kind=DELTA, steps=[(0, 1, {}, 1), (3, 4, {}, 2)])
@example(kind=ICEBERG, steps=[(0, 1, {}, 1), (3, 4, {}, 2)])
@example(kind=DELTA, steps=[(3, 4, {}, 1), (4, 900, {}, 2), (5, 7, {}, 3)])
@example(kind=DELTA, steps=[(0, 1, {"table_id": "one"}, 1), (1, 2, {"table_id": "two"}, 2)])
@example(kind=DELTA, steps=[(None, 1, {"table_id": "one"}, 1), (None, 1, {"table_id": "two"}, 2)])
@example(kind=DELTA, steps=[(0, 1, {"first_sight": "true"}, 1), (1, 2, {}, 2)])
@example(kind=ICEBERG, steps=[(4, 5, {}, 5), (4, 6, {}, 6)])
@example(kind=ICEBERG, steps=[(4, 5, {}, 5), (7, 3, {"rolled_back": "true"}, 6)])
@example(kind=ICEBERG, steps=[(1, 2, {}, 1), (5, 6, {}, 2), (6, 5, {}, 3)])
def test_events_lead_a_model_through_the_same_range_as_a_python_job(
    kind: str, steps: list[tuple[int | None, int | None, dict[str, str], int | None]]
) -> None:
    events = [
        replace(step(before, after, DELTA if kind == DELTA else ICEBERG, **tags), snapshot_ts=when)
        for before, after, tags, when in steps
    ]
    chain = chain_of(events)

    assert ends(chained(events)) == (chain.since, chain.until)


def test_a_break_is_reported() -> None:
    assert chained([step(0, 1), step(3, 4)])["why"] == "no event covers version 2"
    assert "why" not in chained([step(0, 1), step(1, 4)])


def test_a_list_of_several_formats_stands_for_the_whole_table() -> None:
    chain = chained([at(step(0, 1), 5), at(step(1, 2, HIVE), 6)])
    assert ends(chain) == (None, None)
    assert chain["why"] == "the table was of HIVE before"


def test_partitions_of_one_and_of_several_are_put_together_as_values() -> None:
    events = [
        of_partition('"2026-03-01"', "7"),
        replace(of_partition(), tags={"partitions": '[["2026-03-02",8],["2026-03-03",null]]'}),
    ]
    expected = [["2026-03-01", 7], ["2026-03-02", 8], ["2026-03-03", None]]
    assert chained(events)["partitions"] == expected


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (of_partition(), "covers the entire table"),
        (
            of_partition(partitions="[[1,2]]", partitions_truncated="true"),
            "covers the entire table",
        ),
        (of_partition("7"), "the partition (7) of a table with 2 levels"),
        (of_partition(partitions=json.dumps([[1, hour] for hour in range(201)])), "201 partitions"),
    ],
)
def test_partitions_that_cannot_be_picked_out_stand_for_the_whole_table(
    event: ChangeEvent, why: str
) -> None:
    chain = chained([event])
    assert "partitions" not in chain
    assert why in str(chain["why"])


@pytest.mark.parametrize(
    ("said", "is_meant"),
    [
        ("sales.orders", True),
        ("`Sales`.`Orders`", True),
        ("spark_catalog.sales.orders", True),
        ("/lake/orders", True),
        ("file:///lake/orders/", True),
        ("delta.`/lake/orders`", True),
        ("sales.orders_old", False),
        ("/lake/orders2", False),
    ],
)
def test_events_are_of_a_table_whatever_the_spelling_of_its_name(said: str, is_meant: bool) -> None:
    event = replace(step(0, 1), table=said).to_json()
    assert len(MACROS.call._events_of_table([event], TABLE)) == is_meant


@pytest.mark.parametrize(
    "name",
    [
        "Sales.`Or.ders`",
        " spark_catalog.a.b",
        "spark_catalog.b",
        "FILE:/a/B/",
        "s3://a/b/",
        "/",
        "delta.`/a`",
    ],
)
def test_a_name_is_spelled_as_python_spells_it(name: str) -> None:
    assert MACROS.call._plain_name(name) == table_key(name)


EVENTS = [step(0, 1).to_json()]


@pytest.mark.parametrize(
    "macros",
    [
        Macros(variables={"heartbeat_events": EVENTS}),
        Macros(variables={"heartbeat_events": json.dumps(EVENTS)}),
        Macros(environment={"HEARTBEAT_EVENTS": json.dumps(EVENTS)}),
        Macros(
            environment={"HEARTBEAT_EVENTS": '{"events_file": "/home/e.json"}'},
            answers={"select value from text.`/home/e.json`": [[json.dumps(EVENTS)]]},
        ),
    ],
    ids=["list", "text", "environment", "file"],
)
def test_a_run_finds_its_events_wherever_it_was_handed_them(macros: Macros) -> None:
    assert macros.call._run_payload() == EVENTS


def test_no_events_and_an_empty_list_of_events_are_two_things() -> None:
    assert Macros().call._run_payload() is None
    assert Macros(variables={"heartbeat_events": "[]"}).call._run_payload() == []


@pytest.mark.parametrize("said", ["nonsense", "{}", "7"])
def test_what_is_no_list_of_events_is_refused(said: str) -> None:
    with pytest.raises(CompilationError, match="neither a JSON list of events nor a reference"):
        Macros(variables={"heartbeat_events": said}).call._run_payload()


def incremental(*, exists: bool, **more: object) -> Macros:
    config = SimpleNamespace(materialized="incremental")
    model = SimpleNamespace(name="copy", resource_type="model", config=config)
    return Macros(model=model, is_incremental=lambda: exists, **more)  # type: ignore[arg-type]


def range_of(macros: Macros) -> dict[str, object]:
    return dict(macros.call._range_of_changes("sales.orders", TABLE, None))


def test_a_run_that_was_handed_nothing_fails_and_states_what_to_do() -> None:
    with pytest.raises(CompilationError, match="set the variable heartbeat_events") as refused:
        range_of(incremental(exists=True))
    assert "--full-refresh" in str(refused.value)


def test_a_model_that_is_not_there_yet_is_built_of_all_rows() -> None:
    assert ends(range_of(incremental(exists=False))) == (None, None)


def test_a_model_that_is_built_from_the_start_takes_all_rows_up_to_the_last_event() -> None:
    payload = {"heartbeat_events": [step(3, 4).to_json()]}
    assert ends(range_of(incremental(exists=False, variables=payload))) == (None, "4")
    assert ends(range_of(incremental(exists=True, variables=payload))) == ("3", "4")


def test_the_two_ends_may_be_named_without_events() -> None:
    named = {"heartbeat_from_snapshot": 3, "heartbeat_to_snapshot": 7}
    assert ends(range_of(incremental(exists=True, variables=named))) == ("3", "7")


def test_events_of_other_tables_are_nothing() -> None:
    other = replace(step(0, 1), table="sales.others").to_json()
    macros = incremental(exists=True, variables={"heartbeat_events": [other]})
    assert range_of(macros)["is_nothing"]
