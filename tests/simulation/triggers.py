"""Event triggers as the operator writes them, and the producers that register what they wait for."""

import csv
import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

from harness.controls.triggers.parse import COLUMNS, EVENT_TRIGGERS
from harness.events.event import ChangeEvent, Operation, TableFormat
from tests.support.fake_clock import FakeClock
from tests.support.trigger_keeper import Trigger

Row = Mapping[str, object]

#: The tag by which an event is distinguished from all others.
NUMBER = "n"
_COMPLETE = "complete=yes"
#: The product recognizes an event without a snapshot for a week, by clocks that differ by a day.
_KNOWN_AGAIN = timedelta(days=5)
#: The tables that are known by their registrations alone.
_TABLES = ("lake.t0", "lake.t1")


def read(project: Path) -> list[dict[str, str]]:
    """Read the lines of the CSV, as dbt does when it feeds them."""
    path = project / EVENT_TRIGGERS
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def triggers_of(rows: Iterable[Row]) -> list[Trigger]:
    """Return each trigger of the seed's table."""
    in_order = sorted(rows, key=lambda row: str(row["trigger_id"]))
    groups = groupby(in_order, key=lambda row: str(row["trigger_id"]))
    return [Trigger.from_rows([*group]) for _, group in groups]


@dataclass(slots=True)
class _Line:
    """The lines of one trigger, as the operator has them."""

    cells: Mapping[str, str]
    #: Table, partition and tags of each line.
    parts: Sequence[tuple[str, str, str]]
    state: str = "UNPAUSED"
    is_there: bool = True

    def rows(self) -> list[dict[str, str]]:
        return [
            {**dict.fromkeys(COLUMNS, ""), **self.cells, "trigger_state": self.state}
            | {"table": table, "partition": partition, "tags": tags}
            for table, partition, tags in self.parts
        ]


class Triggers:
    """The triggers of one history.

    Args:
        chance: Draws them.
        jobs: The jobs that they may start.
        sensed: The tables that sensors probe.
        began: When the history begins.
        count: How many there are; drawn, too, when not given.
    """

    def __init__(
        self,
        chance: random.Random,
        jobs: Sequence[int],
        sensed: Sequence[str],
        began: datetime,
        count: int | None = None,
    ) -> None:
        self.lines = [
            _draw(chance, f"trigger{number}", chance.choice(jobs), sensed, began)
            for number in range(count or chance.choice((1, 1, 2, 3)))
        ]

    def write(self, project: Path) -> None:
        """Save the CSV as the operator does."""
        with (project / EVENT_TRIGGERS).open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for line in self.lines:
                if line.is_there:
                    writer.writerows(line.rows())

    def edit(self, chance: random.Random) -> str:
        """Pause a trigger or take it out, or the other way round."""
        line = chance.choice(self.lines)
        if chance.random() < 0.5:
            line.state = "PAUSED" if line.state == "UNPAUSED" else "UNPAUSED"
            return f"{line.cells['trigger_id']} {line.state}"
        line.is_there = not line.is_there
        return f"{line.cells['trigger_id']} {'is there' if line.is_there else 'is gone'}"

    def restore(self) -> None:
        """Put every trigger back."""
        for line in self.lines:
            line.state, line.is_there = "UNPAUSED", True

    @property
    def all(self) -> list[Trigger]:
        """Every trigger, also those that are not there."""
        return triggers_of(row for line in self.lines for row in line.rows())


def _draw(
    chance: random.Random, name: str, job_id: int, sensed: Sequence[str], began: datetime
) -> _Line:
    takes_snapshots = chance.random() < 0.35
    start = began + timedelta(minutes=chance.choice((-1800, -60, 0, 10, 120)))
    missed = chance.choice(("", "", "ALL", "NONE"))
    hours = chance.choice((6, 12) if missed == "ALL" else (2, 3, 6, 12))
    tables = [*_TABLES, *sensed] if takes_snapshots else _TABLES
    cells = {
        "trigger_id": name,
        "trigger_type": "SNAPSHOT" if takes_snapshots else "PARTITION",
        "job_id": str(job_id),
        "job_name": f"job-{job_id}",
        "start_timestamp": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "frequency": str(hours),
        "frequency_unit": "HOURS",
        "expires_after": "" if takes_snapshots else chance.choice(("", "2 HOURS", "1 DAYS")),
        "missed_slots": missed,
        "dependency_flag": chance.choice(("", "TRUE", "FALSE")),
    }
    parts = [
        (
            table,
            ""
            if takes_snapshots
            else chance.choice(("EU", "{yyyy-MM-dd}", "{'yyyy-MM-dd HH'}", "{'yyyy-MM-dd HH'}")),
            chance.choice(("", "", _COMPLETE)),
        )
        for table in chance.sample(tables, chance.choice((1, 1, 2)))
    ]
    # Some come when there is an installation without any.
    return _Line(cells=cells, parts=parts, is_there=chance.random() < 0.8)


