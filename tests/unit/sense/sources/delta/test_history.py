"""Tables whose bare log has too little information are sensed by their history."""

from pathlib import Path

import pytest

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.sense.probe import NewFiles
from harness.sense.sources.delta.history import HistoryRow
from tests.support.golden import (
    FakeHistory,
    FakeNewRows,
    GoldenTable,
    Watcher,
    add,
    info,
    metadata,
    protocol,
)


def row(
    version: int, operation: str = "WRITE", mode: str = "Append", at: int = 0, **metrics: str
) -> HistoryRow:
    return HistoryRow(
        version=version,
        timestamp_ms=at or 1000 + version,
        operation=operation,
        parameters={"mode": mode},
        metrics=metrics,
    )


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    table = GoldenTable(tmp_path / "managed")
    table.commit(protocol("catalogManaged"), metadata(), add("a"))
    watcher = Watcher(str(table.path))
    watcher.history = FakeHistory(row(1), row(0))
    watcher.restart()
    return watcher


def test_first_sight_is_one_event_at_the_newest_version(watcher: Watcher) -> None:
    [event] = watcher.probe_once().events

    assert (event.snapshot_id, event.tags["first_sight"]) == ("1", "true")


def test_first_sight_of_a_table_that_was_only_rearranged_since_is_as_old_as_its_change(
    watcher: Watcher,
) -> None:
    watcher.history.rows = [row(2, "OPTIMIZE"), *watcher.history.rows]
    [event] = watcher.probe_once().events

    assert (event.snapshot_id, event.snapshot_ts) == ("2", 1001)


def test_first_sight_as_baseline_is_silent(tmp_path: Path, watcher: Watcher) -> None:
    quiet = Watcher(watcher.upstream.sensor_id, first=FirstSight.BASELINE)
    quiet.history = watcher.history
    quiet.restart()

    assert quiet.operations() == []


def test_first_sight_of_a_table_that_was_only_created_is_silent(watcher: Watcher) -> None:
    watcher.history.rows = [row(0, "CREATE TABLE")]

    assert watcher.operations() == []


def test_an_idle_probe_keeps_the_cursor(watcher: Watcher) -> None:
    before = watcher.probe_once().position

    result = watcher.probe_once()

    assert (result.position, result.events) == (before, ())


def test_each_version_that_changed_data_is_an_event(watcher: Watcher) -> None:
    watcher.probe_once()
    watcher.history.rows = [
        row(6, "SET TBLPROPERTIES"),
        row(5, "WRITE", numFiles="0", numOutputRows="0"),
        row(4, "MERGE"),
        row(3, "DELETE"),
        row(2),
        *watcher.history.rows,
    ]

    reported = [
        (event.snapshot_id, event.prev_snapshot_id, event.operation_type.value)
        for event in watcher.probe_once().events
    ]

    assert reported == [("2", "1", "APPEND"), ("3", "2", "DELETE"), ("4", "3", "UPDATE")]


def test_silent_versions_move_the_position(watcher: Watcher) -> None:
    watcher.probe_once()
    watcher.history.rows = [row(2, "OPTIMIZE"), *watcher.history.rows]
    before = watcher.upstream.position

    assert watcher.probe_once().position != before


def test_versions_that_the_history_no_longer_has_are_a_gap(watcher: Watcher) -> None:
    watcher.probe_once()
    watcher.history.rows = [row(9), row(8)]

    result = watcher.probe_once()

    assert result.gap is not None and "versions 2 to 7 are gone" in result.gap
    assert [event.tags["gap"] for event in result.events] == ["true"]


def test_a_lower_version_is_a_new_life(watcher: Watcher) -> None:
    [old] = watcher.probe_once().events
    watcher.history = FakeHistory(row(0), table_id="t-2")
    watcher.restart()

    [new] = watcher.probe_once().events

    assert (new.tags["recreated"], new.prev_snapshot_id) == ("true", None)
    assert new.lineage != old.lineage


@pytest.mark.parametrize("newest", [0, 1, 2, 5])
def test_a_table_created_again_is_a_new_life_whatever_its_version(
    watcher: Watcher, newest: int
) -> None:
    [old] = watcher.probe_once().events
    rows = [row(version, at=9000 + version) for version in range(newest, -1, -1)]
    watcher.history = FakeHistory(*rows, table_id="t-2")
    watcher.restart()

    [new] = watcher.probe_once().events

    assert (new.tags["recreated"], new.snapshot_id, new.prev_snapshot_id) == (
        "true",
        str(newest),
        None,
    )
    assert new.id_at("u") != old.id_at("u")
    assert watcher.operations() == []


def test_a_table_created_again_without_data_is_silent_until_its_first_rows(
    watcher: Watcher,
) -> None:
    watcher.probe_once()
    watcher.history = FakeHistory(row(0, "CREATE TABLE", at=9000), table_id="t-2")
    watcher.restart()
    empty = watcher.operations()
    watcher.history.rows.insert(0, row(1, at=9001))

    assert (empty, watcher.operations()) == ([], ["APPEND"])


def test_times_that_changed_with_a_copy_of_the_log_are_no_new_life(watcher: Watcher) -> None:
    watcher.probe_once()
    watcher.history.rows = [row(1, at=9001), row(0, at=9000)]

    assert (watcher.operations(), watcher.probe_once().failure) == ([], None)


