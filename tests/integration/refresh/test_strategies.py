"""Each strategy over a few small batches: what the target table has after each of them, and why."""

from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch, minute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

CUSTOMERS: dict[str, object] = {
    "type": "key",
    "key": "k",
    "updated_at": "t",
    "exclude_from_cdc": ["op"],
    "null_keys": "quarantine",
    "deletes": {"when": "op = 'D'"},
}
MODELS: dict[str, dict[str, object]] = {
    "customers": CUSTOMERS,
    "latecomers": {**CUSTOMERS, "late_arriving": "history"},
    "members": {
        "type": "key",
        "key": "k",
        "extracted_at": "t",
        "deletes": {"complete": True, "mode": "soft", "max_percent": 50},
    },
    "parity": {"type": "key", "key": "k", "updated_at": "t", "unchanged_newer": "skip"},
    "ties": {"type": "key", "key": "k", "updated_at": "t"},
    "ranked": {
        "type": "key",
        "key": "k",
        "updated_at": "t",
        "tie_breaker": "v",
        "on_conflict": "fail",
    },
    "prices": {"type": "full", "extracted_at": "day", "diff_key": "name"},
    "compared": {"type": "full", "diff_key": "k"},
    "clicks": {"type": "none"},
    "readings": {"type": "timestamp", "column": "t"},
    "tickets": {"type": "sequence", "column": "n", "max_rewind": 5},
    "sales": {
        "type": "custom",
        "delete_condition": "this.region = input.region and this.day >= input.day",
        "append_filter": "input.amount is not null",
    },
}


def _keyed(*rows: tuple[object, ...]) -> str:
    full = [(*row, None)[:4] for row in rows]
    return batch("k int, v string, t timestamp, op string", *full)


def _timed(*rows: tuple[object, ...]) -> str:
    return batch("t timestamp, v string", *rows)


def _extract(day: int | None, *names: str) -> str:
    return batch("day timestamp, name string", *((day, name) for name in names))


def _numbered(*numbers: int) -> str:
    return batch("n int", *((number,) for number in numbers))


def _sold(*rows: tuple[object, ...]) -> str:
    return batch("region string, day int, amount int", *rows)


def _clicked(*names: str) -> str:
    return batch("name string", *((name,) for name in names))


#: What each model receives at each step.
STEPS: list[dict[str, str]] = [
    {
        "customers": _keyed((1, "A", 10), (2, "B", 10), (3, "C", 10), (1, "A", 10)),
        "parity": _keyed((1, "A", 10)),
        "ties": _keyed(
            (1, "A", 10), (1, "B", 10), (2, "C", 10), (2, "C", 10), (3, "D", 10), (3, "E", 9)
        ),
        "ranked": _keyed((1, "B", 10), (1, "A", 10)),
        "prices": _extract(1, "a", "b", "b"),
        "compared": _keyed((1, "A", 10), (2, "B", 10), (3, "C", 10)),
        "clicks": _clicked("x", "y"),
        "readings": _timed((1, "a1"), (3, "a3"), (5, "a5"), (5, "a5")),
        "tickets": _numbered(1, 2, 4, 5),
        "sales": _sold(("EU", 1, 10), ("EU", 2, 20), ("US", 1, 5), (None, 1, 7)),
    },
    {
        "customers": _keyed(
            (1, "A", 20), (2, "B2", 20), (4, "D", 20), (4, "D1", 15), (None, "Z", 20)
        ),
        "parity": _keyed((1, "A", 20)),
        "prices": _extract(3, "a", "c"),
        "compared": _keyed((1, "A", 10), (2, "B2", 10), (4, "D", 10)),
        "clicks": _clicked("y", "y", "z"),
        "readings": _timed((5, "b5"), (6, "b6"), (8, "b8")),
        "tickets": _numbered(4, 6, 7),
        "sales": _sold(("EU", 2, 21), ("EU", 3, None)),
    },
    {
        "customers": _keyed((2, "Bx", 15), (1, "A9", 15), (3, "C", 10)),
        "parity": _keyed((1, "A9", 15)),
        "prices": _extract(None),
        "clicks": _clicked("y", "y", "z"),
        "readings": _timed((3, "c3"), (4, "c4")),
        "tickets": _numbered(2, 3),
        "sales": _sold(("EU", 2, 21), ("EU", 3, None)),
    },
    {
        "customers": _keyed((2, "B3", 20), (3, None, 30)),
        "prices": _extract(3, "a", "c"),
        "readings": _timed((0, "e0"), (2, "e2")),
        "sales": _sold(),
    },
    {
        "customers": _keyed((2, "B3", 20), (3, None, 30)),
        "prices": _extract(2, "a", "b"),
        "readings": _timed((1, "a1"), (3, "a3"), (5, "a5"), (5, "a5")),
    },
    {"customers": _keyed((4, "D", 40, "D"), (5, "E", 40), (6, "F", 40, "D"))},
    {"customers": _keyed((4, "Dlate", 35), (4, "Dnew", 50), (6, "F", 45, "D"))},
    {"customers": _keyed((6, "Flate", 42))},
]
EXTRACTS = [
    ((1, "A", 10), (2, "B", 10), (3, "C", 10)),
    ((1, "A", 20), (3, "C2", 20)),
    ((1, "A", 15), (2, "B15", 15), (3, "C", 15)),
    ((1, "A", 30), (2, "B", 30), (3, "C2", 30)),
]
for _step, _extracted in zip(STEPS, EXTRACTS, strict=False):
    _step["members"] = _keyed(*_extracted)
