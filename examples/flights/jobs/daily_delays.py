"""Sums up departures and their delays by day, origin and carrier, with the wind they met."""

import pandas as pd

from examples.flights.jobs import lake
from harness.toolkit import changes

TABLE = "daily_delays"


def daily_delays(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    """Return one row per day, origin and carrier.

    Args:
        flights: The flights of some days.
        weather: The weather of the same days, by origin and hour.
    """
    wind = weather[["origin", "time_hour", "wind_speed"]]
    departures = flights.merge(wind, on=["origin", "time_hour"], how="left")
    summed = departures.groupby(["date", "origin", "carrier"], as_index=False).agg(
        flights=("flight", "size"),
        departed=("dep_time", "count"),
        mean_delay_minutes=("dep_delay", "mean"),
        mean_wind_speed=("wind_speed", "mean"),
    )
    return summed.round(2)


def main() -> None:
    """Sum up each day of which new flights or new weather have come."""
    dates = lake.changed_dates(changes.read(), "flights", "weather")
    flights = lake.read("flights", dates)
    summed = daily_delays(flights, lake.read("weather", dates))
    lake.replace_dates(TABLE, summed, dates)
    lake.say(f"{lake.days(dates)}: {len(flights):,} flights in {len(summed):,} rows")


if __name__ == "__main__":
    lake.run(main)