class Producers:
    """Those who register events, each by files that they leave in the inbox.

    Args:
        inbox: Where they leave them.
        clock: Theirs is right.
        triggers: What somebody waits for.
    """

    def __init__(self, inbox: Path, clock: FakeClock, triggers: Triggers) -> None:
        self._inbox = inbox
        self._clock = clock
        self._triggers = triggers
        self._count = 0
        self._batches = 0
        #: What was sent in a batch that can be read, by the number in its tags.
        self.sent: dict[str, ChangeEvent] = {}
        #: What may be sent once more, and when it was sent first.
        self._recent: list[tuple[datetime, ChangeEvent]] = []
        self._versions: set[tuple[str, int]] = set()

    def register(self, chance: random.Random, newest: Mapping[str, tuple[int, datetime]]) -> str:
        """Leave a batch of new events, now and then with some that were sent before.

        Args:
            chance: Draws them.
            newest: The newest version of each table that a sensor probes, and when it was
                committed.
        """
        events = [self._draw(chance) for _ in range(chance.choice((1, 1, 2, 5)))]
        if newest and chance.random() < 0.3:
            table, (version, committed) = chance.choice(sorted(newest.items()))
            events += self._of_version(table, version, committed)
        named = self._named()
        again = chance.sample(named, min(len(named), chance.choice((0, 0, 1, 3))))
        return self._send([*events, *again], chance)

    def send_again(self, chance: random.Random) -> str:
        """Leave events once more that were sent not long ago."""
        named = self._named()
        return self._send(chance.sample(named, min(len(named), 3)), chance) if named else ""

    def _named(self) -> list[ChangeEvent]:
        """Return what was sent in the last days and has a name: only so long is it recognized."""
        since = self._clock.now() - _KNOWN_AGAIN
        recent = [each for at, each in self._recent[-20:] if at >= since]
        return [each for each in recent if each.snapshot_id or each.event_id]

    def send_garbage(self, chance: random.Random) -> str:
        """Leave a batch of which a line is bad: none of its events counts."""
        event = replace(self._draw(chance), snapshot_id=f"bad-{self._count}")
        good = json.dumps(_told(event))
        bad = chance.choice(("[]", '{"table": ""}', "half a li", '{"table": "t", "frog": 1}'))
        self._inbox.mkdir(exist_ok=True)
        path = self._inbox / self._name()
        path.write_text(f"{good}\n{bad}\n")
        self._stamp(path)
        return path.name

    def satisfy(self, trigger: Trigger, slots: Iterable[datetime]) -> None:
        """Register all that some slots of a trigger wait for."""
        wanted = {
            (part.table, None if trigger.takes_snapshots else part.wanted_in(slot), part.tag)
            for part in trigger.parts
            for slot in slots
        }
        in_order = sorted(wanted, key=lambda each: tuple(str(cell) for cell in each))
        events = [self._event(*each) for each in in_order]
        self._send(events, random.Random(0))

    def _draw(self, chance: random.Random) -> ChangeEvent:
        trigger = chance.choice(self._triggers.all)
        part = chance.choice(trigger.parts)
        near = trigger.number_at(self._clock.now()) + chance.choice((-2, -1, 0, 0, 0, 1))
        wanted = None if part.partition is None else part.wanted_in(trigger.slot(max(near, 0)))
        tag = part.tag if chance.random() < 0.8 else None
        event = self._event(part.table, wanted, tag)
        # Some snapshots have a name of their producer's, and some have none at all.
        match chance.choice(("snapshot", "snapshot", "name", "nothing")):
            case "name":
                event = replace(event, snapshot_id=None, event_id=f"load-{self._count}")
            case "nothing":
                event = replace(event, snapshot_id=None)
        return event

    def _event(self, table: str, partition: str | None, tag: str | None) -> ChangeEvent:
        self._count += 1
        name, _, value = (tag or "").partition("=")
        return ChangeEvent(
            table=table,
            partition=None if partition is None else (json.dumps(partition),),
            snapshot_id=f"9000{self._count}",
            snapshot_ts=int(self._clock.now().timestamp() * 1000),
            table_format=TableFormat.ICEBERG,
            operation_type=Operation.APPEND,
            tags={NUMBER: str(self._count), **({name: value} if name else {})},
        )

    def _of_version(self, table: str, version: int, committed: datetime) -> list[ChangeEvent]:
        """Register what a sensor sees, too."""
        if (table, version) in self._versions:
            return []
        self._versions.add((table, version))
        of_version = {
            "snapshot_id": str(version),
            "snapshot_ts": int(committed.timestamp() * 1000),
            "table_format": TableFormat.DELTA,
        }
        return [replace(self._event(table, None, _COMPLETE), **of_version)]  # type: ignore[arg-type]

    def _send(self, events: Sequence[ChangeEvent], chance: random.Random) -> str:
        new = [each for each in events if each.tags[NUMBER] not in self.sent]
        self.sent |= {each.tags[NUMBER]: each for each in new}
        self._recent += [(self._clock.now(), each) for each in new]
        text = "".join(f"{json.dumps(_told(each))}\n" for each in events)
        self._inbox.mkdir(exist_ok=True)
        path = self._inbox / self._name()
        if chance.random() < 0.3:
            # As Spark writes it: the mark that it is complete comes last.
            path = path.with_suffix("")
            path.mkdir()
            (path / "part-0.json").write_text(text)
            self._stamp(path / "part-0.json")
            path_of_mark = path / "_SUCCESS"
            path_of_mark.touch()
            self._stamp(path_of_mark)
        else:
            path.write_text(text)
            self._stamp(path)
        return f"{path.name} with {', '.join(each.tags[NUMBER] for each in events)}"

    def _name(self) -> str:
        self._batches += 1
        return f"registered-{self._batches:05}.jsonl"

    def _stamp(self, path: Path) -> None:
        # The order of batches is that of their times; those of this machine would not repeat.
        at = self._clock.now().timestamp() + self._batches / 1_000_000
        os.utime(path, (at, at))


def _told(event: ChangeEvent) -> dict[str, object]:
    return {name: value for name, value in event.to_json().items() if value not in (None, {})}