for _step in STEPS:
    _step["latecomers"] = _step["customers"]
HUB = {
    "customers": f"k, v, {minute('s_update_timestamp')}, s_input_id, s_seen_input_id",
    "latecomers": f"k, v, {minute('s_update_timestamp')}, s_input_id, s_seen_input_id",
    "members": f"k, v, {minute('s_update_timestamp')}, s_input_id, s_deleted_flag",
    "parity": f"k, v, {minute('s_update_timestamp')}, s_input_id",
    "ties": "k, v",
    "ranked": "k, v",
    "prices": "name, s_input_id",
    "compared": "k, v",
    "clicks": "name, s_input_id",
    "readings": f"{minute('s_timestamp')}, v, s_input_id",
    "tickets": "n, s_input_id",
    "sales": "region, day, amount, s_input_id",
}
HISTORY = (
    f"k, v, {minute('s_effective_from')}, {minute('s_effective_to')}, s_deleted_flag, s_input_id"
)


class Story:
    """All steps, and each target table after each of them."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._hubs: list[dict[str, Rows]] = []
        for step in STEPS:
            warehouse.receive(**step)
            self._hubs.append({model: warehouse.rows(model, HUB[model]) for model in step})

    def hub(self, model: str, step: int) -> Rows:
        """Rows of a target table after a step; steps count from one."""
        return self._hubs[step - 1][model]


@pytest.fixture(scope="module")
def story(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Everything that is received, once for all tests."""
    spark.sql("drop schema if exists shop cascade")
    return Story(Warehouse(spark, tmp_path_factory.mktemp("refresh") / "project", MODELS))


def test_a_keyed_batch_takes_the_last_row_of_each_key_and_keeps_rows_without_one_out(
    story: Story,
) -> None:
    assert story.hub("customers", 1) == [(1, "A", 10, 1, 1), (2, "B", 10, 1, 1), (3, "C", 10, 1, 1)]
    assert story.hub("customers", 2) == [
        (1, "A", 20, 1, 2),
        (2, "B2", 20, 2, 2),
        (3, "C", 10, 1, 1),
        (4, "D", 20, 2, 2),
    ]


def test_a_row_that_is_older_than_what_is_known_changes_nothing(story: Story) -> None:
    assert story.hub("customers", 3) == story.hub("customers", 2)


