"""Upstreams of other kinds than tables with versions: each behind the product's own probe.

What a probe reads is in memory, or in the folder of the history: folders of files, topics with
partitions, tables of a database and chains of an SAP system in SQLite, metadata files of Iceberg.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from harness.config.connections import IcebergCatalog, JdbcDatabase, SapSystem, SapSystems
from harness.platform.storage import LocalStorage, Storages
from harness.sense.probe import Probe, ProbeResult
from harness.sense.sources.iceberg.catalog import Catalogs
from harness.sense.sources.iceberg.probe import IcebergProbe
from harness.sense.sources.jdbc.probe import JdbcProbe
from harness.sense.sources.kafka.filter import Admission
from harness.sense.sources.kafka.probe import KafkaProbe
from harness.sense.sources.sap import SapProbe
from harness.sense.sources.trigger_file import TriggerFileProbe
from harness.store.work_lists import Upstream
from tests.support.databases import FakeNewRows, FakeQueries, FakeRuns
from tests.support.fake_kafka import FakeKafka, FakeQuestions
from tests.support.iceberg_tables import IcebergFolder

Row = Mapping[str, object]

_PARTITIONS = 3
#: A row of a database may be committed so late; the probe allows for ten minutes.
_LATE = timedelta(minutes=5)
#: A run of a chain is expected for so long; the probe reads back for ninety days.
_LOOKED_FOR = timedelta(days=60)


@dataclass(slots=True, kw_only=True)
class Systems:
    """Everything that upstreams of other kinds are in.

    Args:
        folder: An empty folder.
    """

    folder: Path
    kafka: FakeKafka = field(default_factory=FakeKafka)
    shop: FakeQueries = field(default_factory=FakeQueries)
    sap: FakeQueries = field(default_factory=FakeQueries)

    def __post_init__(self) -> None:
        self.sap.sql.execute(
            "create table RSPCLOGCHAIN"
            " (CHAIN_ID text, LOG_ID text primary key, DATUM text, ZEIT text, ANALYZED_STATUS text)"
        )

    def probes(self) -> Mapping[str, Probe]:
        """Make the probes of one process."""
        storages = Storages(LocalStorage(), LocalStorage())
        database = JdbcDatabase(url="jdbc:fake:shop", timeout_seconds=30, overlap_minutes=10)
        system = SapSystem(url="jdbc:fake:bw", look_back_days=90)
        lake = {"lake": IcebergCatalog(warehouse=str(self.folder))}
        questions = FakeQuestions()
        return {
            "trigger_file": TriggerFileProbe(storages, str(self.folder)),
            "kafka": KafkaProbe(self.kafka.connect, Admission(questions)),
            "jdbc": JdbcProbe({"shop": database}, self.shop, FakeNewRows(), lambda: 0.0),
            "sap_bw": SapProbe(SapSystems(sap_bw=system), self.sap, FakeRuns(), lambda: 0.0),
            "iceberg_table": IcebergProbe(storages, Catalogs(lake, self.shop), questions),
        }

    def let_it_be(self, at: datetime) -> None:
        """Let the clocks of the databases show an instant."""
        self.shop.now = self.sap.now = f"{at:%Y-%m-%d %H:%M:%S}"


@dataclass(slots=True, kw_only=True)
class Other:
    """One upstream of another kind: it has changes, each with a mark of its own."""

    systems: Systems
    sensor_id: str
    source: str = ""
    key: str = ""
    is_down: bool = False
    count: int = 0
    #: What was there at the first probe; what is newer has to become an event.
    first_sight: frozenset[str] | None = None
    #: Changes that no probe could have found.
    excused: set[str] = field(default_factory=set)

    def marks(self) -> frozenset[str]:
        """Return the marks of what is there."""
        raise NotImplementedError

    def change(self, at: datetime, *, brings: bool) -> None:
        """Let something change."""
        raise NotImplementedError

    def forget(self) -> None:
        """Let something go that was there."""

    def marks_of(self, event: Row) -> set[str]:
        """Return the marks of the changes that an event is about."""
        raise NotImplementedError

    def saw(self, upstream: Upstream, result: ProbeResult, at: datetime) -> None:
        """Record what a probe came to."""

    def commit(self, at: datetime, *, brings: bool) -> None:
        """Let something change that brings data, or something else."""
        self.count += 1
        self.change(at, brings=brings)

    def due(self) -> set[str]:
        """Return the marks that have to be in events by the time that everything was probed."""
        first = self.first_sight if self.first_sight is not None else self.marks()
        return {*self.marks()} - first - self.excused


@dataclass(slots=True, kw_only=True)
class Folder(Other):
    """A folder of files; the newest state of each file is a change."""

    source: str = "trigger_file"

    @property
    def _path(self) -> Path:
        path = self.systems.folder / self.sensor_id
        path.mkdir(exist_ok=True)
        return path

    def marks(self) -> frozenset[str]:
        files = (each for each in self._path.iterdir() if each.suffix == ".csv")
        return frozenset(
            f"{self.sensor_id}/{each.name}@{each.stat().st_mtime_ns // 1_000_000}" for each in files
        )

    def change(self, at: datetime, *, brings: bool) -> None:
        # Every fourth file is written again, and what is not complete has another name.
        number = self.count - 1 if self.count % 4 == 0 else self.count
        path = self._path / (f"f{number}.csv" if brings else f"_f{number}.tmp")
        path.write_text("x" * self.count)
        ms = int(at.timestamp() * 1000) + self.count
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def forget(self) -> None:
        for path in sorted(self._path.iterdir())[:1]:
            path.unlink()

    def marks_of(self, event: Row) -> set[str]:
        return {f"{_tags(event)['path']}@{event['snapshot_ts']}"}


@dataclass(slots=True, kw_only=True)
class KafkaTopic(Other):
    """A topic of several partitions; each message is a change."""

    source: str = "kafka"

    @property
    def _name(self) -> str:
        return self.sensor_id.partition(": ")[2]

    def marks(self) -> frozenset[str]:
        partitions = self.systems.kafka.partitions[self._name]
        return frozenset(
            f"{number}:{offset}"
            for number, partition in enumerate(partitions)
            for offset, value in enumerate(partition.values)
            if value is not None
        )

    def change(self, at: datetime, *, brings: bool) -> None:
        partitions = len(self.systems.kafka.partitions[self._name])
        if brings:
            self.systems.kafka.send(self._name, "x", partition=self.count % partitions)
        else:
            self.systems.kafka.abort(self._name)

    def forget(self) -> None:
        self.systems.kafka.grow(self._name)

    def marks_of(self, event: Row) -> set[str]:
        ranges = json.loads(_tags(event)["offsets"])
        return {
            f"{n}:{offset}" for n, (first, end) in ranges.items() for offset in range(first, end)
        }


@dataclass(slots=True, kw_only=True)
class Table(Other):
    """A table of a database with an instant of change; each row is a change."""

    source: str = "jdbc"
    key: str = "changed"
    #: The rows that were there where a probe ended, and the rows that each event is about.
    there_at: dict[str | None, frozenset[str]] = field(default_factory=dict)
    reported_events: dict[str, set[str]] = field(default_factory=dict)

    @property
    def _name(self) -> str:
        return self.sensor_id.partition(": ")[2]

    def marks(self) -> frozenset[str]:
        rows = self.systems.shop.sql.execute(f'select id from "{self._name}"')
        return frozenset(str(row[0]) for row in rows)

    def change(self, at: datetime, *, brings: bool) -> None:
        if brings:
            # Every fifth row is committed long after it got its instant.
            changed = at - _LATE if self.count % 5 == 0 else at
            self.systems.shop.sql.execute(
                f'insert into "{self._name}" (changed) values (?)',
                (f"{changed:%Y-%m-%d %H:%M:%S}",),
            )

    def saw(self, upstream: Upstream, result: ProbeResult, at: datetime) -> None:
        there = self.marks()
        for event in result.events:
            known = self.there_at.get(upstream.position, frozenset())
            self.reported_events.setdefault(event.id_at(upstream.upstream_id), set()).update(
                there - known
            )
        if result.position != upstream.position:
            self.there_at.setdefault(result.position, there)

    def marks_of(self, event: Row) -> set[str]:
        return self.reported_events.get(str(event["event_id"]), set())


@dataclass(slots=True, kw_only=True)
class Chain(Other):
    """A process chain of an SAP system; each run that ended well is a change."""

    source: str = "sap_bw"
    began: dict[str, datetime] = field(default_factory=dict)

    def marks(self) -> frozenset[str]:
        rows = self.systems.sap.sql.execute(
            "select LOG_ID from RSPCLOGCHAIN where CHAIN_ID = ? and ANALYZED_STATUS = 'G'",
            (self.sensor_id,),
        )
        return frozenset(str(row[0]) for row in rows)

    def change(self, at: datetime, *, brings: bool) -> None:
        log_id = f"{self.sensor_id}{self.count}"
        self.began[log_id] = at
        values = (self.sensor_id, log_id, f"{at:%Y%m%d}", f"{at:%H%M%S}", "G" if brings else "R")
        self.systems.sap.sql.execute("insert into RSPCLOGCHAIN values (?,?,?,?,?)", values)

    def forget(self) -> None:
        # What was red is repaired, and keeps its id and its time.
        self.systems.sap.sql.execute(
            "update RSPCLOGCHAIN set ANALYZED_STATUS = 'G' where CHAIN_ID = ?", (self.sensor_id,)
        )

    def saw(self, upstream: Upstream, result: ProbeResult, at: datetime) -> None:
        self.excused |= {name for name, began in self.began.items() if at - began > _LOOKED_FOR}

    def marks_of(self, event: Row) -> set[str]:
        return {str(event["snapshot_id"])}


@dataclass(slots=True, kw_only=True)
class Iceberg(Other):
    """An Iceberg table; each snapshot that changes data is a change."""

    source: str = "iceberg_table"
    table: IcebergFolder | None = None
    with_data: list[int] = field(default_factory=list)

    def marks(self) -> frozenset[str]:
        return frozenset(map(str, self.with_data))

    def change(self, at: datetime, *, brings: bool) -> None:
        assert self.table is not None
        if brings:
            self.with_data.append(self.table.append())
        else:
            counts = {"added-data-files": "1", "deleted-data-files": "1"}
            self.table.commit("replace", counts)

    def forget(self) -> None:
        assert self.table is not None
        gone = [each for each in self.table.snapshots if each != self.table.head]
        self.table.expire(*gone)
        self.excused |= {str(each) for each in gone}

    def marks_of(self, event: Row) -> set[str]:
        marks = [str(each) for each in self.with_data]
        last = str(event["snapshot_id"])
        if "gap" not in _tags(event) or last not in marks:
            return {last}
        # Behind expired snapshots one event covers all that came up to its own.
        return set(marks[: marks.index(last) + 1])


def some(kind: str, number: int, systems: Systems) -> Other:
    """Make an upstream of a kind, with nothing in it."""
    made = _KINDS[kind](number, systems)
    made.marks()
    return made


def _folder(number: int, systems: Systems) -> Other:
    return Folder(systems=systems, sensor_id=f"drop{number}")


def _topic(number: int, systems: Systems) -> Other:
    systems.kafka.create(f"t{number}", _PARTITIONS)
    return KafkaTopic(systems=systems, sensor_id=f"shop: t{number}")


def _table(number: int, systems: Systems) -> Other:
    systems.shop.sql.execute(f'create table "t{number}" (id integer primary key, changed)')
    return Table(systems=systems, sensor_id=f"shop: t{number}")


def _chain(number: int, systems: Systems) -> Other:
    return Chain(systems=systems, sensor_id=f"CHAIN{number}")


def _iceberg(number: int, systems: Systems) -> Other:
    table = IcebergFolder(systems.folder / "ns" / f"ice{number}")
    table.uuid = f"00000000-0000-4000-8000-{number:012}"
    table.write()
    return Iceberg(systems=systems, sensor_id=f"lake.ns.ice{number}", table=table)


_KINDS: Mapping[str, Callable[[int, Systems], Other]] = {
    "trigger_file": _folder,
    "kafka": _topic,
    "jdbc": _table,
    "sap_bw": _chain,
    "iceberg_table": _iceberg,
}
KINDS = tuple(_KINDS)


def look_at(
    probes: Mapping[str, Probe],
    upstreams: Sequence[Upstream],
    others: Mapping[str, Other],
    at: datetime,
) -> dict[str, ProbeResult]:
    """Probe upstreams as the pool does, one group after the other."""
    groups: dict[tuple[str, str], list[Upstream]] = {}
    for upstream in upstreams:
        probe = probes[upstream.source]
        groups.setdefault((upstream.source, probe.group_of(upstream)), []).append(upstream)
    results: dict[str, ProbeResult] = {}
    for (source, _), group in groups.items():
        for upstream in group:
            other = others[upstream.sensor_id]
            if upstream.position is None:
                other.first_sight = other.marks()
        for upstream, result in zip(group, probes[source].probe(group, at=at), strict=True):
            results[upstream.upstream_id] = result
            if result.failure is None:
                others[upstream.sensor_id].saw(upstream, result, at)
    return results


def _tags(event: Row) -> Mapping[str, str]:
    return cast(Mapping[str, str], event["tags"])
