"""A warehouse over a socket, and connections of the official connector to it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.services.warehouse.server import HOST, TOKEN, WAREHOUSE_PATH, Warehouse

if TYPE_CHECKING:
    from databricks.sql.client import Connection

Connect = Callable[..., "Connection"]


@pytest.fixture
def warehouse(served_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """The warehouse, without faults, as this process' environment has it."""
    for name, value in served_warehouse.variables().items():
        monkeypatch.setenv(name, value)
    served_warehouse.statements.clear()
    yield served_warehouse
    served_warehouse.recover()


@pytest.fixture
def connect(warehouse: Warehouse) -> Iterator[Connect]:
    """Connect as a program does; the shortest waits that the connector allows."""
    opened = []

    def connected(**options: Any) -> "Connection":
        from databricks import sql

        if "credentials_provider" not in options:
            options.setdefault("access_token", TOKEN)
        given = {
            "server_hostname": HOST,
            "http_path": WAREHOUSE_PATH,
            "catalog": warehouse.catalog,
            "enable_telemetry": False,
            "_retry_delay_min": 0.1,
            "_retry_delay_max": 5,
        }
        connection = sql.connect(**(given | options))
        opened.append(connection)
        return connection

    yield connected
    for each in opened:
        each.close()