def test_of_two_rows_of_one_instant_the_later_receipt_holds_and_a_value_may_become_null(
    story: Story,
) -> None:
    assert story.hub("customers", 4) == [
        (1, "A", 20, 1, 2),
        (2, "B3", 20, 4, 4),
        (3, None, 30, 4, 4),
        (4, "D", 20, 2, 2),
    ]


def test_a_deleted_key_leaves_the_hub_and_only_a_newer_row_brings_it_back(story: Story) -> None:
    assert [row[0] for row in story.hub("customers", 6)] == [1, 2, 3, 5]
    assert (4, "Dnew", 50, 7, 7) in story.hub("customers", 7)


def test_that_a_key_is_deleted_is_known_before_its_first_row_and_grows_newer(story: Story) -> None:
    assert story.hub("customers", 8) == story.hub("customers", 7)


def test_every_row_of_a_keyed_batch_has_one_code(story: Story) -> None:
    assert [story.warehouse.codes("customers", number) for number in range(1, 9)] == [
        {"N": 3, "X": 1},
        {"C": 1, "N": 1, "R": 1, "S": 1, "X": 1},
        {"O": 2, "U": 1},
        {"C": 2},
        {},
        {"D": 1, "N": 1, "U": 1},
        {"N": 1, "S": 1, "X": 1},
        {"O": 1},
    ]


def test_the_metrics_have_the_rows_of_the_hub_by_code_once_each_batch_was_in(story: Story) -> None:
    counts = "array_join(transform(array_sort(map_entries(hub_code_counts)), each -> concat(each.key, each.value)), ' ')"
    assert story.warehouse.rows("customers_metrics", f"s_input_id, {counts}") == [
        (1, "N3"),
        (2, "C1 N2 S1"),
        (3, "C1 N2 S1"),
        (4, "C2 N1 S1"),
        (5, None),
        (6, "C2 N1 S1"),
        (7, "C2 N2 S1"),
        (8, "C2 N2 S1"),
    ]
    found = story.warehouse.rows("members_metrics", f"s_input_id, {counts}")
    assert found == [(1, "N3"), (2, "C1 D1 N1"), (3, None), (4, "C1 N2")]


def test_the_history_has_a_version_for_each_change_and_none_for_what_came_too_late(
    story: Story,
) -> None:
    assert story.warehouse.rows("customers_history", HISTORY) == [
        (1, "A", 10, None, False, 1),
        (2, "B", 10, 20, False, 1),
        (2, "B2", 20, 20, False, 2),
        (2, "B3", 20, None, False, 4),
        (3, None, 30, None, False, 4),
        (3, "C", 10, 30, False, 1),
        (4, "D", 20, 40, False, 2),
        (4, "D", 40, 50, True, 6),
        (4, "Dnew", 50, None, False, 7),
        (5, "E", 40, None, False, 6),
        (6, "F", 40, None, True, 6),
    ]


def test_rows_that_came_late_get_their_place_in_the_history_when_that_is_configured(
    story: Story,
) -> None:
    assert story.hub("latecomers", 8) == story.hub("customers", 8)
    assert [
        row for row in story.warehouse.rows("latecomers_history", HISTORY) if row[0] in (1, 2, 6)
    ] == [
        (1, "A", 10, 15, False, 1),
        (1, "A", 20, None, False, 2),
        (1, "A9", 15, 20, False, 3),
        (2, "B", 10, 15, False, 1),
        (2, "B2", 20, 20, False, 2),
        (2, "B3", 20, None, False, 4),
        (2, "Bx", 15, 20, False, 3),
        (6, "F", 40, 42, True, 6),
        (6, "F", 45, None, True, 7),
        (6, "Flate", 42, 45, False, 8),
    ]


def test_a_key_that_a_complete_extract_lacks_is_deleted_and_comes_back_with_the_next_that_has_it(
    story: Story,
) -> None:
    assert story.hub("members", 2) == [
        (1, "A", 10, 1, False),
        (2, "B", 20, 2, True),
        (3, "C2", 20, 2, False),
    ]
    assert story.hub("members", 4) == [
        (1, "A", 10, 1, False),
        (2, "B", 30, 4, False),
        (3, "C2", 20, 2, False),
    ]
    assert story.warehouse.codes("members", 2) == {"C": 1, "D": 1, "U": 1}
    assert story.warehouse.codes("members", 4) == {"N": 1, "U": 2}


