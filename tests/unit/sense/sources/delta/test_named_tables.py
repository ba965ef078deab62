"""Tables of a workspace's catalog: one statement for all, and the history of those that changed."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent
from harness.platform.storage import Storages
from harness.sense.catalog_tables import CatalogName, CatalogTable, name_in, statement
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.sense.sources.delta.history import HistoryRow
from harness.sense.sources.delta.named_tables import NamedTables
from harness.sense.sources.delta.probe import DeltaProbe
from harness.store.work_lists import Upstream
from tests.support.golden import AT, FakeLocator, FakeNewRows, GoldenTable, Watcher, add, info
from tests.unit.sense.sources.delta.test_history import row
from tests.unit.sense.sources.delta.test_names import rows_of

MINUTE = 60_000


@dataclass
class Workspace:
    """A catalog and the histories of its tables; counts the statements that it gets."""

    #: The catalog's own clock, in milliseconds.
    now: int = 1_000 * MINUTE
    tables: dict[str, CatalogTable] = field(default_factory=dict)
    histories: dict[str, list[HistoryRow]] = field(default_factory=dict)
    statements: Counter[str] = field(default_factory=Counter)
    failure: str | None = None

    def create(self, name: str, kind: str = "MANAGED", form: str = "DELTA") -> None:
        self.tables[name] = CatalogTable(kind=kind, format=form, altered_ms=self.now, asked_ms=0)
        self.histories[name] = [row(0, "CREATE TABLE", at=self.now)]

    def write(self, name: str, operation: str = "WRITE", *, by_catalog: bool = True) -> None:
        known = self.histories[name]
        known.insert(0, row(known[0].version + 1, operation, at=self.now))
        if by_catalog:
            self.alter(name)

    def alter(self, name: str) -> None:
        self.tables[name] = replace(self.tables[name], altered_ms=self.now)

    def described(
        self, catalog: str, names: Collection[CatalogName]
    ) -> Mapping[CatalogName, CatalogTable]:
        self.statements["tables"] += 1
        if self.failure:
            raise ProbeFailedError(self.failure)
        return {
            name: replace(self.tables[str(name)], asked_ms=self.now)
            for name in names
            if name.catalog == catalog and str(name) in self.tables
        }

    def table_id(self, table: str) -> str:
        self.statements["detail"] += 1
        return "t-1"

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        self.statements["history"] += 1
        if table not in self.histories:
            raise ProbeFailedError("the table does not exist")
        return self.histories[table][:count]


class Ticks:
    """Probes tables of a workspace as ticks do, a minute apart."""

    def __init__(self, workspace: Workspace, *sensor_ids: str) -> None:
        self.workspace = workspace
        self.upstreams = {
            each: Upstream(
                upstream_id=each, source="delta_table", sensor_id=each, read_type="batch"
            )
            for each in sensor_ids
        }
        self.number = 0
        self.restart()

    def restart(self) -> None:
        named = NamedTables("prod-eu", self.workspace)
        self.pool = ProbePool(
            {"delta_table": DeltaProbe(Storages(), named, FakeNewRows(), self.workspace)}
        )

    def tick(self) -> list[ProbeResult]:
        self.number += 1
        self.workspace.now += MINUTE
        self.workspace.statements.clear()
        at = AT + timedelta(minutes=self.number)
        results = self.pool.probe_all(list(self.upstreams.values()), at=at)
        for each in results:
            if each.failure is None:
                old = self.upstreams[each.upstream_id]
                self.upstreams[each.upstream_id] = replace(old, position=each.position)
        return results

    def events(self) -> list[ChangeEvent]:
        results = self.tick()
        assert [each.failure for each in results if each.failure] == []
        return [event for each in results for event in each.events]

    def events_within(self, ticks: int) -> list[ChangeEvent]:
        return [event for _ in range(ticks) for event in self.events()]


@pytest.fixture
def workspace() -> Workspace:
    workspace = Workspace()
    for name in ("orders", "returns"):
        workspace.create(f"`prod-eu`.`shop`.`{name}`")
    return workspace


ORDERS = "`prod-eu`.`shop`.`orders`"


def others(workspace: Workspace, count: int = 200) -> list[str]:
    """Create more tables, so that the check rarely comes to one of them."""
    names = [f"shop.t{number}" for number in range(count)]
    for each in names:
        workspace.create(str(name_in("prod-eu", each)))
    return names


def settled(workspace: Workspace, *sensor_ids: str) -> Ticks:
    """Return ticks that have found that the catalog's time moves with the data of the orders."""
    ticks = Ticks(workspace, *(sensor_ids or ("shop.orders", "prod-eu.shop.returns")))
    ticks.tick()
    workspace.write(ORDERS)
    ticks.events_within(3)
    return ticks


