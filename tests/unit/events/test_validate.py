"""What a producer may report of a change, and the sentence for what it may not."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from harness.events.validate import check

AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
GOOD: Mapping[str, object] = {"table": "sales.orders", "table_format": "DELTA"}
NOW_MS = int(AT.timestamp() * 1000)


def _problems(*contents: object, known: Mapping[str, int | None] | None = None) -> list[str]:
    batch = [(f"f:{number}", content) for number, content in enumerate(contents, start=1)]
    return check(batch, at=AT, known_levels=known).problems


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"table_format": "AVRO"}, "table_format 'AVRO' is not one of DELTA, ICEBERG, HIVE"),
        (
            {"operation_type": "MERGE"},
            "operation_type 'MERGE' is not one of APPEND, DELETE, UPDATE",
        ),
        ({"partition": ["2026-03-01"]}, "partition level 1 '2026-03-01' is not a JSON value"),
        ({"partition": ["1", "NaN"]}, "partition level 2 'NaN' is not a JSON value"),
        ({"partition": "1"}, "partition is the text '1', and has to be a list"),
        ({"partition": []}, "partition is an empty list"),
        ({"partition": [1]}, "partition level 1 is the number 1, and has to be text"),
        ({"tags": {"rows": 7}}, "tags rows is the number 7, and has to be text"),
        ({"tags": {"rows": None}}, "tags rows is null, and has to be text"),
        ({"tags": ["a"]}, "tags is a list, and has to be an object"),
        ({"tags": {" ": "a"}}, "tags has a tag without a name"),
        ({"prev_snapshot_id": "2"}, "prev_snapshot_id has no snapshot_id"),
        ({"snapshot_id": "2", "prev_snapshot_id": 2}, "are both '2': one follows the other"),
        ({"snapshot_id": ""}, "snapshot_id is empty"),
        ({"snapshot_id": 1e20}, "snapshot_id is 1e+20, a number with lost digits"),
        ({"snapshot_id": True}, "snapshot_id is true, and has to be text"),
        ({"snapshot_ts": -5}, "snapshot_ts -5 is negative"),
        ({"snapshot_ts": 1772352000}, "snapshot_ts 1772352000 is in seconds"),
        ({"snapshot_ts": 10**18}, "snapshot_ts 1000000000000000000 lies in the future"),
        ({"snapshot_ts": "2026-03-01"}, "snapshot_ts is the text '2026-03-01'"),
        ({"snapshot_ts": 1.5}, "snapshot_ts is the number 1.5"),
        ({"operation": "APPEND"}, "unknown field 'operation'; did you mean operation_type?"),
        ({"event_ts": 5}, "event_ts is the instant at which the event is registered"),
        ({"table": "  "}, "table is empty"),
        ({"table": "x" * 2000}, "table has 2,000 characters; 1,000 are allowed"),
        ({"table": "a\u202eb"}, "table 'a\\u202eb' has characters that cannot be seen"),
        ({"tags": {"a": "\x1b[2J"}}, "tags a '\\x1b[2J' has characters that cannot be seen"),
        ({"tags": {"a": "x" * 70_000}}, "tags a has 70,000 characters"),
        ({"tags": {str(n): "" for n in range(101)}}, "tags has 101 tags; 100 are allowed"),
    ],
)
def test_what_is_wrong_with_one_field_is_one_sentence(
    said: Mapping[str, object], sentence: str
) -> None:
    (problem,) = _problems({**GOOD, **said})
    assert problem.startswith("f:1: ")
    assert sentence in problem


def test_a_snapshot_without_its_format_cannot_be_read() -> None:
    (problem,) = _problems({"table": "a", "snapshot_id": "7"})
    assert "snapshot_id cannot be read without it" in problem


@pytest.mark.parametrize("content", [7, "text", ["a"], None])
def test_what_is_no_object_is_no_event(content: object) -> None:
    (problem,) = _problems(content)
    assert "an event is a JSON object" in problem


def test_every_error_of_a_batch_has_its_sentence_and_its_place() -> None:
    problems = _problems({**GOOD, "table_format": "X"}, GOOD, {"table": 7})
    assert [problem.partition(" ")[0] for problem in problems] == ["f:1:", "f:3:", "f:3:"]


def test_partitions_of_a_table_have_as_many_levels_throughout_a_batch() -> None:
    one, two = (
        {**GOOD, "partition": ["1"]},
        {**GOOD, "table": "Sales.Orders", "partition": ["1", "2"]},
    )
    assert _problems(one, GOOD, two) == ["f:3: partition has 2 levels, but 1 level at f:1"]


def test_partitions_have_as_many_levels_as_the_table_is_known_with() -> None:
    (problem,) = _problems({**GOOD, "partition": ["1"]}, known={"sales.orders": 2, "other": 1})
    assert "partition has 1 level, but sales.orders has 2 levels" in problem


def test_a_table_of_which_no_partition_is_known_may_have_any() -> None:
    assert _problems({**GOOD, "partition": ["1"]}, known={"sales.orders": None}) == []


def test_what_a_producer_may_report_becomes_an_event() -> None:
    output = {
        **GOOD,
        "table_format": "delta",
        "operation_type": "append",
        "partition": [' "ü" ', "1.10", '{"b": 1, "a": [null, 2.50]}'],
        "snapshot_id": 9007199254740993,
        "snapshot_ts": NOW_MS,
        "prev_snapshot_id": None,
        "tags": {"note": "two\nlines, ü"},
    }
    (event,) = check([("f:1", output)], at=AT).events
    assert event.partition == ('"ü"', "1.10", '{"b":1,"a":[null,2.50]}')
    assert (event.snapshot_id, event.prev_snapshot_id) == ("9007199254740993", None)
    assert (event.table_format, event.operation_type) == ("DELTA", "APPEND")
    assert event.tags == {"note": "two\nlines, ü"}


def test_a_producers_clock_may_be_ahead_of_ours_by_a_day_at_most() -> None:
    hour = 3_600_000
    assert _problems({**GOOD, "snapshot_ts": NOW_MS + 23 * hour}) == []
    assert _problems({**GOOD, "snapshot_ts": NOW_MS + 25 * hour}) != []
