"""Tables that are given by name: the catalog is queried when it must be, and not at every probe."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from harness.errors import ProbeFailedError
from harness.sense.sources.delta.history import HistoryRow
from harness.sense.table_locations import NoSuchTableError, described_location, refuse_other_kinds
from tests.support.golden import AT, FakeHistory, FakeLocator, GoldenTable, Watcher, add, info
from tests.unit.sense.sources.delta.test_history import row

LATER = AT + timedelta(minutes=16)


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "orders").create(add("a"))


@pytest.fixture
def watcher(table: GoldenTable) -> Watcher:
    watcher = Watcher("shop.orders")
    watcher.locator.paths["shop.orders"] = str(table.path)
    watcher.probe_once()
    watcher.locator.asked.clear()
    return watcher


@pytest.fixture
def move(watcher: Watcher, tmp_path: Path) -> Callable[[], GoldenTable]:
    """Let the name be another table elsewhere, while the old folder stays."""

    def create() -> GoldenTable:
        fresh = GoldenTable(tmp_path / "elsewhere").create(add("b"), table_id="t-2")  # type: ignore[arg-type]
        watcher.locator.paths["shop.orders"] = str(fresh.path)
        return fresh

    return create


def test_the_catalog_is_not_queried_at_every_probe(watcher: Watcher) -> None:
    for minute in range(10):
        watcher.at = AT + timedelta(minutes=minute)
        watcher.probe_once()

    assert watcher.locator.asked == []


def test_the_catalog_is_queried_again_from_time_to_time(watcher: Watcher) -> None:
    for minute in range(60):
        watcher.at = AT + timedelta(minutes=minute)
        watcher.probe_once()

    assert 3 <= len(watcher.locator.asked) <= 6


def test_names_are_not_all_queried_again_at_once(tmp_path: Path) -> None:
    locator, watchers = FakeLocator(), []
    for number in range(20):
        table = GoldenTable(tmp_path / f"t{number}").create(add("a"))
        watchers.append(Watcher(f"shop.t{number}"))
        watchers[-1].locator = locator
        locator.paths[f"shop.t{number}"] = str(table.path)
        watchers[-1].restart()
        watchers[-1].probe_once()
    locator.asked.clear()
    for watcher in watchers:
        watcher.at = AT + timedelta(minutes=12, seconds=30)
        watcher.probe_once()

    assert 0 < len(locator.asked) < 20


def test_a_name_that_is_another_table_now_is_followed_though_the_old_folder_stays(
    watcher: Watcher, move: Callable[[], GoldenTable]
) -> None:
    fresh = move()
    before = watcher.operations()
    watcher.at = LATER
    [event] = watcher.probe_once().events
    fresh.commit(info("WRITE"), add("c"))

    assert (before, event.tags["recreated"], watcher.operations()) == ([], "true", ["APPEND"])


def test_what_came_to_the_old_folder_meanwhile_is_a_change_of_another_table(
    table: GoldenTable, watcher: Watcher, move: Callable[[], GoldenTable]
) -> None:
    move()
    table.commit(info("WRITE"), add("late"))
    watcher.at = LATER

    assert [event.tags.get("recreated") for event in watcher.probe_once().events] == ["true"]


def test_a_table_that_was_moved_with_its_log_is_nothing_new(
    table: GoldenTable, watcher: Watcher, tmp_path: Path
) -> None:
    shutil.copytree(table.path, tmp_path / "moved")
    watcher.locator.paths["shop.orders"] = str(tmp_path / "moved")
    watcher.at = LATER
    moved = watcher.operations()
    table.path = tmp_path / "moved"
    table.log = table.path / "_delta_log"
    table.commit(info("WRITE"), add("b"))

    assert (moved, watcher.operations()) == ([], ["APPEND"])


def test_a_name_that_was_dropped_is_a_failure_though_the_folder_stays(watcher: Watcher) -> None:
    del watcher.locator.paths["shop.orders"]
    watcher.at = LATER

    failures = [watcher.probe_once().failure for _ in range(2)]

    expected = (
        "The Delta table shop.orders cannot be sensed: the table shop.orders does not exist; create"
        " it, or correct its name."
    )
    assert failures == [expected, expected]


def test_a_name_that_comes_back_unchanged_is_nothing_new(
    table: GoldenTable, watcher: Watcher
) -> None:
    del watcher.locator.paths["shop.orders"]
    watcher.at = LATER
    watcher.probe_once()
    watcher.locator.paths["shop.orders"] = str(table.path)

    assert watcher.operations() == []


def test_a_catalog_that_is_away_holds_up_no_probe_of_a_place_that_is_known(
    table: GoldenTable, watcher: Watcher
) -> None:
    watcher.locator.is_down = True
    watcher.at = LATER
    table.commit(info("WRITE"), add("b"))

    assert watcher.operations() == ["APPEND"]


def test_a_session_is_not_started_only_to_query_again(
    watcher: Watcher, move: Callable[[], GoldenTable]
) -> None:
    move()
    watcher.locator.awake = False
    watcher.at = LATER

    assert (watcher.operations(), watcher.locator.asked) == ([], [])


def test_the_catalog_is_never_queried_for_a_path(table: GoldenTable) -> None:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    watcher.at = LATER
    watcher.probe_once()

    assert watcher.locator.asked == []


class Locked:
    """A store that denies all access."""

    def stat(self, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    def list_files(self, folder: str) -> None:
        raise PermissionError(13, "Permission denied", folder)


def test_a_table_whose_files_may_not_be_read_is_sensed_by_its_name(table: GoldenTable) -> None:
    watcher = Watcher("shop.orders")
    watcher.locator.paths["shop.orders"] = str(table.path)
    watcher.storage._storage = Locked()  # type: ignore[assignment]
    watcher.history = FakeHistory(row(0))
    watcher.restart()
    first = watcher.operations()
    watcher.history.rows.insert(0, row(1))

    assert (first, watcher.operations()) == (["UPDATE"], ["APPEND"])


def modified_ms(table: GoldenTable, version: int) -> int:
    return table.file(version).stat().st_mtime_ns // 1_000_000


def rows_of(table: GoldenTable) -> list[HistoryRow]:
    """Return the history that Spark would show of a table."""
    versions = range(table.version, -1, -1)
    return [row(version, at=modified_ms(table, version)) for version in versions]


@pytest.mark.parametrize("has_restarted", [False, True])
def test_a_table_whose_files_are_locked_for_a_while_goes_on_by_history_and_then_by_its_log(
    table: GoldenTable, watcher: Watcher, has_restarted: bool
) -> None:
    unlocked = watcher.storage._storage
    reported = []
    for step in range(4):
        watcher.storage._storage = Locked() if step in (1, 2) else unlocked  # type: ignore[assignment]
        watcher.at = AT + timedelta(minutes=11 * step)
        table.commit(info("WRITE"), add(f"file-{step}"))
        watcher.history.rows = rows_of(table)
        if has_restarted:
            watcher.restart()
        reported += watcher.probe_once().events
        assert watcher.operations() == []

    assert [event.snapshot_id for event in reported] == ["1", "2", "3", "4"]
    assert len({event.lineage for event in reported}) == 1
    assert ["by_history" in event.tags for event in reported] == [False, True, True, False]


def test_a_path_whose_files_may_not_be_read_names_the_remedy(table: GoldenTable) -> None:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    watcher.storage._storage = Locked()  # type: ignore[assignment]
    watcher.restart()

    assert (watcher.probe_once().failure or "").endswith(
        " is denied; let this identity read it, or name the table as a catalog does."
    )


@pytest.mark.parametrize(
    ("kind", "provider", "said"),
    [
        ("VIEW", "", "shop.orders is a view, which has no log; name the tables that it reads"),
        ("MANAGED", "parquet", "shop.orders is a table of parquet, not of Delta"),
        ("EXTERNAL", "", "shop.orders is a table of another system, not of Delta"),
    ],
)
def test_what_is_no_delta_table_is_refused_in_one_sentence(
    kind: str, provider: str, said: str
) -> None:
    with pytest.raises(NoSuchTableError) as raised:
        refuse_other_kinds("shop.orders", kind, provider)

    assert str(raised.value) == said


@pytest.mark.parametrize("kind", ["MANAGED", "EXTERNAL", "STREAMING_TABLE", "MATERIALIZED_VIEW"])
def test_every_kind_that_keeps_a_delta_log_is_taken(kind: str) -> None:
    refuse_other_kinds("shop.orders", kind, "DELTA")


class Described:
    """A session whose catalog describes one table; it stands in for a catalog of a workspace."""

    def __init__(self, *facts: tuple[str, str]) -> None:
        self.facts = facts
        self.statements: list[str] = []

    def sql(self, statement: str) -> "Described":
        self.statements.append(statement)
        return self

    def collect(self) -> list[dict[str, str]]:
        return [{"col_name": name, "data_type": reported} for name, reported in self.facts]


HEAD = (("id", "bigint"), ("location", "string"), ("# Detailed Table Information", ""))


def test_any_catalog_gives_the_place_in_its_description() -> None:
    session = Described(
        *HEAD, ("Type", "MANAGED"), ("Location", "abfss://a@b/orders/"), ("Provider", "delta")
    )

    assert described_location(session, "main.shop.orders") == "abfss://a@b/orders"  # type: ignore[arg-type]
    assert session.statements == ["describe table extended `main`.`shop`.`orders`"]


def test_a_column_called_location_is_not_the_place() -> None:
    session = Described(*HEAD, ("Type", "MANAGED"), ("Provider", "delta"))

    with pytest.raises(ProbeFailedError, match="does not show where"):
        described_location(session, "main.shop.orders")  # type: ignore[arg-type]