def test_an_idle_tick_over_a_thousand_tables_is_two_statements(workspace: Workspace) -> None:
    names = [f"prod-eu.shop.t{number}" for number in range(1000)]
    for each in names:
        full = str(name_in("", each))
        workspace.create(full)
        workspace.write(full)
    ticks = Ticks(workspace, *names)
    assert len(ticks.events()) == 1000
    ticks.events_within(2)

    for _ in range(5):
        assert ticks.events() == []
        assert workspace.statements == {"tables": 1, "history": 1}


def test_one_changed_table_costs_one_history_more(workspace: Workspace) -> None:
    ticks = settled(workspace)
    workspace.write("`prod-eu`.`shop`.`returns`")

    [event] = ticks.events()

    assert (event.table, event.snapshot_id) == ("prod-eu.shop.returns", "1")
    # The second history is the check of the one that is idle.
    assert workspace.statements["tables"] == 1 and workspace.statements["history"] <= 2
    assert ticks.events_within(3) == []


def test_a_name_of_two_parts_is_of_the_configured_catalog(workspace: Workspace) -> None:
    ticks = settled(workspace, "shop.orders")
    workspace.write(ORDERS)

    assert [event.table for event in ticks.events()] == ["shop.orders"]


@pytest.mark.parametrize("name", ["orders", "a.b.c.d"])
def test_a_name_of_other_parts_is_refused(workspace: Workspace, name: str) -> None:
    [result] = Ticks(workspace, name).tick()

    assert result.failure == (
        f"The Delta table {name} cannot be sensed: in a workspace its name has two or three parts,"
        " schema.table or catalog.schema.table."
    )


def test_a_catalog_whose_time_does_not_move_with_the_data_is_not_trusted(
    workspace: Workspace,
) -> None:
    ticks = Ticks(workspace, "shop.orders", "shop.returns")
    ticks.tick()
    for version in range(1, 20):
        workspace.write(ORDERS, by_catalog=False)
        assert [event.snapshot_id for event in ticks.events()] == [str(version)]


def test_a_table_that_is_also_written_without_its_catalog_is_found_out_and_then_always_read(
    workspace: Workspace,
) -> None:
    names = others(workspace)
    ticks = settled(workspace, "shop.orders", *names)
    workspace.now += 20 * MINUTE
    workspace.write(ORDERS, by_catalog=False)
    found = ticks.events_within(len(names) + 1)
    workspace.write(ORDERS)
    found += ticks.events_within(3)
    for _ in range(3):
        workspace.write(ORDERS, by_catalog=False)
        found += ticks.events()

    assert [event.snapshot_id for event in found] == ["2", "3", "4", "5", "6"]


def test_the_check_comes_to_every_table_also_in_processes_that_last_one_tick(
    workspace: Workspace,
) -> None:
    ticks = settled(workspace)
    workspace.now += 20 * MINUTE
    workspace.write(ORDERS, by_catalog=False)
    found = []
    for _ in range(30):
        ticks.restart()
        found += ticks.events()

    assert [event.snapshot_id for event in found] == ["2"]


def test_a_catalog_that_is_a_little_late_loses_and_doubles_nothing(workspace: Workspace) -> None:
    ticks = settled(workspace)
    found = []
    for _ in range(5):
        workspace.write(ORDERS, by_catalog=False)
        found += ticks.events_within(2)
        workspace.alter(ORDERS)
        found += ticks.events_within(2)

    assert [event.snapshot_id for event in found] == ["2", "3", "4", "5", "6"]
    assert '"late"' not in (ticks.upstreams["shop.orders"].position or "")


