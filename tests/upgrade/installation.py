"""What the archived installations have in common: their names, and how one is unpacked."""

from pathlib import Path

ARCHIVES = Path(__file__).resolve().parent / "installations"
SCHEMA = "upgraded"
TABLE = "shop.orders"

SUCCEEDS, GOES_ON, FAILS, RETRIED, OWN_SCHEDULE, DIES, TRIGGERED, SNAPSHOTS = (
    2**53 + number for number in (1, 3, 5, 7, 9, 11, 13, 15)
)
