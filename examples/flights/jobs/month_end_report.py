"""Writes the latest departures into a file, when a user requests to close a month."""

from pathlib import Path, PurePosixPath

import pandas as pd

from examples.flights.jobs import lake
from harness.toolkit import changes

REPORTS = Path("reports")
ROWS = 10
_COLUMNS = ["date", "carrier", "flight", "origin", "dest", "dep_delay"]


def latest_departures(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the departures with the longest delays, the longest first."""
    order = ["dep_delay", "date", "carrier", "flight"]
    late = flights.sort_values(order, ascending=[False, True, True, True])
    return late[_COLUMNS].head(ROWS).reset_index(drop=True)


def main() -> None:
    """Write one report per trigger file, about the flights that came since the last report."""
    events = changes.read()
    latest = latest_departures(lake.added(events, "flights"))
    REPORTS.mkdir(exist_ok=True)
    for event in lake.events_of(events, "month_end"):
        report = REPORTS / f"late_flights_{PurePosixPath(event.tags['path']).stem}.csv"
        latest.to_csv(report, index=False)
        longest = int(latest["dep_delay"].max())
        lake.say(f"{report}: {len(latest)} departures, the latest by {longest:,} minutes")


if __name__ == "__main__":
    lake.run(main)
