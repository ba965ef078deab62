"""Counts by day how many flights of each carrier left on time, under the carrier's name."""

import pandas as pd

from examples.flights.jobs import lake
from harness.toolkit import changes

TABLE = "carrier_scorecard"
#: A departure counts as on time up to so many minutes after its time.
ON_TIME_MINUTES = 15


def carrier_scorecard(flights: pd.DataFrame, airlines: pd.DataFrame) -> pd.DataFrame:
    """Return one row per day and carrier; a cancelled flight is not on time."""
    rated = flights.assign(is_on_time=flights["dep_delay"] <= ON_TIME_MINUTES)
    scored = rated.groupby(["date", "carrier"], as_index=False).agg(
        flights=("flight", "size"), on_time=("is_on_time", "sum")
    )
    return scored.merge(airlines[["carrier", "name"]], on="carrier", how="left")


def main() -> None:
    """Count the days of the new flights; all days when the list of airlines has changed."""
    events = changes.read()
    has_new_names = bool(lake.events_of(events, "airlines"))
    dates = None if has_new_names else lake.changed_dates(events, "flights")
    flights = lake.read("flights", dates)
    scored = carrier_scorecard(flights, lake.read("airlines"))
    dates = dates or sorted(set(flights["date"]))
    lake.replace_dates(TABLE, scored, dates)
    share = scored["on_time"].sum() / max(1, scored["flights"].sum())
    lake.say(f"{lake.days(dates)}: {share:.0%} of {len(flights):,} flights left on time")


if __name__ == "__main__":
    lake.run(main)
