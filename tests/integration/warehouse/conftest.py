"""A warehouse over a socket, and connections of the official connector to it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.services.warehouse.server import HOST, TOKEN, WAREHOUSE_PATH, Warehouse, served

if TYPE_CHECKING:
    from databricks.sql.client import Connection
    from pyspark.sql import SparkSession

Connect = Callable[..., "Connection"]


@pytest.fixture(scope="module")
def warehouse_of_module(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    yield from served(spark, tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def warehouse(
    warehouse_of_module: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    """The warehouse, without faults, as this process' environment has it."""
    for name, value in warehouse_of_module.variables().items():
        monkeypatch.setenv(name, value)
    warehouse_of_module.statements.clear()
    yield warehouse_of_module
    warehouse_of_module.recover()


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
