"""Tables sensed by the largest value of a column, against a database in memory."""

import pytest

from harness.config.sources import FirstSight
from harness.events.event import Operation
from harness.sense.database_queries import Case, Dialect, Kind
from tests.support.databases import NOW, Shop

NINE = "2025-04-23 21:09:00"
TEN = "2025-04-23 21:10:00"
FIVE_TO_TEN = "2025-04-23 21:05:00"


def test_the_first_probe_of_rows_is_an_event() -> None:
    shop = Shop()
    shop.table("orders", NINE, TEN)
    [event] = shop.events()

    assert (event.table, event.snapshot_id, event.prev_snapshot_id) == ("shop: orders", TEN, None)


def test_the_first_probe_of_an_empty_table_is_silent_and_its_first_row_is_an_event() -> None:
    shop = Shop()
    shop.table("orders")
    first = shop.events()
    shop.add(NINE)

    assert (first, [event.snapshot_id for event in shop.events()]) == ([], [NINE])


def test_a_baseline_is_silent_and_records_the_largest_value() -> None:
    shop = Shop()
    shop.table("orders", NINE, on_first_sight=FirstSight.BASELINE)
    result = shop.results()["orders"]

    assert (result.events, result.upstream_value) == ((), NINE)


def test_a_larger_key_is_new_data_once() -> None:
    shop = Shop()
    shop.table("orders", NINE)
    shop.sighted().add(TEN)
    [event] = shop.events()

    assert (event.snapshot_id, event.prev_snapshot_id, shop.events()) == (TEN, NINE, [])


def test_an_idle_probe_keeps_the_cursor() -> None:
    shop = Shop()
    shop.table("orders", NINE)
    shop.sighted()
    before = shop.upstreams["orders"].position

    assert shop.results()["orders"].position == before


def test_a_row_with_the_very_largest_key_is_new_data() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().add(TEN)
    [event] = shop.events()

    assert (event.snapshot_id, event.tags["late"]) == (f"{TEN}+1", "true")


def test_a_row_that_was_committed_late_is_new_data() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().add(FIVE_TO_TEN)

    assert len(shop.events()) == 1


def test_each_late_row_is_another_event() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().add(TEN)
    first = shop.events()
    shop.add(TEN)

    assert len({event.id_at("u") for event in [*first, *shop.events()]}) == 2


def test_a_row_older_than_the_overlap_is_not_seen() -> None:
    shop = Shop(overlap=3)
    shop.table("orders", TEN)
    shop.sighted().add(FIVE_TO_TEN)

    assert shop.events() == []


def test_a_row_without_a_key_is_new_data_once() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().add(None)

    assert (len(shop.events()), shop.events()) == (1, [])


def test_a_table_with_nothing_but_rows_without_a_key_has_new_data() -> None:
    shop = Shop()
    shop.table("orders", None)
    first = shop.events()
    shop.add(None)

    assert [event.snapshot_id for event in [*first, *shop.events()]] == ["+1", "+2"]


def test_a_deleted_row_is_not_seen() -> None:
    shop = Shop()
    shop.table("orders", NINE, TEN)
    shop.sighted().run(f"delete from orders where changed = '{NINE}'")

    assert (shop.events(), shop.events()) == ([], [])


def test_when_the_largest_key_falls_the_same_value_is_new_data_again() -> None:
    shop = Shop()
    shop.table("orders", NINE)
    shop.sighted().add(TEN)
    first = shop.events()
    shop.run(f"delete from orders where changed = '{TEN}'")
    fallen = shop.events()
    shop.add(TEN)
    ids = {event.id_at("u") for event in [*first, *shop.events()]}

    assert (fallen, len(ids)) == ([], 2)


def test_an_emptied_table_is_no_new_data_and_its_next_row_is_whatever_its_key() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().run("delete from orders")
    emptied = shop.events()
    shop.add("2001-01-01 00:00:00")

    assert (emptied, len(shop.events())) == ([], 1)


def test_a_table_that_was_loaded_again_with_smaller_keys_has_new_data() -> None:
    shop = Shop()
    shop.table("orders", TEN)
    shop.sighted().run("delete from orders")
    shop.add("2001-01-01 00:00:00")
    [event] = shop.events()

    assert (event.operation_type, event.tags["largest_value_fell"]) == (Operation.UPDATE, "true")


def test_a_key_in_the_future_does_not_hide_what_comes_after() -> None:
    shop = Shop()
    shop.table("orders", "9999-12-31 00:00:00")
    shop.sighted().add(NOW)

    assert len(shop.events()) == 1


