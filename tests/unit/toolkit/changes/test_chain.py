"""From a list of events to the range that they cover, and what stands in the way of it."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.toolkit.changes import ChangeEvent, TableFormat
from harness.toolkit.changes.chain import Chain, Fault, chain_of
from tests.support.change_events import DELTA, HIVE, ICEBERG, at, of_partition, step

BOTH = pytest.mark.parametrize("kind", [DELTA, ICEBERG])


def ends(chain: Chain) -> tuple[str | None, str | None]:
    return chain.since, chain.until


@BOTH
def test_events_in_any_order_lead_from_the_first_predecessor_to_the_last_snapshot(
    kind: TableFormat,
) -> None:
    chain = chain_of([step(8, 9, kind), step(4, 7, kind), step(7, 8, kind)])

    assert chain.is_complete
    assert ends(chain) == ("4", "9")
    assert [event.snapshot_id for event in chain.events] == ["7", "8", "9"]


@BOTH
def test_an_event_that_comes_twice_counts_once_with_the_tags_of_both(kind: TableFormat) -> None:
    chain = chain_of(
        [step(4, 5, kind, quality="raw"), step(4, 5, kind, done="99"), step(5, 6, kind)]
    )

    assert chain.is_complete
    assert [dict(event.tags) for event in chain.events] == [{"quality": "raw", "done": "99"}, {}]


@BOTH
def test_a_missing_event_is_a_gap(kind: TableFormat) -> None:
    chain = chain_of([at(step(4, 5, kind), 50), at(step(6, 7, kind), 70)])

    assert chain.fault is Fault.GAP
    assert ends(chain) == ("4", "7")


@BOTH
def test_a_first_event_without_predecessor_stands_for_the_whole_table(kind: TableFormat) -> None:
    chain = chain_of([step(None, 5, kind), step(5, 6, kind)])

    assert chain.fault is Fault.FIRST_SIGHT
    assert ends(chain) == (None, "6")


@BOTH
def test_a_table_that_is_seen_for_the_first_time_is_needed_whole(kind: TableFormat) -> None:
    chain = chain_of([step(4, 5, kind, first_sight="true")])

    assert chain.fault is Fault.FIRST_SIGHT
    assert chain.since is None


@BOTH
@pytest.mark.parametrize(
    ("tag", "fault"),
    [
        ("gap", Fault.GAP),
        ("rolled_back", Fault.REWRITE),
        ("replaced", Fault.REWRITE),
        ("overwrite", Fault.REWRITE),
        ("schema_changed", Fault.SCHEMA),
    ],
)
def test_what_an_event_states_about_itself_breaks_the_chain(
    kind: TableFormat, tag: str, fault: Fault
) -> None:
    chain = chain_of([step(4, 5, kind), step(5, 6, kind, **{tag: "true"})])

    assert chain.fault is fault
    assert ends(chain) == ("4", "6")


@BOTH
@pytest.mark.parametrize("tags", [{"recreated": "true"}, {"table_id": "another"}])
def test_a_table_that_was_created_again_has_no_range(
    kind: TableFormat, tags: dict[str, str]
) -> None:
    chain = chain_of([step(4, 5, kind, table_id="one"), step(5, 6, kind, **tags)])

    assert chain.fault is Fault.RECREATED
    assert ends(chain) == (None, None)


@BOTH
def test_a_table_that_was_created_again_has_no_range_though_both_have_the_same_first_snapshot(
    kind: TableFormat,
) -> None:
    chain = chain_of([step(None, 1, kind, table_id="one"), step(None, 1, kind, table_id="two")])

    assert chain.fault is Fault.RECREATED
    assert ends(chain) == (None, None)


@pytest.mark.parametrize("listed", ["7", '"a"', "[7]", '["a"]', "null"])
def test_a_hive_event_whose_tag_is_no_list_of_partitions_is_of_the_whole_table(listed: str) -> None:
    assert chain_of([of_partition(partitions=listed)]).fault is Fault.FIRST_SIGHT


def test_versions_that_only_maintain_a_delta_table_are_no_gap() -> None:
    assert chain_of([step(4, 5), step(5, 9)]).is_complete


def test_an_event_for_a_backlog_of_a_delta_table_covers_what_it_stands_for() -> None:
    chain = chain_of([step(3, 4), step(4, 900, coalesced_from="5"), step(900, 901)])

    assert chain.is_complete
    assert ends(chain) == ("3", "901")


def test_a_backlog_reported_by_one_at_once_and_singly_by_another_is_whole() -> None:
    assert chain_of(
        [step(4, 7, coalesced_from="5"), step(4, 5), step(5, 7), step(7, 8)]
    ).is_complete


@pytest.mark.parametrize(("before", "after"), [(4, "five"), ("a", 5), (7, 5), (5, 5), (4, None)])
def test_what_is_no_version_after_another_is_not_trusted(before: object, after: object) -> None:
    chain = chain_of([step(3, 4), step(before, after)])

    assert chain.fault is Fault.UNKNOWN
    assert ends(chain) == (None, None)


def test_two_events_that_follow_one_iceberg_snapshot_are_a_fork() -> None:
    chain = chain_of([at(step(4, 5, ICEBERG), 50), at(step(4, 6, ICEBERG), 60)])

    assert chain.fault is Fault.FORK
    assert "4" in (chain.why or "")


def test_iceberg_snapshots_that_lead_in_a_circle_have_no_ends() -> None:
    chain = chain_of([step(5, 6, ICEBERG), step(6, 5, ICEBERG)])

    assert chain.fault is Fault.FORK
    assert ends(chain) == (None, None)


def test_a_circle_beside_the_row_of_iceberg_snapshots_is_not_left_out() -> None:
    chain = chain_of([step(1, 2, ICEBERG), step(5, 6, ICEBERG), step(6, 5, ICEBERG)])

    assert chain.fault is Fault.FORK


def test_without_times_the_ends_of_a_broken_chain_of_iceberg_are_unknown() -> None:
    assert ends(chain_of([step(4, 5, ICEBERG), step(6, 7, ICEBERG)])) == (None, None)


def test_after_a_rollback_the_newest_snapshot_of_a_broken_chain_is_not_the_last() -> None:
    taken_back = at(step(6, 3, ICEBERG, rolled_back="true"), 30)

    assert ends(chain_of([at(step(4, 5, ICEBERG), 50), taken_back])) == (None, None)


def test_an_iceberg_table_replaced_by_one_without_data_is_another_table() -> None:
    replaced = at(step(5, None, ICEBERG), 7)

    assert chain_of([step(4, 5, ICEBERG), replaced]).fault is Fault.RECREATED
    forked = chain_of([at(step(4, 5, ICEBERG), 5), at(step(4, 6, ICEBERG), 6), replaced])
    assert forked.fault is Fault.RECREATED
    assert ends(forked) == (None, None)


def test_the_partitions_of_hive_events_are_put_together() -> None:
    many = of_partition(partitions='[["2026-03-02", 7], ["2026-03-03", null]]')
    chain = chain_of([of_partition('"2026-03-01"', "7"), many, of_partition('"2026-03-01"', "7")])

    assert chain.is_complete
    assert chain.partitions == (
        ('"2026-03-01"', "7"),
        ('"2026-03-02"', "7"),
        ('"2026-03-03"', "null"),
    )


@pytest.mark.parametrize(
    "tags", [{}, {"partitions": "[[1]]", "partitions_truncated": "true"}, {"partitions": "[1"}]
)
def test_a_hive_event_that_does_not_name_all_its_partitions_is_of_the_whole_table(
    tags: dict[str, str],
) -> None:
    chain = chain_of([of_partition("1"), of_partition(**tags)])

    assert chain.fault is Fault.FIRST_SIGHT
    assert chain.partitions is None


def test_a_table_that_was_moved_to_another_format_is_another_table() -> None:
    old, new = replace(of_partition("1"), event_ts=1), replace(step(None, 5, ICEBERG), event_ts=2)
    chain = chain_of([new, old])

    assert chain.table_format is ICEBERG
    assert (chain.fault, chain.why) == (Fault.RECREATED, "the table was of HIVE before")


def test_events_of_a_source_without_a_table_are_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="of KAFKA, and rows are read of DELTA, HIVE, ICE"):
        chain_of([step(None, 5, TableFormat.KAFKA)])


def test_no_events_are_no_range() -> None:
    with pytest.raises(ConfigurationError, match="no events"):
        chain_of([])


HISTORIES = st.tuples(
    st.sampled_from([DELTA, ICEBERG]),
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.randoms(use_true_random=False),
)


@given(HISTORIES)
def test_a_list_with_a_change_missing_is_never_taken_for_whole(
    history: tuple[TableFormat, list[int], list[bool], object],
) -> None:
    kind, distances, kept, random = history
    snapshots = [sum(distances[:count]) for count in range(len(distances) + 1)]
    # Each step between two snapshots is an event; some are lost, the others come in any order.
    steps = [step(*each, kind) for each in itertools.pairwise(snapshots)]
    left = [index for index in range(len(steps)) if kept[index]]
    events: list[ChangeEvent] = [steps[index] for index in left] * 2
    random.shuffle(events)  # type: ignore[attr-defined]
    if not events:
        return
    chain = chain_of(events)

    is_unbroken = left[-1] - left[0] + 1 == len(left)
    assert chain.is_complete == is_unbroken
    if is_unbroken:
        assert ends(chain) == (steps[left[0]].prev_snapshot_id, steps[left[-1]].snapshot_id)
        assert list(chain.events) == [steps[index] for index in left]


def test_a_hive_table_that_was_created_again_is_read_whole() -> None:
    assert chain_of([of_partition("1", recreated="true")]).fault is Fault.RECREATED
    assert chain_of([replace(of_partition("1"), table_format=HIVE)]).is_complete
