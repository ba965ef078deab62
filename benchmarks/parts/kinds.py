"""A thousand upstreams of each kind: made at once, changed at will, and sensed each on its own.

To add one, write a class with the members of ``Kind`` and name it in ``KINDS``.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.upstreams import append, available_now
from harness.sense.jdbc.drivers import driver_of
from harness.sense.types import Source
from harness.settings_connections import Database
from tests.services.postgres import run_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
#: Topics made in one request.
TOPICS_AT_ONCE = 100
_MOST_TRIES = 300
ROWS_OF_A_TABLE = 100
#: Days on which each process chain ran before, once a day.
DAYS_OF_A_CHAIN = 8
SCHEMA = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the upstreams of one run are; written to a file for the processes that tick."""

    folder: Path
    #: How many upstreams there are of each kind.
    each: int
    kafka: str
    database: str

    def save(self) -> None:
        """Write it into its folder."""
        (self.folder / "place.json").write_text(json.dumps(asdict(self), default=str))


def place_in(folder: Path) -> Place:
    """Read what ``save`` wrote."""
    content = json.loads((folder / "place.json").read_text())
    return Place(**{**content, "folder": folder})


class Kind(Protocol):
    """All upstreams of one kind."""

    source: Source
    #: How many there are.
    count: int
    #: ``upstream_key`` of its rows.
    key: str
    #: Looks until new data is told.
    looks: int
    #: What the usual way is, in words.
    usual: str

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        ...

    def create(self) -> None:
        """Make all of them, with some data in each."""
        ...

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        ...

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one upstream: by a query or a client of its own."""
        ...


class DeltaTables:
    """Delta tables at paths."""

    source = Source.DELTA_TABLE
    key = ""
    looks = 1
    usual = "an availableNow query of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return str(self._place.folder / "lake" / f"t{number:05d}")

    def create(self) -> None:
        """Make all of them, with some data in each."""
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        for number in numbers:
            append(Path(self.sensor_id(number)))

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one of them."""
        table, checkpoint = self.sensor_id(number), self._place.folder / "seen" / f"t{number}"
        return lambda: available_now(session.readStream.format("delta").load(table), checkpoint)


class TriggerFolders:
    """Folders of trigger files."""

    source = Source.TRIGGER_FILE
    key = ""
    looks = 1
    usual = "an availableNow query of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    @property
    def root(self) -> Path:
        """The folder of the folders."""
        return self._place.folder / "triggers"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"folder_{number:05d}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        for number in range(self.count):
            (self.root / self.sensor_id(number)).mkdir(parents=True)
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        for number in numbers:
            folder = self.root / self.sensor_id(number)
            (folder / f"go-{len(list(folder.iterdir()))}").touch()

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one of them."""
        folder = str(self.root / self.sensor_id(number))
        checkpoint = self._place.folder / "seen" / f"f{number}"
        return lambda: available_now(session.readStream.format("text").load(folder), checkpoint)


class KafkaTopics:
    """Topics of four partitions on one broker."""

    source = Source.KAFKA
    key = ""
    looks = 1
    usual = "a consumer of its own, asked for its partitions' offsets"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each
        self._client = {"bootstrap.servers": place.kafka, "log_level": 0}

    def topic(self, number: int) -> str:
        """Name one topic as the broker does."""
        return f"orders-{number:05d}"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"shop: {self.topic(number)}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        admin = AdminClient(self._client)
        for start in range(0, self.count, TOPICS_AT_ONCE):
            some = range(start, min(start + TOPICS_AT_ONCE, self.count))
            topics = [NewTopic(self.topic(number), PARTITIONS, 1) for number in some]
            for created in admin.create_topics(topics, operation_timeout=60).values():
                created.result()
        self._wait()
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        producer = Producer({**self._client, "linger.ms": 50})
        refused = []

        def told(error: KafkaError | None, _: object) -> None:
            if error is not None:
                refused.append(error)

        for number in numbers:
            place = {"topic": self.topic(number), "partition": number % PARTITIONS}
            producer.produce(**place, value=b"an order", on_delivery=told)
            producer.poll(0)
        left = producer.flush(120)
        if left or refused:
            raise SystemExit(f"{left + len(refused)} messages did not arrive: {refused[:1]}")

    def _wait(self) -> None:
        """Wait until the broker leads what it has promised to lead."""
        places = {
            TopicPartition(self.topic(number), partition): OffsetSpec.latest()
            for number in range(self.count)
            for partition in range(PARTITIONS)
        }
        for _ in range(_MOST_TRIES):
            # A new one each time, since what a client knows of leaders may be out of date.
            admin = AdminClient(self._client)
            answers = admin.list_offsets(places, request_timeout=30)
            if not any(answer.exception() for answer in answers.values()):
                return
            time.sleep(1)
        raise SystemExit("the broker does not lead all of its partitions")

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one of them."""

        def ask() -> None:
            consumer = Consumer({**self._client, "group.id": "usual"})
            for partition in range(PARTITIONS):
                consumer.get_watermark_offsets(TopicPartition(self.topic(number), partition))
            consumer.close()

        return ask


