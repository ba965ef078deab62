"""Two weeks of shops: what they changed each day, what fails, and what a classical daily pipeline makes of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.support.self_healing.pipeline import Order

MONDAY = datetime.fromisoformat("2024-04-22")
DAYS = [MONDAY + timedelta(days=number) for number in range(15)]


def day(month: int, number: int) -> datetime:
    return datetime.fromisoformat(f"2024-{month:02d}-{number:02d}")


#: What fails on a day: the source does not answer, the append to bronze dies, it is done twice, the model dies before
#: the merge or after it. From Friday to Sunday a bug lets it die.
FAILS: Mapping[datetime, str] = {
    day(4, 23): "extract",
    day(4, 24): "append",
    day(4, 26): "before",
    day(4, 27): "after",
    day(4, 28): "append twice",
    day(5, 3): "before",
    day(5, 4): "before",
    day(5, 5): "before",
}
#: The days with a file of the branch: when it comes, and when it comes once more, with more in it.
BRANCH: Mapping[datetime, tuple[datetime, datetime | None]] = {
    day(4, 22): (day(4, 22), None),
    day(4, 25): (day(4, 29), None),
    day(4, 26): (day(4, 26), day(4, 30)),
    day(4, 27): (day(4, 27), day(4, 30)),
    day(5, 1): (day(5, 1), None),
}


def extracted_at(date: datetime) -> datetime:
    """The instant of a day's extract, and of its partition."""
    return date + timedelta(hours=23)


def handed_over_at(date: datetime) -> datetime:
    """The partition of the branch's file for a day."""
    return date + timedelta(hours=12)


def changes_of(date: datetime) -> Iterator[Order]:
    """What changed in the web shop on a day: two orders are new, some of before go on."""
    number = (date - MONDAY).days
    for which in range(2):
        yield Order(
            "web", number * 10 + which, "open", 100 + number, date + timedelta(hours=9 + which)
        )
    for back, status in ((1, "paid"), (3, "sent"), (6, "back")):
        if number >= back:
            yield Order(
                "web",
                (number - back) * 10,
                status,
                number,
                date + timedelta(hours=15, minutes=back),
            )


def source_on(date: datetime) -> dict[int, Order]:
    """What the shop's table contains at the end of a day: one row for each order."""
    return {each.number: each for before in DAYS if before <= date for each in changes_of(before)}


def branch_file(date: datetime, *, again: bool) -> list[Order]:
    """The branch's file for a day; the one that comes again has a correction and a new order."""
    number = (date - MONDAY).days
    first = Order("branch", number, "open", number, date + timedelta(hours=10))
    # It was changed at the same instant, and only the second file has it.
    mended = Order("branch", number + 500, "open", 1, date + timedelta(hours=10))
    gone_on = Order("branch", number, "paid", number, date + timedelta(hours=11))
    return [first, mended, gone_on] if again else [first]


@dataclass
class Classical:
    """A pipeline whose job of a day takes that day; played in memory."""

    today: datetime = MONDAY
    silver: dict[tuple[str, int], Order] = field(default_factory=dict)

    def run(self, date: datetime) -> None:
        """Take what changed on a day, as the source has it today, and the branch's file for it."""
        found = [
            each
            for each in source_on(self.today).values()
            if each.modified_at.date() == date.date()
        ]
        arrives, again = BRANCH.get(date, (None, None))
        if arrives and arrives <= self.today:
            found += branch_file(date, again=again is not None and again <= self.today)
        for order in found:
            known = self.silver.get((order.shop, order.number))
            if known is None or known.modified_at <= order.modified_at:
                self.silver[order.shop, order.number] = order

    def live(self) -> None:
        """Let the scheduler run each day's job on its day; some fail."""
        for date in DAYS:
            self.today = date
            if FAILS.get(date) not in ("extract", "append", "before"):
                self.run(date)

    def steps_by_hand(self) -> int:
        """Run jobs of past days again, as somebody has to; return how many of them changed something."""
        steps = 0
        for date in DAYS:
            before = dict(self.silver)
            self.run(date)
            steps += self.silver != before
        return steps