def test_numbers_are_compared_as_numbers() -> None:
    shop = Shop()
    shop.queries.kind = Kind.NUMBER
    shop.table("orders", 9)
    shop.sighted().add(10)

    assert [event.snapshot_id for event in shop.events()] == ["10"]


def test_a_number_that_was_given_out_before_and_committed_after_is_new_data() -> None:
    shop = Shop()
    shop.queries.kind = Kind.NUMBER
    shop.table("orders", 5000)
    shop.sighted().add(90_000)
    shop.events()
    shop.add(5001)

    assert len(shop.events()) == 1


def test_a_number_given_out_longer_ago_than_the_overlap_is_not_seen() -> None:
    shop = Shop()
    shop.queries.kind = Kind.NUMBER
    shop.table("orders", 5000)
    shop.sighted().add(90_000)
    shop.queries.now = "2025-04-23 21:51:00"
    shop.events()
    shop.queries.now = "2025-04-23 22:02:00"
    shop.add(190_000)
    shop.events()
    shop.add(5001)

    assert shop.events() == []


def test_a_number_that_moves_to_another_below_the_largest_is_new_data() -> None:
    shop = Shop()
    shop.queries.kind = Kind.NUMBER
    shop.table("orders", 5, 7, 20)
    shop.sighted().run("update orders set changed = 9 where changed = 7")

    assert len(shop.events()) == 1


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.DATE])
def test_days_and_texts_are_compared_as_the_database_does(kind: Kind) -> None:
    shop = Shop()
    shop.queries.kind = kind
    shop.table("orders", "2025-04-22")
    shop.sighted().add("2025-04-23")

    assert [event.snapshot_id for event in shop.events()] == ["2025-04-23"]


def test_a_second_load_on_the_same_day_is_new_data() -> None:
    shop = Shop()
    shop.queries.kind = Kind.DATE
    shop.table("orders", "2025-04-23")
    shop.sighted().add("2025-04-23")

    assert len(shop.events()) == 1


def test_a_value_that_nothing_can_be_compared_to_is_a_failure() -> None:
    shop = Shop()
    shop.table("orders", "infinity")

    assert "'infinity'" in (shop.results()["orders"].failure or "")


# Many tables


def test_all_tables_of_a_database_are_one_statement() -> None:
    shop = Shop()
    for number in range(100):
        shop.table(f"t{number}", NINE)
    shop.sighted().results()

    assert len(shop.queries.asked) == 1


def test_keys_whose_type_no_value_has_shown_are_queried_apart_and_get_their_type_later() -> None:
    shop = Shop()
    shop.queries.kind, shop.queries.type_name = Kind.TEXT, ""
    shop.table("a")
    shop.table("b")
    shop.sighted().results()
    apart = len(shop.queries.asked)
    shop.queries.kind, shop.queries.type_name = Kind.NUMBER, "int"
    shop.add(9, to="a")
    shop.add(7, to="b")
    shop.results()
    shop.queries.asked.clear()
    shop.add(10, to="a")
    found = shop.events("a")

    # The statement for all, and another for the window of the one that changed.
    assert (apart, len(shop.queries.asked)) == (2, 2)
    assert [event.snapshot_id for event in found] == ["10"]


def test_statements_are_bounded() -> None:
    shop = Shop()
    for number in range(101):
        shop.table(f"t{number}", NINE)
    shop.sighted().results()

    assert len(shop.queries.asked) == 2


def test_tables_of_one_connection_are_probed_together() -> None:
    shop = Shop()
    shop.watch("orders")
    shop.watch("sales.items")

    assert len({shop.probe.group_of(each) for each in shop.upstreams.values()}) == 1


def test_a_table_that_is_gone_fails_alone() -> None:
    shop = Shop()
    for name in ("a", "b", "c", "d"):
        shop.table(name, NINE)
    shop.sighted().run("drop table b")
    shop.add(TEN, to="c")
    results = shop.results()

    assert "no such table: b" in (results["b"].failure or "")
    assert [len(results[name].events) for name in ("a", "c", "d")] == [0, 1, 0]


def test_a_table_that_failed_is_queried_apart_until_it_is_back() -> None:
    shop = Shop()
    for name in ("a", "b", "c"):
        shop.table(name, NINE)
    shop.sighted().run("alter table b rename to elsewhere")
    shop.results()
    shop.queries.asked.clear()
    shop.results()
    requests = len(shop.queries.asked)
    shop.run("alter table elsewhere rename to b")
    shop.results()
    shop.queries.asked.clear()
    shop.results()

    assert (requests, len(shop.queries.asked)) == (2, 1)