class DatabaseTables:
    """Tables of one database, with an indexed time stamp for their key."""

    source = Source.JDBC
    key = "changed"
    looks = 1
    usual = "a connection and a select max(...) of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    def table(self, number: int) -> str:
        """Name one table as the database does."""
        return f"{SCHEMA}.orders_{number:05d}"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"shop: {self.table(number)}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        made = (
            f"create table {self.table(number)} as"
            " select n as id, (now() - n * interval '1 minute')::timestamp as changed"
            f" from generate_series(1, {ROWS_OF_A_TABLE}) as n;"
            f"create index on {self.table(number)} (changed);"
            for number in range(self.count)
        )
        run_script(self._place.database, f"create schema if not exists {SCHEMA};{''.join(made)}")

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        new = (
            f"insert into {self.table(number)} values (0, clock_timestamp()::timestamp);"
            for number in numbers
        )
        run_script(self._place.database, "".join(new))

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one of them."""
        query = f"select max(changed) from {self.table(number)}"
        return lambda: ask_alone(session, self._place.database, query)


class ProcessChains:
    """Process chains of one system, with SAP's names and types."""

    source = Source.SAP_BW
    key = "LOAD_DATE"
    looks = 2
    usual = "a connection and a query of its own"
    log_table = f"{SCHEMA}.rspclogchain"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"CHAIN_{number:05d}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        run_script(
            self._place.database,
            f"create sequence {SCHEMA}.log_ids;"
            f"create table {self.log_table} (chain_id varchar(25), log_id varchar(25) primary key,"
            " datum varchar(8), zeit varchar(6), analyzed_status varchar(1));"
            f"create index on {self.log_table} (datum);",
        )
        for day in range(DAYS_OF_A_CHAIN, 0, -1):
            self._ran(range(self.count), f"current_date - {day}")

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        self._ran(numbers, "current_date")

    def _ran(self, numbers: Sequence[int], day: str) -> None:
        chains = ", ".join(f"('{self.sensor_id(number)}')" for number in numbers)
        run_script(
            self._place.database,
            f"insert into {self.log_table} select chain,"
            f" lpad(nextval('{SCHEMA}.log_ids')::text, 25, '0'), to_char({day}, 'YYYYMMDD'),"
            f" to_char(clock_timestamp(), 'HH24MISS'), 'G' from (values {chains}) as ran (chain);",
        )

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to look at one of them."""
        query = (
            f"select max(datum || zeit) from {self.log_table} where analyzed_status in ('G', 'F')"
            f" and chain_id = '{self.sensor_id(number)}'"
        )
        return lambda: ask_alone(session, self._place.database, query)


def ask_alone(session: "SparkSession", url: str, query: str) -> str | None:
    """Connect, run one query that gives one value, and hang up."""
    spark: Any = session
    connection = driver_of(spark, Database(url=url)).connect(url, spark._jvm.java.util.Properties())
    try:
        rows = connection.createStatement().executeQuery(query)
        rows.next()
        return rows.getString(1)
    finally:
        connection.close()


#: In the order of the table that is printed.
KINDS: Mapping[str, Callable[[Place], Kind]] = {
    "delta_table": DeltaTables,
    "trigger_file": TriggerFolders,
    "kafka": KafkaTopics,
    "jdbc": DatabaseTables,
    "sap_bw": ProcessChains,
}