def test_a_complete_extract_that_is_older_than_another_one_is_skipped(story: Story) -> None:
    assert story.hub("members", 3) == story.hub("members", 2)
    assert story.warehouse.states("members")[2] == "SKIPPED_OLD"


def test_a_complete_extract_that_lacks_too_much_or_has_two_times_is_refused(story: Story) -> None:
    before = story.warehouse.rows("members", "*")
    assert "it lacks 2 of 3 keys, which would be deleted, and deletes.max_percent is 50" in (
        story.warehouse.refusal(members=_keyed((1, "A", 40)))
    )
    assert "its rows do not agree in t, the time of the extract" in (
        story.warehouse.refusal(members=_keyed((1, "A", 40), (2, "B", 50), (3, "C", 50)))
    )
    assert story.warehouse.rows("members", "*") == before


def test_all_settings_can_be_checked_before_anything_runs(story: Story) -> None:
    output = story.warehouse.operate("refresh_check")
    assert f"the settings of {len(MODELS)} models can be meant" in output


def test_without_the_touch_a_row_that_is_too_old_is_taken_as_the_document_has_it(
    story: Story,
) -> None:
    assert story.hub("parity", 2) == [(1, "A", 10, 1)]
    assert story.hub("parity", 3) == [(1, "A9", 15, 3)]


def test_a_full_batch_replaces_everything_but_for_an_empty_one(story: Story) -> None:
    assert story.hub("prices", 1) == [("a", 1), ("b", 1), ("b", 1)]
    assert story.hub("prices", 2) == [("a", 2), ("c", 2)]
    assert story.hub("prices", 3) == story.hub("prices", 2)


def test_a_full_batch_that_was_extracted_earlier_goes_to_the_history_alone(story: Story) -> None:
    assert story.hub("prices", 5) == story.hub("prices", 2)
    assert ("a", 5) in story.warehouse.rows("prices_history", "name, s_input_id")
    assert story.warehouse.codes("prices", 5) == {"O": 2}


def test_a_full_batch_reports_which_keys_it_has_changed_if_a_key_is_configured(
    story: Story,
) -> None:
    assert story.warehouse.codes("prices", 1) == {"N": 2}
    assert story.warehouse.codes("prices", 2) == {"D": 1, "N": 1, "U": 1}
    assert story.warehouse.codes("compared", 2) == {"C": 1, "D": 1, "N": 1, "U": 1}


def test_keys_with_rows_of_one_instant_that_differ_are_counted_or_refused(story: Story) -> None:
    assert story.hub("ties", 1) == [(1, "B"), (2, "C"), (3, "D")]
    assert story.warehouse.rows("ties_metrics", "conflict_count") == [(1,)]
    assert story.warehouse.rows("customers_metrics", "s_input_id, conflict_count")[:3] == [
        *((1, 0), (2, 0), (3, 0)),
    ]
    # A column decides which of them holds, so long as its values differ.
    assert story.hub("ranked", 1) == [(1, "B")]
    one = batch("k int, v string, t timestamp, op string", (1, "C", 20, "x"), (1, "C", 20, "y"))
    assert "1 of its keys have rows of one instant that differ, and on_conflict is fail" in (
        story.warehouse.refusal(ranked=one)
    )
    assert story.warehouse.rows("ranked", HUB["ranked"]) == [(1, "B")]


def test_batches_without_a_strategy_are_added_with_their_duplicates(story: Story) -> None:
    assert story.hub("clicks", 2) == [("x", 1), ("y", 1), ("y", 2), ("y", 2), ("z", 2)]


