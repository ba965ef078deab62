"""Counts the flights to each airport, under the airport's name, over all days so far."""

import pandas as pd

from examples.flights.jobs import lake

TABLE = "airport_traffic"


def airport_traffic(flights: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    """Return one row per destination, named when the register of airports has it."""
    counted = flights.groupby("dest", as_index=False).agg(
        flights=("flight", "size"), carriers=("carrier", "nunique")
    )
    names = airports[["faa", "name"]].rename(columns={"faa": "dest"})
    return counted.merge(names, on="dest", how="left")


def main() -> None:
    """Count again whenever the register of airports comes."""
    counted = airport_traffic(lake.read("flights"), lake.read("airports"))
    lake.replace_all(TABLE, counted)
    unknown = int(counted["name"].isna().sum())
    lake.say(f"{len(counted):,} destinations, {unknown:,} of them not in the register")


if __name__ == "__main__":
    lake.run(main)
