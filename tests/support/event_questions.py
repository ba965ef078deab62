"""Data-change events of a few days, and questions about them: the same for Python and for SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

Row = Mapping[str, object]

#: 2026-03-01T00:00Z.
MARCH = 1_772_323_200_000
HOUR = 3_600_000
DAY = 24 * HOUR


def row(name: str, tick: int, hours: float, **other: object) -> dict[str, object]:
    """A row of the ledger; its snapshot was made an hour before it was registered."""
    at = MARCH + int(hours * HOUR)
    reported: dict[str, object] = {
        "tick_number": tick,
        "event_ts": at,
        "event_id": name,
        "upstream_id": "delta_table:lake.flights:ab5c14a4",
        "table": "lake.flights",
        "partition": None,
        "snapshot_id": str(tick),
        "snapshot_ts": at - HOUR,
        "prev_snapshot_id": None,
        "table_format": "DELTA",
        "operation_type": "APPEND",
        "tags": {},
        "change_id": name,
    }
    return reported | other


SEVERAL = '[["2026-03-01",5],["2026-03-01","six"],[null,"a \\"b\\" / c"]]'
ROWS: Sequence[Row] = (
    row("first", 1, 0, partition=['"2026-02-28"', '"5"'], tags={"complete": "hourly", "by": "a"}),
    row("several", 2, 12, table="Lake.`FLIGHTS`", operation_type="UPDATE", tags={"partitions": SEVERAL}),
    row("midnight", 3, 24, operation_type="DELETE", tags={"complete": "hourly", "by": "b"}),
    row("path", 4, 30, table="/data/Lake/weather", partition=["1.50"]),
    row("decimals", 4, 30, table="prices", tags={"partitions": "[[1.5],[2]]"}),
    row("own catalog", 5, 31, table="spark_catalog.lake.planes", partition=["null"]),
    row("damaged", 5, 32, table="lake.airports", tags={"partitions": "[[1"}),
    row("cut off", 5, 33, table="lake.airports", tags={"partitions": "[[1]]", "partitions_truncated": "true"}),
    row("one level", 5, 34, table="lake.airports", tags={"partitions": '["2026-03-01"]'}),
    row("quoted", 6, 36, table="lake.`it's`", tags={"it's \\ a": "tag's \"value\" \\"}),
    row("without snapshot", 6, 37, table="lake.hive", snapshot_id=None, snapshot_ts=None, partition=["7"]),
    row("older", 7, 38, change_id=None),
    # One change that two upstreams report, the second of them twice in one tick.
    row("sensed", 8, 48, change_id="told twice", tags={"files": "1"}),
    row("registered", 9, 48, change_id="told twice", upstream_id="registered:lake.flights", operation_type="UPDATE", tags={"files": "1", "complete": "daily"}),
    row("registered again", 9, 48, change_id="told twice", upstream_id="registered:lake.flights"),
    # One change, reported with the times of two clocks.
    row("by one clock", 10, 60, change_id="two clocks", upstream_id="registered:lake.flights"),
    row("by the other", 11, 60, change_id="two clocks", snapshot_ts=MARCH + 70 * HOUR),
    # The events that a trigger passes on are copies.
    row("copy", 20, 0, change_id="first", upstream_id="trigger:daily", tags={"trigger_id": "daily"}),
)  # fmt: skip
ALL = tuple(dict.fromkeys(str(each["change_id"] or each["event_id"]) for each in ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and the events that answer it."""

    sentence: str
    asked: Mapping[str, object] = field(default_factory=dict)
    answer: tuple[str, ...] = ()


def at(hours: float) -> str:
    """The instant so many hours after the first of March, as text."""
    reported = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=hours)
    return reported.isoformat()