def test_a_change_in_the_moment_of_the_statement_is_not_taken_for_the_one_that_is_known(
    workspace: Workspace,
) -> None:
    ticks = settled(workspace, "shop.orders", *others(workspace))
    workspace.now += MINUTE
    workspace.write(ORDERS)
    workspace.now -= MINUTE
    first = ticks.events()
    # The catalog's clock shows the same time still.
    workspace.histories[ORDERS].insert(0, row(3, at=workspace.now))

    assert [event.snapshot_id for event in (*first, *ticks.events())] == ["2", "3"]


def test_an_altered_definition_is_no_event_and_costs_one_history(workspace: Workspace) -> None:
    ticks = settled(workspace)
    workspace.now += 20 * MINUTE
    workspace.alter(ORDERS)

    assert ticks.events_within(3) == []
    assert workspace.statements["history"] == 1


REFUSED = {
    ("VIEW", ""): "it is a view, which has no log; name the tables that it reads",
    ("EXTERNAL", "PARQUET"): "it is a table of parquet; sense it as hive_table",
    ("MANAGED", "ICEBERG"): "it is a table of iceberg; sense it as iceberg_table",
    ("FOREIGN", "POSTGRESQL"): (
        "it is a foreign table of postgresql, which has no log; sense it in its own system as jdbc"
    ),
}


@pytest.mark.parametrize(("kind", "reason"), REFUSED.items())
def test_what_is_no_delta_table_is_refused_with_the_way_out_and_stops_no_other(
    workspace: Workspace, kind: tuple[str, str], reason: str
) -> None:
    workspace.create("`prod-eu`.`shop`.`other`", *kind)
    workspace.write(ORDERS)

    other, orders = Ticks(workspace, "shop.other", "shop.orders").tick()

    assert other.failure == f"The Delta table shop.other cannot be sensed: {reason}."
    assert len(orders.events) == 1


def test_a_table_that_the_catalog_does_not_show_is_queried_for_its_history(
    workspace: Workspace,
) -> None:
    workspace.write(ORDERS)
    del workspace.tables[ORDERS]

    orders, missing = Ticks(workspace, "shop.orders", "shop.missing").tick()

    assert (orders.failure, len(orders.events)) == (None, 1)
    assert missing.failure is not None and "the table does not exist" in missing.failure


def test_a_catalog_that_does_not_answer_costs_one_statement(workspace: Workspace) -> None:
    ticks = settled(workspace)
    workspace.failure = "the catalog prod-eu does not answer: it is away"

    results = ticks.tick()

    assert [each.failure for each in results] == [
        f"The Delta table {each} cannot be sensed: {workspace.failure}."
        for each in ("shop.orders", "prod-eu.shop.returns")
    ]
    assert workspace.statements == {"tables": 1}


def test_a_table_moves_from_its_log_to_its_catalog_and_back_without_a_lost_or_doubled_event(
    tmp_path: Path, workspace: Workspace
) -> None:
    table = GoldenTable(tmp_path / "orders").create(add("a"))
    watcher = Watcher("prod-eu.shop.orders")
    watcher.locator = FakeLocator(**{"prod-eu.shop.orders": str(table.path)})
    reported: list[ChangeEvent] = []
    for step in range(6):
        table.commit(info("WRITE"), add(f"b{step}"))
        workspace.histories[ORDERS] = watcher.history.rows = rows_of(table)
        if step % 2:
            named = NamedTables("prod-eu", workspace)
            watcher.probe = DeltaProbe(Storages(), named, FakeNewRows(), workspace)
        else:
            watcher.restart()
        reported += watcher.reported()
        assert not watcher.reported()

    assert [event.snapshot_id for event in reported] == ["1", "2", "3", "4", "5", "6"]
    assert [event.prev_snapshot_id for event in reported[1:]] == ["1", "2", "3", "4", "5"]
    assert len({event.lineage for event in reported}) == 1
    assert ["by_history" in event.tags for event in reported] == [False, True] * 3


def test_no_name_leads_out_of_the_statement() -> None:
    names: Sequence[CatalogName] = [
        name_in("x", "`prod``eu`.sales.`a.b`"),
        name_in("x", "`prod``eu`.`it's`.`a``b`"),
    ]

    written = statement(names[0].catalog, names)

    assert "from `prod``eu`.information_schema.tables" in written
    assert written.endswith(r"table_schema in ('it\'s', 'sales') and table_name in ('a.b', 'a`b')")
    assert str(names[1]) == "`prod``eu`.`it's`.`a``b`"
