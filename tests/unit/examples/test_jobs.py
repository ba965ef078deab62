"""What the jobs of the demo make of small tables, and that they read what has changed and no more."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from examples.flights.jobs import (
    airport_traffic,
    carrier_scorecard,
    daily_delays,
    lake,
    month_end_report,
    plane_use,
    storm_watch,
)
from harness.toolkit import changes

FLIGHTS = pd.DataFrame(
    {
        "date": ["2013-01-02", "2013-01-02", "2013-01-02", "2013-01-03"],
        "origin": ["JFK", "JFK", "EWR", "JFK"],
        "dest": ["BOS", "MIA", "BOS", "XXX"],
        "carrier": ["AA", "AA", "UA", "AA"],
        "flight": [1, 2, 3, 4],
        "tailnum": ["N1", "N1", "N2", "N3"],
        "dep_time": [500.0, None, 600.0, 700.0],
        "dep_delay": [10.0, None, 16.0, 15.0],
        "distance": [100, 200, 300, 400],
        "time_hour": ["h1", "h2", "h1", "h9"],
    }
)
WEATHER = pd.DataFrame(
    {
        "date": ["2013-01-02", "2013-01-02", "2013-01-02"],
        "origin": ["JFK", "JFK", "EWR"],
        "hour": [7, 6, 6],
        "time_hour": ["h1", "h2", "h1"],
        "wind_speed": [4.0, 8.0, 3.0],
        "wind_gust": [30.0, 31.0, None],
    }
)
PLANES = pd.DataFrame(
    {"tailnum": ["N1", "N2"], "manufacturer": ["BOEING", "AIRBUS"], "seats": [150, 100]}
)


def rows(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [tuple(row) for row in plain.itertuples(index=False)]


def append(table: str, frame: pd.DataFrame) -> None:
    path = Path.cwd() / lake.BRONZE / table
    path.parent.mkdir(exist_ok=True)
    write_deltalake(str(path), pa.Table.from_pandas(frame, preserve_index=False), mode="append")


def event(table: str, version: int, previous: int | None) -> dict[str, object]:
    return {
        "table": f"bronze.{table}",
        "snapshot_id": str(version),
        "prev_snapshot_id": None if previous is None else str(previous),
        "table_format": "DELTA",
        "operation_type": "APPEND",
        "tags": {},
    }


def gold(table: str) -> list[tuple[object, ...]]:
    frame = DeltaTable(str(Path.cwd() / lake.GOLD / table)).to_pandas()
    return sorted(rows(frame), key=str)


@pytest.fixture
def hand_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[dict[str, object]]], None]:
    """Work in a lake of its own, with these events as the run payload."""
    monkeypatch.chdir(tmp_path)
    return lambda events: monkeypatch.setenv("HEARTBEAT_EVENTS", json.dumps(events))


def test_delays_are_summed_up_by_day_origin_and_carrier_with_the_wind_of_the_hour() -> None:
    assert rows(daily_delays.daily_delays(FLIGHTS, WEATHER)) == [
        ("2013-01-02", "EWR", "UA", 1, 1, 16.0, 3.0),
        ("2013-01-02", "JFK", "AA", 2, 1, 10.0, 6.0),
        ("2013-01-03", "JFK", "AA", 1, 1, 15.0, None),
    ]


def test_the_use_of_planes_leaves_out_cancelled_flights_and_keeps_unregistered_planes() -> None:
    assert rows(plane_use.plane_use(FLIGHTS, PLANES)) == [
        ("2013-01-02", "AIRBUS", 1, 1, 100, 300),
        ("2013-01-02", "BOEING", 1, 1, 150, 100),
        ("2013-01-03", plane_use.UNKNOWN, 1, 1, 0, 400),
    ]


def test_a_register_with_a_plane_without_seats_is_impossible() -> None:
    assert plane_use.impossible(PLANES) is None
    assert plane_use.impossible(PLANES.assign(seats=[150, -100])) == (
        "plane N2 has -100 seats in the register"
    )
    assert plane_use.impossible(PLANES.assign(seats=[0, -100])) == (
        "plane N1 has 0 seats in the register (and 1 more)"
    )


def test_a_destination_that_is_not_in_the_register_of_airports_has_no_name() -> None:
    airports = pd.DataFrame({"faa": ["BOS", "MIA"], "name": ["Boston", "Miami"]})
    assert rows(airport_traffic.airport_traffic(FLIGHTS, airports)) == [
        ("BOS", 2, 2, "Boston"),
        ("MIA", 1, 1, "Miami"),
        ("XXX", 1, 1, None),
    ]


def test_the_report_lists_the_longest_delays_first_and_no_more_than_fit() -> None:
    many = pd.concat([FLIGHTS] * 4, ignore_index=True)
    latest = month_end_report.latest_departures(many)
    assert len(latest) == month_end_report.ROWS
    assert latest["dep_delay"].tolist()[:5] == [16.0, 16.0, 16.0, 16.0, 15.0]


def test_a_cancelled_flight_is_not_on_time() -> None:
    airlines = pd.DataFrame({"carrier": ["AA"], "name": ["American"]})
    assert rows(carrier_scorecard.carrier_scorecard(FLIGHTS, airlines)) == [
        ("2013-01-02", "AA", 2, 1, "American"),
        ("2013-01-02", "UA", 1, 0, None),
        ("2013-01-03", "AA", 1, 1, "American"),
    ]


def test_only_gusts_over_the_limit_are_storms() -> None:
    assert rows(storm_watch.storms(WEATHER)) == [("2013-01-02", "JFK", 6, 31.0)]


def test_a_job_reads_the_rows_of_its_events_and_no_others(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    for date in ("2013-01-01", "2013-01-02", "2013-01-03"):
        append("flights", FLIGHTS.assign(date=date))
    hand_over([event("flights", 1, 0)])

    assert lake.changed_dates(changes.read(), "flights", "weather") == ["2013-01-02"]
    assert len(lake.added(changes.read(), "flights")) == len(FLIGHTS)


def test_the_first_event_of_a_table_means_all_that_it_holds(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    for date in ("2013-01-01", "2013-01-02", "2013-01-03"):
        append("flights", FLIGHTS.assign(date=date))
    hand_over([event("flights", 1, None)])

    assert lake.changed_dates(changes.read(), "flights") == ["2013-01-01", "2013-01-02"]


def test_an_event_after_an_optimize_brings_only_its_own_rows(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    for date in ("2013-01-01", "2013-01-02"):
        append("flights", FLIGHTS.assign(date=date))
    DeltaTable(str(Path.cwd() / lake.BRONZE / "flights")).optimize.compact()
    append("flights", FLIGHTS.assign(date="2013-01-03"))
    hand_over([event("flights", 3, 1)])

    assert lake.changed_dates(changes.read(), "flights") == ["2013-01-03"]


def test_a_run_again_changes_nothing(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    append("flights", FLIGHTS)
    append("weather", WEATHER)
    hand_over([event("flights", 0, None), event("weather", 0, None)])

    daily_delays.main()
    once = gold(daily_delays.TABLE)
    daily_delays.main()

    assert gold(daily_delays.TABLE) == once
    assert len(once) == 3


def test_new_days_leave_the_rows_of_other_days_alone(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    append("planes", PLANES)
    append("flights", FLIGHTS)
    hand_over([event("flights", 0, None)])
    plane_use.main()
    append("flights", FLIGHTS.assign(date="2013-01-04"))
    hand_over([event("flights", 1, 0)])
    plane_use.main()

    dates = [row[0] for row in gold(plane_use.TABLE)]
    assert sorted(set(dates)) == ["2013-01-02", "2013-01-03", "2013-01-04"]


def test_bad_data_ends_the_run_as_failed_and_writes_nothing(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    append("planes", PLANES.assign(seats=[150, -100]))
    append("flights", FLIGHTS)
    hand_over([event("planes", 0, None), event("flights", 0, None)])

    with pytest.raises(SystemExit, match="rejected: plane N2 has -100 seats"):
        plane_use.main()

    assert not (Path.cwd() / lake.GOLD).exists()


def test_a_run_without_any_new_day_writes_nothing(
    hand_over: Callable[[list[dict[str, object]]], None],
) -> None:
    append("planes", PLANES)
    append("flights", FLIGHTS.head(0))
    hand_over([event("flights", 0, None)])

    plane_use.main()

    assert not (Path.cwd() / lake.GOLD).exists()
