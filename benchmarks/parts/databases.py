"""Upstreams that are in one database: tables, and process chains with SAP's names and types."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import psycopg

from benchmarks.parts.place import Place
from harness.config.sources import Source
from tests.support.services.postgres import run_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_OF_A_TABLE = 100
#: Days on which each process chain ran before, once a day.
DAYS_OF_A_CHAIN = 8
SCHEMA = "bench"


class DatabaseTables:
    """Tables of one database, with an indexed time stamp for their key."""

    source = Source.JDBC
    key = "changed"
    probes_until_reported = 1
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
        """Return the usual way to probe one of them."""
        query = f"select max(changed) from {self.table(number)}"
        return lambda: ask_alone(self._place.database, query)


class ProcessChains:
    """Process chains of one system, with SAP's names and types."""

    source = Source.SAP_BW
    key = "LOAD_DATE"
    probes_until_reported = 2
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
        """Return the usual way to probe one of them."""
        query = (
            f"select max(datum || zeit) from {self.log_table} where analyzed_status in ('G', 'F')"
            f" and chain_id = '{self.sensor_id(number)}'"
        )
        return lambda: ask_alone(self._place.database, query)


def ask_alone(url: str, query: str) -> object:
    """Connect, run one query that gives one value, and disconnect."""
    with psycopg.connect(url.removeprefix("jdbc:")) as connection:
        row = connection.execute(query).fetchone()
    return None if row is None else row[0]
