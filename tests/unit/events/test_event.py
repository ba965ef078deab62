"""An event as Python code has it."""

import json

import pytest

from harness.events.payload import as_payload
from harness.toolkit.changes import ChangeEvent, Operation, TableFormat

EVENT = ChangeEvent(
    event_ts=1_772_352_000_000,
    table="lake.flights",
    partition=('"2026-03-01"', "7"),
    snapshot_id="12",
    snapshot_ts=1_772_351_999_000,
    prev_snapshot_id="11",
    table_format=TableFormat.DELTA,
    operation_type=Operation.APPEND,
    tags={"completeness": "hourly"},
    event_id="a1",
)


def test_an_event_that_went_through_json_is_the_same_event() -> None:
    assert ChangeEvent.from_json(json.loads(json.dumps(EVENT.to_json()))) == EVENT


def test_an_event_without_its_optional_fields_goes_through_json() -> None:
    event = ChangeEvent(
        table="flights", table_format=TableFormat.HIVE, operation_type=Operation.UPDATE
    )
    assert ChangeEvent.from_json(event.to_json()) == event


def test_a_job_is_handed_the_fields_of_an_event_in_the_same_order() -> None:
    assert list(as_payload([EVENT.to_json()])[0]) == list(EVENT.to_json())


def test_an_event_is_read_from_a_row_that_has_other_columns_and_words_in_lower_case() -> None:
    row = {**EVENT.to_json(), "tick_number": 3, "table_format": "delta", "operation_type": "append"}
    assert ChangeEvent.from_json(row) == EVENT


@pytest.mark.parametrize(
    ("field", "value"),
    [("partition", "2026"), ("table_format", "AVRO"), ("operation_type", "DROP")],
)
def test_what_is_no_event_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=str(value)):
        ChangeEvent.from_json({**EVENT.to_json(), field: value})
