"""Fixtures for every level. Spark starts once per test process, and only when a test needs it."""

import gc
import os
import subprocess
from collections.abc import Generator, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from harness.__main__ import collect_seldom
from harness.platform.masking import Masker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from tests.support.services.connect import Endpoint
    from tests.support.services.kafka.broker import Broker
    from tests.support.services.postgres import Postgres
    from tests.support.services.warehouse.server import Warehouse

# An example that takes long on a busy machine is no failure.
settings.register_profile("heartbeat", deadline=None)
settings.load_profile("heartbeat")

PROJECT = Path(__file__).resolve().parent.parent
_LONGEST = ("tests/scenarios/", "tests/integration/workspace/", "tests/recovery/")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that ``make sample`` uses."""
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="run N of the selected tests only, drawn by --sample-of, and those marked in_sample",
    )
    parser.addoption("--sample-of", default="", metavar="SEED", help="the seed of --sample")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest first, and keep what ``--sample`` selects, the same for the same seed."""
    # Each group has a process of its own, while the others do the rest.
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))
    if (count := config.getoption("--sample")) is not None:
        drawn = sample(items, count, config.getoption("--sample-of"))
        config.hook.pytest_deselected(items=[each for each in items if each not in drawn])
        items[:] = drawn


def sample(items: Sequence[pytest.Item], count: int, seed: str) -> list[pytest.Item]:
    """Draw tests from as many files as there are, before two come from one file.

    Those marked `long(in_sample=True)` are in every sample, beside what is drawn.

    Args:
        items: The tests to choose from.
        count: How many tests to draw.
        seed: Equal seeds draw equal tests.
    """

    def rank(text: str) -> str:
        return sha256(f"{seed}\n{text}".encode()).hexdigest()

    always = [item for item in items if _is_in_each_sample(item)]
    by_file: dict[str, list[pytest.Item]] = {}
    for item in sorted(set(items).difference(always), key=lambda each: rank(each.nodeid)):
        by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    turns = (
        (place, rank(file), item) for file, own in by_file.items() for place, item in enumerate(own)
    )
    drawn = (item for _, _, item in sorted(turns, key=lambda turn: turn[:2])[:count])
    chosen = {*always, *drawn}
    return [item for item in items if item in chosen]


def _is_in_each_sample(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("long")
    return marker is not None and bool(marker.kwargs.get("in_sample"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: "Producer"
) -> "LoadScopeScheduling | None":
    """Give the files that share an installation to one process: building it takes longest."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OfInstallations(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            folder = file.rpartition("/")[0]
            return folder if folder == "tests/scenarios" else file

    return OfInstallations(config, log)


def pytest_sessionstart() -> None:
    """Let no page be as narrow as the terminal that the tests run in, and waste no time on cycles."""
    os.environ.pop("COLUMNS", None)
    collect_seldom()


def pytest_collection_finish() -> None:
    """Search the tests themselves no more for what nothing refers to."""
    gc.freeze()


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
    monkeypatch.setattr("harness.platform.masking._MASKER", Masker())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes of its own."""
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.fixture(scope="module", autouse=True)
def no_engine_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An engine outlives the command that starts it; here, no more than the tests of a file."""
    yield
    from tests.support.engines import end_all

    end_all(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory of this test process: its warehouse and its metastore."""
    return tmp_path_factory.mktemp("heartbeat-home")


@pytest.fixture(scope="session")
def spark_endpoint() -> "Endpoint":
    """Where the Spark of the process listens, once it is there."""
    from tests.support.services.connect import Endpoint

    return Endpoint()


@pytest.fixture(scope="session")
def spark(
    spark_home: Path, spark_endpoint: "Endpoint", pytestconfig: pytest.Config
) -> Iterator["SparkSession"]:
    """The one Spark session of the process, with the settings of an engine."""
    os.environ["HEARTBEAT_HOME"] = str(spark_home)
    os.chdir(PROJECT)
    is_whole = pytestconfig.getoption("--sample") is None
    is_resident = is_whole and pytestconfig.getoption("markexpr") == "long"
    session = spark_endpoint.opened_by_spark(PROJECT, spark_home, is_resident=is_resident)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def served_warehouse(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Warehouse"]:
    """A SQL warehouse over a socket, in front of the Spark of the process."""
    from tests.support.services.warehouse.server import served

    yield from served(spark, tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    """One real Kafka broker for all tests of the process."""
    from tests.support.services.kafka.broker import Broker, NoBrokerError

    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"))
    except NoBrokerError as error:
        pytest.skip(str(error))
    try:
        yield broker.create()
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """A PostgreSQL of this test process."""
    from tests.support.services.postgres import NoPostgresError, Postgres

    try:
        server = Postgres()
    except NoPostgresError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}.")
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_of_spark(postgres: "Postgres", spark: "SparkSession") -> "Postgres":
    """The same, and Spark has its JDBC driver."""
    from tests.support.services.postgres import NoPostgresError, postgres_driver

    try:
        spark.sql(f"add jar '{postgres_driver()}'")
    except NoPostgresError as error:
        pytest.skip(f"PostgreSQL's JDBC driver cannot be had here: {error}.")
    return postgres
