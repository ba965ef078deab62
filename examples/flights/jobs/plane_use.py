"""Sums up by day and manufacturer how many planes flew how far; checks the register of planes."""

import pandas as pd

from examples.flights.jobs import lake
from harness.toolkit import changes

TABLE = "plane_use"
UNKNOWN = "not registered"


def impossible(planes: pd.DataFrame) -> str | None:
    """Return what is wrong with the register, if anything is."""
    wrong = planes[planes["seats"] <= 0]
    if wrong.empty:
        return None
    first = wrong.iloc[0]
    more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
    return f"plane {first['tailnum']} has {first['seats']} seats in the register{more}"


def plane_use(flights: pd.DataFrame, planes: pd.DataFrame) -> pd.DataFrame:
    """Return one row per day and manufacturer, for flights that departed."""
    departed = flights[flights["dep_time"].notna()]
    flown = departed.merge(planes[["tailnum", "manufacturer", "seats"]], on="tailnum", how="left")
    flown = flown.fillna({"manufacturer": UNKNOWN, "seats": 0}).astype({"seats": "int64"})
    return flown.groupby(["date", "manufacturer"], as_index=False).agg(
        planes=("tailnum", "nunique"),
        flights=("flight", "size"),
        seats=("seats", "sum"),
        miles=("distance", "sum"),
    )


def main() -> None:
    """Sum up the days of the new flights; all days when the register has changed."""
    events = changes.read()
    planes = lake.read("planes")
    reason = impossible(planes)
    if reason:
        lake.reject(reason)
    has_new_register = bool(lake.events_of(events, "planes"))
    dates = None if has_new_register else lake.changed_dates(events, "flights")
    flights = lake.read("flights", dates)
    used = plane_use(flights, planes)
    dates = dates or sorted(set(flights["date"]))
    lake.replace_dates(TABLE, used, dates)
    lake.say(f"{lake.days(dates)}: {used['miles'].sum():,} miles, {len(planes):,} planes known")


if __name__ == "__main__":
    lake.run(main)