def test_a_gap_in_the_history_of_another_table_is_no_gap(watcher: Watcher) -> None:
    watcher.probe_once()
    watcher.history = FakeHistory(row(9, at=9009), row(8, at=9008), table_id="t-2")
    watcher.restart()

    result = watcher.probe_once()

    assert (result.gap, [event.tags["recreated"] for event in result.events]) == (None, ["true"])


def test_a_table_whose_commits_only_its_catalog_has_is_sensed_by_history(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "managed")
    (table.log / "_staged_commits").mkdir()
    watcher = Watcher(str(table.path))
    watcher.history = FakeHistory(row(0))
    watcher.restart()

    assert (watcher.operations(), watcher.probe_once().failure) == (["UPDATE"], None)


def test_a_catalog_that_cannot_be_queried_is_a_failure_and_what_came_meanwhile_is_found(
    watcher: Watcher,
) -> None:
    watcher.probe_once()
    known = watcher.history.rows
    watcher.history.rows = []
    failure = watcher.probe_once().failure
    watcher.history.rows = [row(2), *known]

    assert (failure is None, watcher.operations()) == (False, ["APPEND"])


def test_a_table_that_gains_such_a_feature_goes_on_by_history(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "orders").create(add("a"))
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    table.commit(info("UPGRADE"), protocol("adaptiveMetadata"))
    watcher.history = FakeHistory(row(2), row(1, "UPGRADE PROTOCOL"), row(0))
    watcher.restart()

    [event] = watcher.probe_once().events

    assert (event.snapshot_id, event.prev_snapshot_id) == ("2", "0")


# A key whose largest value has to grow


class LargestByVersion(FakeNewRows):
    """Has the largest value at some versions; at the others the table cannot be read."""

    def __init__(self, **values: str | None) -> None:
        super().__init__()
        self.values = {int(name.removeprefix("at_")): value for name, value in values.items()}

    def largest(self, files: NewFiles, column: str) -> str | None:
        self.asked.append((files, column))
        if files.version not in self.values:
            raise ProbeFailedError(f"the largest {column} cannot be read: no such version")
        return self.values[files.version]


def keyed(watcher: Watcher, first: FirstSight = FirstSight.EVENT, **values: str | None) -> Watcher:
    other = Watcher(watcher.upstream.sensor_id, source="lmu_delta_table", key="id", first=first)
    other.history = watcher.history
    other.rows = LargestByVersion(**values)
    other.restart()
    return other


def test_at_first_sight_the_whole_table_is_queried_for_the_largest_value(watcher: Watcher) -> None:
    keyed_watcher = keyed(watcher, at_1="10")

    result = keyed_watcher.probe_once()

    [(files, column)] = keyed_watcher.rows.asked
    assert (len(result.events), result.upstream_value) == (1, "10")
    assert (files.files, files.version, column) == (None, 1, "id")


def test_only_the_versions_that_raised_the_largest_value_are_events(watcher: Watcher) -> None:
    keyed_watcher = keyed(watcher, at_1="10", at_2="10", at_3="11", at_4="9")
    keyed_watcher.probe_once()
    keyed_watcher.history.rows = [row(4), row(3), row(2), *keyed_watcher.history.rows]

    result = keyed_watcher.probe_once()

    assert [event.snapshot_id for event in result.events] == ["3"]
    assert result.upstream_value == "11"


def test_a_change_whose_largest_value_is_unknown_is_an_event_that_states_it(
    watcher: Watcher,
) -> None:
    keyed_watcher = keyed(watcher, at_1="10")
    keyed_watcher.probe_once()
    keyed_watcher.history.rows = [row(2), *keyed_watcher.history.rows]

    [event] = keyed_watcher.probe_once().events

    assert event.tags["largest_value_unknown"] == "the largest id cannot be read: no such version"


def test_a_largest_value_that_is_not_known_leaves_the_old_one_to_outgrow(watcher: Watcher) -> None:
    keyed_watcher = keyed(watcher, at_1="10", at_3="10")
    keyed_watcher.probe_once()
    keyed_watcher.history.rows = [row(3), row(2), *keyed_watcher.history.rows]

    result = keyed_watcher.probe_once()

    assert ([event.snapshot_id for event in result.events], result.upstream_value) == (["2"], "10")


def test_a_baseline_by_history_has_to_be_outgrown(watcher: Watcher) -> None:
    keyed_watcher = keyed(watcher, FirstSight.BASELINE, at_1="10", at_2="10")
    first = keyed_watcher.operations()
    keyed_watcher.history.rows = [row(2), *keyed_watcher.history.rows]

    assert (first, keyed_watcher.operations()) == ([], [])


def test_after_a_baseline_whose_largest_value_is_unknown_the_next_change_counts(
    watcher: Watcher,
) -> None:
    keyed_watcher = keyed(watcher, FirstSight.BASELINE, at_2="10")
    first = keyed_watcher.operations()
    keyed_watcher.history.rows = [row(2), *keyed_watcher.history.rows]

    assert (first, keyed_watcher.operations()) == ([], ["APPEND"])
