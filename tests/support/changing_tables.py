"""Real tables of each format that change, and the events that the sensors make of it."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from harness.events.event import ChangeEvent
from harness.sense.probe import Probe
from harness.store.work_lists import Upstream
from harness.toolkit.changes import Changed, changed_rows
from tests.support.golden import Watcher
from tests.support.services.iceberg import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)
Row = tuple[int, str | None]


def as_event(change: ChangeEvent) -> ChangeEvent:
    """The form in which a job receives a sensed change."""
    return replace(change, event_ts=1_000, lineage=None)


def told(frame: "DataFrame") -> Counter[tuple[object, ...]]:
    """The rows, each with what became of it in front, and how often it is there."""
    rows = frame.select("_change_type", *(name for name in frame.columns if name[0] != "_"))
    return Counter(tuple(row) for row in rows.collect())


@dataclass(frozen=True)
class Story:
    """What happens to a table that has (1, a) and (2, b), and what is reported of it."""

    steps: tuple[str, ...]
    insert: Sequence[tuple[object, ...]] = ()
    delete: Sequence[tuple[object, ...]] = ()
    #: Why it cannot be read change by change, some words of it.
    reason: str | None = None
    is_complete: bool = False
    options: str = ""
    #: Places in the list of events that are lost on the way.
    lost: tuple[int, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def expected(self) -> Counter[tuple[object, ...]]:
        return Counter(
            [("insert", *row) for row in self.insert] + [("delete", *row) for row in self.delete]
        )

    def check(self, answer: Changed) -> None:
        """Compare an answer with what the story expects."""
        assert told(answer.frame) == self.expected
        assert self.reason is None or self.reason in (answer.reason or ""), answer.reason
        assert answer.is_incremental == (self.reason is None), answer.reason
        assert answer.is_complete == self.is_complete


class DeltaOrders:
    """A Delta table that delta-rs writes, and Spark where a step is SQL."""

    def __init__(self, spark: "SparkSession", path: Path, story: Story) -> None:
        self.spark, self.path = spark, path
        if story.options:
            self.sql(f"create table {{t}} (id bigint, day string) using delta {story.options}")
            self.sql("insert into {t} values (1, 'a'), (2, 'b')")
        else:
            partition_by = ["day"] if "partitioned" in story.properties else None
            configuration = {k: v for k, v in story.properties.items() if k[:5] == "delta"}
            write_deltalake(
                path,
                rows((1, "a"), (2, "b")),
                partition_by=partition_by,
                configuration=configuration,
            )
        self.watcher = Watcher(str(path))
        self.watcher.probe_once()

    def do(self, step: str) -> None:
        """Do one step; what is no name of ours is SQL."""
        name, _, rest = step.partition(" ")
        table = DeltaTable(self.path)
        ours: dict[str, Callable[[], object]] = {
            "append": lambda: write_deltalake(table, rows(*values_in(rest)), mode="append"),
            "replace": lambda: write_deltalake(table, rows(*values_in(rest)), mode="overwrite"),
            "remove": lambda: table.delete(rest),
            "compact": table.optimize.compact,
            "vacuum": lambda: table.vacuum(0, enforce_retention_duration=False, dry_run=False),
            "lose": lambda: [file.unlink() for file in (self.path / rest).iterdir()],
            "clean": lambda: self.clean(table, int(rest)),
        }
        ours.get(name, lambda: self.sql(step))()

    def clean(self, table: DeltaTable, version: int) -> None:
        """Take the commits up to a version out of the log, as it is done after a month."""
        table.create_checkpoint()
        for each in range(version + 1):
            (self.path / "_delta_log" / f"{each:020d}.json").unlink()

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(t=f"delta.`{self.path}`"))

    def events(self, story: Story) -> list[ChangeEvent]:
        """Do all steps, probe after each, and return what was not lost."""
        changes = list[ChangeEvent]()
        for step in story.steps:
            self.do(step)
            result = self.watcher.probe_once()
            assert result.failure is None, result.failure
            changes += result.events
        return kept(changes, story)


class IcebergOrders:
    """An Iceberg table in a catalog."""

    def __init__(self, lake: Lake, probe: Probe, story: Story) -> None:
        self.lake, self.probe = lake, probe
        self.name = f"lake.sales.t{time.monotonic_ns()}"
        properties = {"format-version": "2", **story.properties}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.do(
            f"create table {{t}} (id bigint, day string) using iceberg tblproperties ({listed})"
        )
        self.do("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b')")
        self.upstream = Upstream(
            upstream_id="u", source="iceberg_table", sensor_id=self.name, read_type="batch"
        )
        self.probe_once()

    def do(self, step: str) -> None:
        if step.startswith("call "):
            self.lake.call(step[5:].format(t=self.name.removeprefix("lake."), at=self.at))
        else:
            self.lake.sql(step.format(t=self.name))

    @property
    def at(self) -> int:
        """The snapshot with the first two rows."""
        snapshots = self.lake.session.sql(f"select * from {self.name}.snapshots").collect()
        return int(min(snapshots, key=lambda each: each["committed_at"])["snapshot_id"])

    def probe_once(self) -> Sequence[ChangeEvent]:
        [result] = self.probe.probe([self.upstream], at=AT)
        assert result.failure is None, result.failure
        self.upstream = replace(self.upstream, position=result.position)
        return result.events

    def events(self, story: Story) -> list[ChangeEvent]:
        changes = list[ChangeEvent]()
        for step in story.steps:
            self.do(step)
            changes += self.probe_once()
        return kept(changes, story)

    def changed(self, events: Sequence[ChangeEvent], **more: str) -> Changed:
        return changed_rows(self.lake.session, events, **more)  # type: ignore[arg-type]


def kept(changes: Sequence[ChangeEvent], story: Story) -> list[ChangeEvent]:
    """The events that were not lost, in another order than they came."""
    left = [each for index, each in enumerate(changes) if index not in story.lost]
    return [as_event(change) for change in reversed(left)]


def rows(*values: Row) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([value[0] for value in values], pa.int64()),
            "day": pa.array([value[1] for value in values], pa.string()),
        }
    )


def values_in(text: str) -> list[Row]:
    """Read ``3c 4- `` as (3, c) and (4, null)."""
    return [(int(each[0]), None if each[1:] == "-" else each[1:]) for each in text.split()]
