"""Process chains sensed by the log of their runs, against a database in memory."""

from harness.config.sources import FirstSight
from tests.support.databases import Warehouse


def test_a_run_that_is_green_at_two_probes_is_reported_once() -> None:
    bw = Warehouse().watch()
    bw.results()
    bw.run("L1")

    assert [bw.events(1), bw.events(1), bw.events(1)] == [[], ["L1"], []]


def test_the_first_sight_of_many_runs_is_one_event_for_the_last() -> None:
    bw = Warehouse().watch()
    bw.run("L1", at="20250421010000")
    bw.run("L3", at="20250423010000")
    bw.run("L2", at="20250422010000")

    assert bw.events(4) == ["L3"]


def test_a_baseline_is_silent_and_the_next_run_is_reported() -> None:
    bw = Warehouse().watch(on_first_sight=FirstSight.BASELINE)
    bw.run("L1")
    first = bw.events(3)
    bw.run("L2", at="20250423020000")

    assert (first, bw.events()) == ([], ["L2"])


def test_a_red_run_is_no_new_data_and_its_repair_is_though_a_later_one_was_green_before() -> None:
    bw = Warehouse().watch()
    bw.results()
    bw.run("L1", status="R", at="20250423010000")
    bw.run("L2", status="G", at="20250423030000")
    before = bw.events(3)
    bw.run("L1", status="G", at="20250423010000")

    assert (before, bw.events(3)) == (["L2"], ["L1"])


def test_a_chain_that_shows_ended_and_goes_on_is_reported_once_when_it_has_ended() -> None:
    bw = Warehouse().watch()
    bw.results()
    reported = []
    for status in ("G", "A", "G", "G", "A", "G", "G", "G"):
        bw.run("L1", status=status)
        reported.append(bw.events(1))

    assert reported == [[], [], [], ["L1"], [], [], [], []]


def test_two_runs_with_one_time_are_two_events() -> None:
    bw = Warehouse().watch()
    bw.results()
    bw.run("L1")
    bw.run("L2")

    assert bw.events(3) == ["L1", "L2"]


def test_each_event_names_the_one_before() -> None:
    bw = Warehouse().watch()
    bw.run("L1")
    bw.events(3)
    bw.run("L2", at="20250423020000")
    bw.results()
    [event] = bw.results()["SALES"].events

    assert (event.prev_snapshot_id, dict(event.tags)) == (
        "L1",
        {"chain": "SALES", "status": "G", "started": "20250423020000"},
    )


def test_a_completed_run_counts_as_a_green_one() -> None:
    bw = Warehouse().watch()
    bw.results()
    bw.run("L1", status="F")

    assert bw.events() == ["L1"]


def test_all_chains_of_a_system_are_one_statement() -> None:
    bw = Warehouse()
    for number in range(500):
        bw.watch(f"C{number}")
    bw.results()
    bw.queries.asked.clear()
    bw.run("L1", chain="C7")

    assert (bw.events(3, "C7"), len(bw.queries.asked)) == (["L1"], 3)


def test_what_is_older_than_the_lookback_is_not_probed() -> None:
    bw = Warehouse(look_back_days=7).watch()
    bw.results()
    bw.run("L1", at="20250410010000")

    assert bw.events(3) == []


def test_a_longer_lookback_makes_no_old_run_new() -> None:
    bw = Warehouse(look_back_days=1).watch()
    bw.run("L1", at="20250401010000")
    bw.run("L2", at="20250423010000")
    bw.events(3)
    bw.system = bw.system.model_copy(update={"look_back_days": 90})
    bw.restart()

    assert bw.events(3) == []


def test_log_ids_are_let_go_when_they_are_older_than_the_lookback() -> None:
    bw = Warehouse(look_back_days=1).watch()
    bw.run("L1", at="20250422010000")
    bw.events(3)
    bw.queries.now = "2025-04-28 21:40:00"
    bw.run("L2", at="20250428010000")
    bw.events(1)
    bw.restart()
    bw.events(3)

    assert "L1" not in (bw.upstreams["SALES"].position or "").replace('"last":"L1"', "")


def test_the_time_is_that_of_the_servers_zone() -> None:
    bw = Warehouse(time_zone="Europe/Berlin").watch()
    bw.run("L1", at="20250423010000")
    bw.results()
    [event] = bw.results()["SALES"].events

    assert event.snapshot_ts == 1745362800000


def test_without_a_zone_no_instant_is_claimed() -> None:
    bw = Warehouse().watch()
    bw.run("L1")
    bw.results()
    [event] = bw.results()["SALES"].events

    assert event.snapshot_ts is None


def test_the_largest_value_is_the_start_of_the_last_run() -> None:
    bw = Warehouse().watch(upstream_key="LOAD_DATE")
    bw.run("L1", at="20250423010000")
    bw.events()

    assert bw.upstreams["SALES"].upstream_value == "20250423010000"


def test_a_query_is_run_over_the_new_runs() -> None:
    query = "select * from sensor_new_data where ?upstream_key > '20250423'"
    bw = Warehouse().watch(upstream_key="LOAD_DATE", preprocess_query=query)
    bw.run("L1")
    bw.new_runs.answer = False
    reported = bw.events(3)
    [(rows, requests)] = bw.new_runs.asked

    assert (reported, [row["LOAD_DATE"] for row in rows]) == ([], ["20250423010000"])
    assert requests == "select * from sensor_new_data where LOAD_DATE > '20250423'"


def test_a_system_that_is_down_fails_each_chain_and_nothing_is_lost() -> None:
    bw = Warehouse().watch().watch("STOCK")
    bw.results()
    bw.run("L1")
    bw.queries.is_down = True
    down = bw.results()
    bw.queries.is_down = False

    assert all("connection refused" in (result.failure or "") for result in down.values())
    assert bw.events() == ["L1"]


def test_a_system_that_is_not_configured_is_named() -> None:
    bw = Warehouse().watch(source="sap_b4")

    assert "no sap_b4 under connections.sap" in (bw.results()["SALES"].failure or "")