CASES = (
    Case(sentence="without_any_wish_every_change_is_one_event", answer=ALL),
    Case(
        sentence="a_range_has_its_first_instant_and_not_its_last",
        asked={"start": "2026-03-01", "end": "2026-03-02"},
        answer=("first", "several"),
    ),
    Case(
        sentence="an_instant_between_two_milliseconds_counts_as_the_later_one",
        asked={"start": "2026-03-01T00:00:00.000001Z", "end": "2026-03-02T00:00:00.000001Z"},
        answer=("several", "midnight"),
    ),
    Case(sentence="a_range_of_no_time_has_no_event", asked={"start": MARCH, "end": MARCH}),
    Case(
        sentence="a_range_may_have_no_end",
        asked={"start": str(MARCH + 2 * DAY)},
        answer=("told twice", "two clocks"),
    ),
    Case(sentence="a_range_may_have_no_beginning", asked={"end": MARCH + 1}, answer=("first",)),
    Case(
        sentence="in_the_time_of_the_snapshot_a_change_counts_when_it_was_made",
        asked={"start": at(-1), "end": at(11), "by": "snapshot"},
        answer=("first",),
    ),
    Case(
        sentence="a_change_without_a_snapshot_is_at_no_time_of_a_snapshot",
        asked={"start": at(35), "end": at(37.5), "by": "snapshot"},
        answer=("quoted", "older"),
    ),
    Case(
        sentence="a_change_was_made_when_its_newest_row_says",
        asked={"start": at(69), "end": at(71), "by": "snapshot"},
        answer=("two clocks",),
    ),
    Case(
        sentence="a_change_was_not_made_when_an_older_row_says",
        asked={"start": at(58), "end": at(60), "by": "snapshot"},
    ),
    Case(
        sentence="a_table_is_found_however_it_is_spelled",
        asked={"table": "`Lake`.Flights", "end": at(24)},
        answer=("first", "several"),
    ),
    Case(
        sentence="a_table_of_the_session_catalog_is_found_without_its_name",
        asked={"table": "LAKE.planes"},
        answer=("own catalog",),
    ),
    Case(
        sentence="a_path_is_found_as_a_uri",
        asked={"table": "delta.`file:///data/Lake/weather/`"},
        answer=("path",),
    ),
    Case(sentence="a_path_is_what_it_says_to_the_letter", asked={"table": "/data/lake/weather"}),
    Case(sentence="a_table_is_not_found_by_a_part_of_its_name", asked={"table": "flights"}),
    Case(
        sentence="a_quote_in_a_name_or_a_tag_leads_nowhere",
        asked={"table": "lake.it's", "tags": {"it's \\ a": 'tag\'s "value" \\'}},
        answer=("quoted",),
    ),
    Case(
        sentence="every_tag_has_to_be_there",
        asked={"tags": {"complete": "hourly", "by": "b"}},
        answer=("midnight",),
    ),
    Case(
        sentence="a_tag_of_another_value_is_another_tag",
        asked={"tags": {"complete": "Hourly"}},
    ),
    Case(
        sentence="a_change_has_the_operation_and_the_tags_of_its_newest_row",
        asked={"operation": "update", "tags": {"complete": "daily"}},
        answer=("told twice",),
    ),
    Case(
        sentence="an_older_row_of_a_change_says_nothing",
        asked={"operation": "APPEND", "start": at(48), "end": at(49)},
    ),
    Case(sentence="an_operation_is_asked_for_alone", asked={"operation": "DELETE"}, answer=("midnight",)),
    Case(sentence="what_a_trigger_has_handed_over_is_no_event", asked={"tags": {"trigger_id": "daily"}}),
    Case(
        sentence="a_partition_is_compared_as_text_level_by_level",
        asked={"partition": ["2026-02-28", 5]},
        answer=("first",),
    ),
    Case(
        sentence="a_partition_as_an_event_has_it_is_found",
        asked={"partition": ['"2026-02-28"', '"5"']},
        answer=("first",),
    ),
    Case(
        sentence="one_of_several_partitions_is_enough",
        asked={"partition": ["2026-03-01", "5"]},
        answer=("several",),
    ),
    Case(
        sentence="a_null_and_a_quote_are_values_like_others",
        asked={"partition": [None, 'a "b" / c']},
        answer=("several",),
    ),
    Case(sentence="levels_may_not_be_left_out", asked={"partition": ["2026-03-01"], "table": "lake.flights"}),
    Case(sentence="levels_keep_their_order", asked={"partition": ["5", "2026-03-01"]}),
    Case(
        sentence="a_number_keeps_its_digits",
        asked={"partition": ["1.50"]},
        answer=("path",),
    ),
    Case(
        sentence="a_number_of_other_digits_is_another_value",
        asked={"partition": [1.5]},
        answer=("decimals",),
    ),
    Case(sentence="one_value_is_a_partition_of_one_level", asked={"partition": "7"}, answer=("without snapshot",)),
    Case(
        sentence="a_partition_of_one_level_may_be_listed_without_its_brackets",
        asked={"partition": ["2026-03-01"], "table": "lake.airports"},
        answer=("one level",),
    ),
    Case(
        sentence="a_list_that_was_cut_off_or_is_damaged_tells_what_is_in_it",
        asked={"partition": [1]},
        answer=("cut off",),
    ),
    Case(sentence="a_null_partition_is_found", asked={"partition": [None]}, answer=("own catalog",)),
)  # fmt: skip

#: Ways to write an instant, and its milliseconds since the epoch.
INSTANTS: Sequence[tuple[datetime | str | int, int]] = (
    (MARCH, MARCH),
    (str(MARCH), MARCH),
    (0, 0),
    (-1, -1),
    ("2026-03-01", MARCH),
    ("20260301", MARCH),
    ("2026-W09-7", MARCH),
    ("2026-03-01T00:00Z", MARCH),
    (" 2026-03-01 00:00:00 ", MARCH),
    ("2026-02-28T16:00-08:00", MARCH),
    ("2026-03-01T00:00:00.0005", MARCH + 1),
    ("1969-12-31T23:59:59.9995Z", 0),
    (datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=1))), MARCH),
)
NO_INSTANTS = ("soon", "", "08:00", "2026-3-1", "1e9")


def write_rows(ledger: Path) -> None:
    """Append the rows to the ledger of events, each in a commit and a file of its own."""
    for each in ROWS:
        schema = pa.schema(DeltaTable(ledger).schema().to_arrow())
        tags = each["tags"]
        assert isinstance(tags, dict)
        plain = {**each, "tags": list(tags.items())}
        write_deltalake(ledger, pa.Table.from_pylist([plain], schema=schema), mode="append")
