"""What counts as new data when an upstream key or a preprocess query decides."""

from pathlib import Path

import pytest

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.sense.preprocess.query import rendered
from harness.store.work_lists import Upstream
from tests.support.golden import FakeNewRows, GoldenTable, Watcher, add, info, remove, stats, vector


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "manual").create(add("a", stats=stats(id=10, day="2025-01-10")))


def keyed(table: GoldenTable, key: str = "id", first: FirstSight = FirstSight.EVENT) -> Watcher:
    return Watcher(str(table.path), source="lmu_delta_table", key=key, first=first)


def seen(watcher: Watcher) -> Watcher:
    watcher.probe_once()
    return watcher


def asking(watcher: Watcher, rows: FakeNewRows) -> Watcher:
    watcher.rows = rows
    watcher.restart()
    return watcher


# The largest value of the key


def test_first_sight_reports_the_largest_value(table: GoldenTable) -> None:
    result = keyed(table).probe_once()

    assert (len(result.events), result.upstream_value) == (1, "10")


def test_a_baseline_records_the_largest_value_all_the_same(table: GoldenTable) -> None:
    watcher = seen(keyed(table, first=FirstSight.BASELINE))
    table.commit(info("WRITE"), add("b", stats=stats(id=9)))

    assert (watcher.upstream.upstream_value, watcher.operations()) == ("10", [])


