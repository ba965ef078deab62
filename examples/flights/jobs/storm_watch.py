"""Lists the hours with strong gusts; it is started only when the new weather has any."""

import pandas as pd

from examples.flights.jobs import lake
from harness.toolkit import changes

TABLE = "storms"
#: The same figure stands in the preprocess query of the controls.
STRONG_GUST = 30


def storms(weather: pd.DataFrame) -> pd.DataFrame:
    """Return one row per airport and hour with a strong gust."""
    strong = weather[weather["wind_gust"] > STRONG_GUST]
    columns = ["date", "origin", "hour", "wind_gust"]
    return strong[columns].sort_values(columns[:3]).reset_index(drop=True)


def main() -> None:
    """List the strong gusts of the new weather."""
    new = lake.added(changes.read(), "weather")
    dates = sorted(set(new["date"]))
    found = storms(new)
    lake.replace_dates(TABLE, found, dates)
    strongest = f", up to {found['wind_gust'].max():.0f} mph" if len(found) else ""
    lake.say(f"{lake.days(dates)}: hours with gusts over {STRONG_GUST}: {len(found):,}{strongest}")


if __name__ == "__main__":
    lake.run(main)
