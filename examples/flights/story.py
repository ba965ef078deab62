"""The story of the demo, act by act: what happens in the world, and which jobs it should start."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from examples.flights.arrivals import Arrivals

DAYS = ("2013-01-02", "2013-01-03", "2013-01-04", "2013-01-05", "2013-01-06")
FIRST, SECOND, THIRD, FOURTH, FIFTH = DAYS

#: The last act leaves this job waiting; `explain` shows it.
ASKED_ABOUT = "daily-delays"


class World(Protocol):
    """What an act can move."""

    @property
    def arrivals(self) -> Arrivals:
        """The systems upstream."""
        ...

    @property
    def controls(self) -> Path:
        """The CSV that the operator edits."""
        ...

    def run_command(self, *arguments: str) -> None:
        """Let the operator type a command of the harness."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One act: its heading, its description, what happens, and what the tick should start."""

    heading: str
    text: str
    happens: Callable[[World], object]
    starts: frozenset[str] = frozenset()


def _first_day(world: World) -> None:
    world.arrivals.flights(FIRST)
    world.arrivals.weather(FIRST)
    world.arrivals.first_planes()


def _late_weather(world: World) -> None:
    world.arrivals.weather(SECOND)
    world.arrivals.flights(THIRD)
    world.arrivals.weather(THIRD)


def _nothing(world: World) -> None:
    pass


def _month_end(world: World) -> None:
    world.arrivals.trigger("2013-01")
    world.arrivals.airports()


def _mend(world: World) -> None:
    world.arrivals.mend_planes()
    world.run_command("retry", "plane-use")
    unpause(world.controls, "bronze.airlines")


def _airlines_go(world: World) -> None:
    world.arrivals.lose_airlines()
    world.arrivals.weather(FOURTH)


def _airlines_return(world: World) -> None:
    world.arrivals.restore_airlines()
    world.arrivals.last_airline()


def unpause(controls: Path, table: str) -> None:
    """Edit the CSV: the rows of a table are no longer paused."""
    lines = controls.read_text().splitlines(keepends=True)
    edited = [
        line.replace(",PAUSED,", ",UNPAUSED,") if f",{table}," in line else line for line in lines
    ]
    controls.write_text("".join(edited))


ACTS = (
    Act(
        heading="The first day arrives",
        text=f"Flights and weather of {FIRST} come in, and a first part of the register of planes."
        " The register of airports is announced: its table is there, and empty.",
        happens=_first_day,
        starts=frozenset({"daily-delays", "plane-use"}),
    ),
    Act(
        heading="Only flights arrive",
        text=f"Flights of {SECOND} come in. The weather is late.",
        happens=lambda world: world.arrivals.flights(SECOND),
        starts=frozenset({"plane-use"}),
    ),
    Act(
        heading="The weather catches up",
        text=f"The weather of {SECOND}, then flights and weather of {THIRD}, a day with a storm:"
        " one run takes both days, and the job that lists strong gusts finds some.",
        happens=_late_weather,
        starts=frozenset({"daily-delays", "plane-use", "storm-watch"}),
    ),
    Act(heading="A quiet moment", text="Nothing arrives; the runs have ended.", happens=_nothing),
    Act(
        heading="OPTIMIZE runs on the flights",
        text="The table has a new version and other files, and the same rows: no event, no dbt,"
        " no Spark.",
        happens=lambda world: world.arrivals.optimize_flights(),
    ),
    Act(
        heading="The month is to be closed",
        text="Finance puts the file 2013-01.done into the folder month_end, and the register of"
        " airports is there at last. Both jobs take the flights that have waited for them.",
        happens=_month_end,
        starts=frozenset({"month-end-report", "airport-traffic"}),
    ),
    Act(
        heading="Bad data arrives",
        text="The rest of the register of planes comes in; in it a plane has less than no seat.",
        happens=lambda world: world.arrivals.last_planes_with_a_mistake(),
        starts=frozenset({"plane-use"}),
    ),
    Act(
        heading="The failure is noticed",
        text=f"Flights of {FOURTH} come in, but plane-use is held: its check has rejected the"
        " register.",
        happens=lambda world: world.arrivals.flights(FOURTH),
    ),
    Act(
        heading="An operator steps in",
        text="The register is repaired and the failed run asked for again. In the controls CSV, the"
        " rows of the airlines become UNPAUSED: two jobs start, and one of them runs dbt.",
        happens=_mend,
        starts=frozenset({"plane-use", "carrier-scorecard", "flight-tables"}),
    ),
    Act(
        heading="A table cannot be read",
        text=f"The airlines are moved away. The weather of {FOURTH} comes in, and its job starts"
        " all the same.",
        happens=_airlines_go,
        starts=frozenset({"daily-delays"}),
    ),
    Act(
        heading="It still cannot be read",
        text=f"Flights of {FIFTH} come in. What is known about the airlines is not recorded again.",
        happens=lambda world: world.arrivals.flights(FIFTH),
        starts=frozenset({"plane-use"}),
    ),
    Act(
        heading="The airlines are back",
        text="The table is where it was, with one carrier more.",
        happens=_airlines_return,
        starts=frozenset({"carrier-scorecard", "flight-tables"}),
    ),
    Act(
        heading="The end of the day",
        text=f"Nothing arrives. The weather of {FIFTH} has not come, and one job waits for it.",
        happens=_nothing,
    ),
)