def test_a_larger_value_is_new_data(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b", stats=stats(id=11)))

    assert (watcher.operations(), watcher.upstream.upstream_value) == (["APPEND"], "11")


@pytest.mark.parametrize("value", [10, 9, -100])
def test_a_value_that_is_not_larger_is_no_new_data(table: GoldenTable, value: int) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b", stats=stats(id=value)))

    assert watcher.operations() == []


def test_no_new_data_still_moves_the_cursor(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    before = watcher.upstream.position
    table.commit(info("WRITE"), add("b", stats=stats(id=9)))
    watcher.probe_once()

    assert watcher.upstream.position != before


def test_numbers_are_compared_as_numbers(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b", stats=stats(id=9)), add("c", stats=stats(id=100)))

    assert watcher.probe_once().upstream_value == "100"


def test_dates_are_compared_as_dates(table: GoldenTable) -> None:
    watcher = seen(keyed(table, "day"))
    table.commit(info("WRITE"), add("b", stats=stats(day="2025-01-09")))
    older = watcher.operations()
    table.commit(info("WRITE"), add("b", stats=stats(day="2025-02-01")))

    assert (older, watcher.operations()) == ([], ["APPEND"])


def test_of_two_commits_only_the_one_that_raised_the_value_is_an_event(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b", stats=stats(id=12)))
    table.commit(info("WRITE"), add("c", stats=stats(id=11)))

    assert [event.snapshot_id for event in watcher.probe_once().events] == ["1"]


def test_a_removal_never_lowers_the_value(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("DELETE"), remove("a"))
    watcher.probe_once()
    table.commit(info("WRITE"), add("b", stats=stats(id=9)))

    assert (watcher.operations(), watcher.upstream.upstream_value) == ([], "10")


def test_a_key_is_found_whatever_its_case(table: GoldenTable) -> None:
    assert keyed(table, "ID").probe_once().upstream_value == "10"


def test_a_key_in_backticks_is_found_in_the_log(table: GoldenTable) -> None:
    watcher = seen(keyed(table, "`day`"))

    assert (watcher.upstream.upstream_value, watcher.rows.asked) == ("2025-01-10", [])


def test_the_rows_are_queried_for_the_field_of_a_structure(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "nested").create(
        add("a", stats=stats(payload={"at": 5})), fields=[("payload", "struct")]
    )
    watcher = asking(keyed(table, "payload.`loaded at`"), FakeNewRows(largest="7"))
    result = watcher.probe_once()

    assert result.upstream_value == "7"
    assert [column for _, column in watcher.rows.asked] == ["`payload`.`loaded at`"]


def test_a_key_that_is_no_column_is_a_failure_that_names_the_columns(table: GoldenTable) -> None:
    assert keyed(table, "load_dat").probe_once().failure == (
        f"The Delta table {table.path} cannot be sensed: "
        "upstream_key load_dat is not a column of it; it has id, day, name."
    )


def test_exact_statistics_spare_the_rows(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b", stats=stats(id=11)))
    watcher.probe_once()

    assert watcher.rows.asked == []


def test_a_file_of_nulls_has_no_value(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    nothing = '{"numRecords": 3, "maxValues": {}, "nullCount": {"id": 3}}'
    table.commit(info("WRITE"), add("b", stats=nothing))

    assert (watcher.operations(), watcher.rows.asked) == ([], [])


INEXACT: dict[str, tuple[str, dict[str, object]]] = {
    "strings, which may be cut": ("name", {"stats": stats(name="zzz")}),
    "no statistics": ("id", {}),
    "statistics of other columns": ("id", {"stats": stats(day="2030-01-01")}),
    "statistics that are no JSON": ("id", {"stats": "{"}),
    "wide bounds": ("id", {"stats": '{"tightBounds": false, "maxValues": {"id": 99}}'}),
    "hidden rows": ("id", {"stats": stats(id=99), "deletionVector": vector(1)}),
}


@pytest.mark.parametrize(("key", "file"), INEXACT.values(), ids=INEXACT)
def test_statistics_that_are_not_exact_leave_the_answer_to_the_rows(
    table: GoldenTable, key: str, file: dict[str, object]
) -> None:
    watcher = asking(keyed(table, key), FakeNewRows(largest="50"))
    watcher.probe_once()
    watcher.rows.asked.clear()
    watcher.rows.answer_largest = "60"
    table.commit(info("WRITE"), add("b", **file))

    result = watcher.probe_once()

    assert (result.upstream_value, [key for _, key in watcher.rows.asked]) == ("60", [key])


def test_only_the_new_files_are_queried_for_their_largest_value(table: GoldenTable) -> None:
    watcher = seen(keyed(table))
    table.commit(info("WRITE"), add("b%20c"))
    watcher.probe_once()

    [(files, _)] = watcher.rows.asked
    assert files.files is not None
    assert [(file.path, file.version) for file in files.files] == [("b c", 1)]


def test_a_delta_table_is_reported_whatever_its_key(table: GoldenTable) -> None:
    watcher = seen(Watcher(str(table.path), key="no_such_column"))
    table.commit(info("WRITE"), add("b", stats=stats(id=1)))

    assert watcher.operations() == ["APPEND"]


# The preprocess query

QUERY = "select * from sensor_new_data where id > 5"


def queried(table: GoldenTable, query: str = QUERY, *, returns_row: bool = True) -> Watcher:
    watcher = Watcher(str(table.path), query=query)
    return asking(watcher, FakeNewRows(returns_row=returns_row))


@pytest.mark.parametrize(("returns_row", "told"), [(True, ["APPEND"]), (False, [])])
def test_no_row_returned_means_no_event(
    table: GoldenTable, returns_row: bool, told: list[str]
) -> None:
    watcher = seen(queried(table, returns_row=returns_row))
    table.commit(info("WRITE"), add("b"))

    assert watcher.operations() == told


def test_no_row_returned_still_moves_the_position(table: GoldenTable) -> None:
    watcher = seen(queried(table, returns_row=False))
    before = watcher.upstream.position
    table.commit(info("WRITE"), add("b"))
    watcher.probe_once()

    assert watcher.upstream.position != before


def test_the_query_runs_over_the_files_that_new_commits_added(table: GoldenTable) -> None:
    watcher = seen(queried(table))
    watcher.rows.asked.clear()
    table.commit(info("WRITE"), add("b"))
    table.commit(info("WRITE"), add("c"))
    watcher.probe_once()

    [(files, _)] = watcher.rows.asked
    assert files.files is not None
    assert [(file.path, file.version) for file in files.files] == [("b", 1), ("c", 2)]


def test_first_sight_runs_the_query_over_the_whole_table(table: GoldenTable) -> None:
    watcher = seen(queried(table))

    [(files, _)] = watcher.rows.asked
    assert (files.files, files.version) == (None, 0)


def test_an_idle_probe_runs_no_query(table: GoldenTable) -> None:
    watcher = seen(queried(table))
    watcher.rows.asked.clear()
    watcher.probe_once()

    assert watcher.rows.asked == []


def test_a_deletion_brings_no_new_rows_so_no_query_runs(table: GoldenTable) -> None:
    watcher = seen(queried(table))
    watcher.rows.asked.clear()
    table.commit(info("DELETE"), remove("a"), add("rest"))

    assert (watcher.operations(), watcher.rows.asked) == ([], [])


def test_the_rows_that_a_deletion_kept_are_not_new(table: GoldenTable) -> None:
    watcher = seen(queried(table))
    watcher.rows.asked.clear()
    table.commit(info("WRITE"), add("b"))
    table.commit(info("DELETE"), remove("a"), add("rest"))
    watcher.probe_once()

    [(files, _)] = watcher.rows.asked
    assert files.files is not None
    assert [file.path for file in files.files] == ["b"]


def test_a_file_that_only_got_a_vector_is_not_new(table: GoldenTable) -> None:
    watcher = seen(queried(table))
    watcher.rows.asked.clear()
    table.commit(info("UPDATE"), remove("a"), add("a", deletionVector=vector(1)), add("b"))
    watcher.probe_once()

    [(files, _)] = watcher.rows.asked
    assert files.files is not None
    assert ([file.path for file in files.files], files.plain) == (["b"], True)


def test_a_query_that_fails_is_a_failed_probe_and_moves_nothing(table: GoldenTable) -> None:
    class Broken(FakeNewRows):
        def any_row(self, files: object, query: str) -> bool:
            raise ProbeFailedError("its preprocess_query fails: no column x")

    watcher = seen(Watcher(str(table.path), query=QUERY))
    before = watcher.upstream.position
    table.commit(info("WRITE"), add("b"))
    asking(watcher, Broken())

    result = watcher.probe_once()

    assert (result.position, result.failure) == (
        before,
        f"The Delta table {table.path} cannot be sensed: its preprocess_query fails: no column x.",
    )


# Rendering


def render(
    query: str, key: str | None = "load_date", value: str | None = "2025-01-01"
) -> str | None:
    return rendered(
        Upstream(
            upstream_id="u",
            source="delta_table",
            sensor_id="a.b",
            read_type="batch",
            upstream_key=key,
            preprocess_query=query,
            upstream_value=value,
        )
    )


def test_the_key_stands_bare() -> None:
    query = "SELECT * FROM sensor_new_data WHERE ?upstream_key >= current_date() - 7"

    assert render(query) == "SELECT * FROM sensor_new_data WHERE load_date >= current_date() - 7"


@pytest.mark.parametrize(
    ("key", "spelled"),
    [
        ("payload.loaded_at", "payload.loaded_at"),
        ("`load date`", "`load date`"),
        ("payload.`loaded at`", "`payload`.`loaded at`"),
        ("`a.b; drop table c`", "`a.b; drop table c`"),
        ("größe", "`größe`"),
    ],
)
def test_an_unusual_key_stands_in_backticks(key: str, spelled: str) -> None:
    assert render("?upstream_key > 1", key=key) == f"{spelled} > 1"


def test_backticks_around_the_placeholder_are_those_of_the_key() -> None:
    assert render("`?upstream_key` > 1", key="`load date`") == "`load date` > 1"


@pytest.mark.parametrize("written", ["?upstream_value", "'?upstream_value'", '"?upstream_value"'])
def test_the_value_stands_as_one_literal_however_it_was_written(written: str) -> None:
    assert render(f"x > {written} and y") == "x > '2025-01-01' and y"


def test_no_value_is_null() -> None:
    assert render("x > ?upstream_value", value=None) == "x > NULL"


@pytest.mark.parametrize(
    ("value", "literal"),
    [("O'Brien", r"'O\'Brien'"), ("a\\", r"'a\\'"), ("') or (1=1", r"'\') or (1=1'")],
)
def test_a_value_cannot_leave_its_quotes(value: str, literal: str) -> None:
    assert render("x > ?upstream_value", value=value) == f"x > {literal}"


def test_a_value_that_resembles_a_placeholder_is_only_a_value() -> None:
    assert render("x > ?upstream_value", value="?upstream_key") == "x > '?upstream_key'"


@pytest.mark.parametrize("key", ["a b", "x; drop table y", "1=1 or x", "`a", "a`b`", "load_date\n"])
def test_a_key_that_is_no_column_name_is_refused(key: str) -> None:
    with pytest.raises(ProbeFailedError, match="is not a column name"):
        render("?upstream_key > 1", key=key)


def test_a_query_that_needs_a_key_and_has_none_is_refused() -> None:
    with pytest.raises(ProbeFailedError, match="upstream_key is empty"):
        render("?upstream_key > 1", key=None)
