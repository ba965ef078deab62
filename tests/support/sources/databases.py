"""Tables of real databases, and an SAP system's log of chains in one of them."""

import time
from pathlib import Path
from typing import ClassVar

import pytest

from harness.config.connections import Connections
from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from tests.support.services.databases import Writer


class DatabaseTable:
    """A table of a schema of its own, with a time stamp for its key."""

    source = "jdbc"
    options: ClassVar[dict[str, str]] = {"upstream_key": "changed"}
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, request: pytest.FixtureRequest, url: str, schema: str | None = None) -> None:
        self._request = request
        self._writer = Writer(url)
        self._schema = schema or f"s{time.monotonic_ns()}"
        if schema is None:
            self._writer.run(f"create schema {self._schema}")
        self._connections = {"jdbc": {"shop": {"url": url}}}
        self._rows = 0
        self.sensor_id = f"shop: {self._schema}.orders"
        self.missing_id = f"shop: {self._schema}.missing"

    def probe(self) -> Probe:
        services = ProbeServices(
            session=lambda: self._request.getfixturevalue("spark"),
            trigger_files_root="",
            connections=Connections.model_validate(self._connections),
        )
        return known_sources().probes(services)[self.source]

    def create(self) -> None:
        self._writer.run(f"create table {self._schema}.orders (id int, changed timestamp)")

    def add(self) -> None:
        self._rows += 1
        changed = f"'2025-04-23 21:{self._rows:02}:00'"
        self._writer.run(f"insert into {self._schema}.orders values ({self._rows}, {changed})")

    def take_away(self) -> None:
        self._rename("orders", "elsewhere")

    def bring_back(self) -> None:
        self._rename("elsewhere", "orders")

    def _rename(self, name: str, other: str) -> None:
        self._writer.run(f"alter table {self._schema}.{name} rename to {other}")


class SqliteTable(DatabaseTable):
    """The same in a file of SQLite, which has time stamps as text alone."""

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, f"jdbc:sqlite:{root}/shop.db", "main")


class PostgresTable(DatabaseTable):
    """The same in PostgreSQL, which spells names in lower case."""

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, request.getfixturevalue("postgres").url)


class ProcessChain(DatabaseTable):
    """A chain in a log of chains, with SAP's names and types, in PostgreSQL."""

    source = "sap_bw"
    options: ClassVar[dict[str, str]] = {"upstream_key": "LOAD_DATE"}
    probes_until_reported = 2
    queries = (
        "select * from sensor_new_data where ANALYZED_STATUS = 'G'",
        "select * from sensor_new_data where ANALYZED_STATUS = 'R'",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        url = request.getfixturevalue("postgres").url
        super().__init__(request, url)
        log = f"{self._schema}.orders"
        self._connections = {"sap": {"sap_bw": {"url": url, "log_table": log}}}  # type: ignore[assignment]
        # A chain that is missing cannot be distinguished from one that has not run.
        self.sensor_id, self.missing_id = "SALES_CHAIN", "SALES CHAIN"

    def create(self) -> None:
        self._writer.run(
            f"create table {self._schema}.orders (CHAIN_ID varchar(25), LOG_ID varchar(25),"
            " DATUM varchar(8), ZEIT varchar(6), ANALYZED_STATUS varchar(1),"
            " primary key (LOG_ID))"
        )

    def add(self) -> None:
        self._rows += 1
        self._writer.run(
            f"insert into {self._schema}.orders values ('SALES_CHAIN', 'LOG{self._rows:022}',"
            f" to_char(current_date, 'YYYYMMDD'), '21{self._rows:02}00', 'G')"
        )
