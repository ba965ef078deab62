"""Fixtures for every level. Spark starts once per test process, and only when a test asks for it."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.secrets import Masker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.services.kafka.broker import Broker
    from tests.services.postgres import Postgres

PROJECT = Path(__file__).resolve().parent.parent


def pytest_sessionstart() -> None:
    """Let no page be as narrow as the terminal that the tests run in."""
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what cannot travel from one process to another, such as half a character."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def no_secrets_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are hidden as long as a process lives: in a test, only its own."""
    monkeypatch.setattr("harness.secrets._MASKER", Masker())


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of this test process: its warehouse and its metastore."""
    return tmp_path_factory.mktemp("heartbeat-home")


@pytest.fixture(scope="session")
def spark(spark_home: Path) -> Iterator["SparkSession"]:
    """The one Spark session of the process, with the settings of ``profiles.yml``."""
    from harness.jars import add_iceberg
    from harness.spark import JAVA_COMPILER, let_java_compile_all, start_session

    os.environ["HEARTBEAT_HOME"] = str(spark_home)
    add_iceberg(os.environ)
    os.chdir(PROJECT)
    # This process stays; those that tests start do not, and are told nothing of it.
    let_java_compile_all(os.environ)
    session = start_session(PROJECT)
    del os.environ[JAVA_COMPILER]
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    """One real Kafka broker for all tests of the process."""
    from tests.services.kafka.broker import Broker, NoBrokerError

    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"))
    except NoBrokerError as error:
        pytest.skip(str(error))
    try:
        yield broker.create()
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def postgres(spark: "SparkSession") -> Iterator["Postgres"]:
    """A PostgreSQL of this test process, whose driver Spark has."""
    from tests.services.postgres import NoPostgresError, Postgres, postgres_driver

    try:
        driver = postgres_driver()
        server = Postgres()
    except NoPostgresError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}.")
    try:
        server.start()
        spark.sql(f"add jar '{driver}'")
        yield server
    finally:
        server.remove()