def test_a_batch_that_was_received_before_is_not_taken_again(story: Story) -> None:
    assert story.warehouse.states("customers")[4] == "SKIPPED_DUPLICATE"
    assert story.warehouse.states("prices") == [
        *("COMPLETE", "COMPLETE", "SKIPPED_EMPTY", "SKIPPED_DUPLICATE", "COMPLETE"),
    ]
    assert story.warehouse.states("sales")[2] == "SKIPPED_DUPLICATE"


def test_a_batch_that_equals_an_earlier_one_is_taken_where_that_is_new_data(story: Story) -> None:
    assert story.warehouse.states("clicks") == ["COMPLETE"] * 3
    again = [("y", 3), ("y", 3), ("z", 3)]
    assert story.hub("clicks", 3) == sorted([*story.hub("clicks", 2), *again])
    assert story.warehouse.states("readings")[-1] == "COMPLETE"


def test_the_last_batch_received_holds_all_of_its_range_both_ends_included(story: Story) -> None:
    assert story.hub("readings", 1) == [(1, "a1", 1), (3, "a3", 1), (5, "a5", 1), (5, "a5", 1)]
    assert story.hub("readings", 2) == [
        *((1, "a1", 1), (3, "a3", 1), (5, "b5", 2), (6, "b6", 2), (8, "b8", 2)),
    ]
    assert story.hub("readings", 3) == [
        *((1, "a1", 1), (3, "c3", 3), (4, "c4", 3), (5, "b5", 2), (6, "b6", 2), (8, "b8", 2)),
    ]
    assert story.hub("readings", 4) == [
        *((0, "e0", 4), (2, "e2", 4), (3, "c3", 3), (4, "c4", 3)),
        *((5, "b5", 2), (6, "b6", 2), (8, "b8", 2)),
    ]
    # The first batch again, of which later ones have replaced a part: it was corrected and is set back.
    assert story.hub("readings", 5) == [
        *((0, "e0", 4), (1, "a1", 5), (3, "a3", 5), (5, "a5", 5), (5, "a5", 5)),
        *((6, "b6", 2), (8, "b8", 2)),
    ]


def test_a_sequence_is_a_range_whose_gaps_are_part_of_it(story: Story) -> None:
    assert story.hub("tickets", 2) == [(1, 1), (2, 1), (4, 2), (6, 2), (7, 2)]
    assert story.hub("tickets", 3) == [(1, 1), (2, 3), (3, 3), (4, 2), (6, 2), (7, 2)]


def test_the_metrics_show_which_ranges_a_batch_still_holds(story: Story) -> None:
    found = story.warehouse.rows("tickets_metrics", "s_input_id, to_json(effective_ranges)")
    assert found == [
        (1, '[{"range_from":1,"range_to":1,"record_count":1}]'),
        (2, '[{"range_from":4,"range_to":7,"record_count":3}]'),
        (3, '[{"range_from":2,"range_to":3,"record_count":2}]'),
    ]
    start, end = (minute(f"each.{name}") for name in ("range_from", "range_to"))
    ranges = f"transform(effective_ranges, each -> concat({start}, ' to ', {end}, ': ', each.record_count))"
    # The last microsecond before the next batch's first instant is in the minute before.
    assert story.warehouse.rows("readings_metrics", f"s_input_id, array_join({ranges}, ', ')") == [
        (1, None),
        (2, "5 to 8: 2"),
        (3, None),
        (4, "0 to 0: 1"),
        (5, "1 to 5: 4"),
    ]


def test_a_custom_batch_deletes_what_its_condition_finds_true_and_adds_what_passes(
    story: Story,
) -> None:
    after = [(None, 1, 7, 1), ("EU", 1, 10, 1), ("EU", 2, 21, 2), ("US", 1, 5, 1)]
    assert story.hub("sales", 2) == after
    assert story.hub("sales", 3) == after
    assert story.hub("sales", 4) == after
    # One commit after the first: a target row is gone; one of the batch's two passes the filter.
    assert story.warehouse.codes("sales", 2) == {"D": 1, "N": 1}
    assert story.warehouse.version("sales") == 1