def test_a_locked_table_stops_no_other_and_the_time_limit_holds() -> None:
    shop = Shop(timeout=8)

    def wait(seconds: float) -> None:
        shop.seconds += seconds

    for name in ("a", "b", "c"):
        shop.table(name, NINE)
    shop.sighted().add(TEN, to="c")
    shop.queries.locked, shop.queries.on_wait = {"a"}, wait
    results = shop.results()

    assert "waited for a lock" in (results["a"].failure or "")
    assert (results["b"].failure, len(results["c"].events), shop.seconds <= 8) == (None, 1, True)


def test_when_time_is_up_the_rest_fails_and_goes_on_at_the_next_probe() -> None:
    shop = Shop(timeout=4)

    def wait(seconds: float) -> None:
        shop.seconds += seconds

    names = [f"t{number}" for number in range(9)]
    for name in names:
        shop.table(name, NINE)
    shop.queries.locked, shop.queries.on_wait = set(names[:8]), wait
    first = shop.results()
    shop.queries.locked = set()

    assert "its turn did not come" in (first["t8"].failure or "")
    assert all(result.failure is None for result in shop.results().values())


def test_a_database_that_is_down_fails_every_table_of_it() -> None:
    shop = Shop()
    shop.table("a", NINE)
    shop.table("b", NINE)
    shop.sighted().queries.is_down = True
    results = shop.results()

    assert all("connection refused" in (result.failure or "") for result in results.values())


def test_what_arrived_while_it_was_down_is_found() -> None:
    shop = Shop()
    shop.table("orders", NINE)
    shop.sighted().queries.is_down = True
    shop.results()
    shop.add(TEN)
    shop.queries.is_down = False

    assert len(shop.events()) == 1


# Rows that are wrong


def test_a_connection_that_is_not_configured_is_named() -> None:
    shop = Shop()
    shop.watch("orders")
    shop.probe = type(shop.probe)({"stock": shop.database}, shop.queries, shop.new_rows)
    failure = shop.results()["orders"].failure or ""

    assert "no shop under connections.jdbc, only stock" in failure


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (None, "upstream_key is empty"),
        ("a.b", "not a column name"),
        ('x") from y --', "not a column"),
    ],
)
def test_a_key_that_names_no_column_is_a_failure(key: str | None, told: str) -> None:
    shop = Shop()
    shop.watch("orders", upstream_key=key)

    assert told in (shop.results()["orders"].failure or "")


def test_names_are_quoted_in_the_case_of_the_database() -> None:
    shop = Shop(dialect=Dialect(quotes="``", bare_names=Case.UPPER))
    shop.watch('sales."or`ders"')
    shop.results()

    assert shop.queries.asked[0].endswith(
        "max(`CHANGED`) as largest, current_timestamp as asked_at from `SALES`.`or``ders`"
    )


def test_a_query_is_sensed_as_a_table_is() -> None:
    shop = Shop()
    shop.table("orders", NINE)
    shop.watch("(select changed from orders where id > 1)")
    del shop.upstreams["orders"]
    name = "(select changed from orders where id > 1)"
    first = shop.events(name)
    shop.add(TEN)

    assert (first, [event.snapshot_id for event in shop.events(name)]) == ([], [TEN])


# Preprocess queries


QUERY = "select * from sensor_new_data where ?upstream_key > '?upstream_value'"


def test_a_query_without_rows_makes_it_no_event_and_the_position_moves() -> None:
    shop = Shop()
    shop.table("orders", NINE, preprocess_query=QUERY)
    shop.sighted().new_rows.answer = False
    shop.add(TEN)
    result = shop.results()["orders"]

    assert (result.events, result.upstream_value) == ((), TEN)


def test_a_query_sees_what_is_larger_than_the_last_key() -> None:
    shop = Shop()
    shop.table("orders", NINE, preprocess_query=QUERY)
    shop.sighted().add(TEN)
    shop.results()
    rows, query = shop.new_rows.asked[-1]

    assert (rows.start and rows.start.text, rows.with_late) == (NINE, False)
    assert query == f"select * from sensor_new_data where changed > '{NINE}'"


def test_a_query_sees_the_overlap_when_rows_came_late() -> None:
    shop = Shop()
    shop.table("orders", NINE, preprocess_query=QUERY)
    shop.sighted().add(NINE, TEN)
    shop.results()
    rows, _ = shop.new_rows.asked[-1]

    assert (rows.start and rows.start.text, rows.with_late) == ("2025-04-23 20:59:00", True)


def test_an_idle_probe_runs_no_query() -> None:
    shop = Shop()
    shop.table("orders", NINE, preprocess_query=QUERY)
    shop.sighted().new_rows.asked.clear()
    shop.results()

    assert shop.new_rows.asked == []
