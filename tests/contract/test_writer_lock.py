"""What admits one writer: the lock of a state directory, and the lease of a workspace's tables."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import ExitCode, LockedError, StateError
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.rows import Ledger
from harness.store.writer.lease import LEASE_SECONDS, Lease, LeaseTable
from harness.store.writer.lease_table import CatalogLeaseTable
from harness.store.writer.lock import ProcessLock, WriterLock
from harness.tick.single_writer import admitted
from tests.support.fake_clock import FakeClock
from tests.support.leases import DeltaLeaseTable, MemoryLeaseTable, StampedLocalStore, tick_row
from tests.support.memory_store import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: Makes a writer for a command, by a clock; all of one test compete for the same lock.
Make = Callable[[str, FakeClock], WriterLock]


def _lease_table(request: pytest.FixtureRequest) -> LeaseTable:
    folder: Path = request.getfixturevalue("tmp_path")
    match request.param:
        case "lease in memory":
            return MemoryLeaseTable()
        case "lease in Delta":
            return DeltaLeaseTable(folder / "writer_lease")
        case _:
            spark: SparkSession = request.getfixturevalue("spark")
            spark.sql("drop table if exists lease_contract.writer_lease")
            return CatalogLeaseTable(SessionSql(lambda: spark), SchemaName("lease_contract"))


WITHOUT_SPARK = ("lock", "lease in memory", "lease in Delta")


@pytest.fixture(params=[*WITHOUT_SPARK, "lease in Spark"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "lock":
        return lambda command, clock: ProcessLock(tmp_path, command=command, clock=clock)
    table = _lease_table(request)
    return lambda command, clock: Lease(table, MemoryStore(), command=command, clock=clock)


def test_a_second_writer_gets_an_error_that_names_the_holder_and_since_when(make: Make) -> None:
    with (
        make("tick", FakeClock(NOON)),
        pytest.raises(
            LockedError, match=r"`tick`, since 12:00:00Z.*wait for it, or stop it$"
        ) as no,
        make("run", FakeClock(NOON + timedelta(seconds=1))),
    ):
        pass
    assert no.value.exit_code is ExitCode.LOCKED


@pytest.mark.parametrize("make", WITHOUT_SPARK, indirect=True)
def test_it_can_be_had_again_after_a_block_that_failed(make: Make) -> None:
    clock = FakeClock(NOON)
    with pytest.raises(ZeroDivisionError), make("tick", clock):
        raise ZeroDivisionError
    with make("tick", clock) as writer:
        writer.confirm()


def test_a_holder_keeps_it_for_as_long_as_it_works(make: Make) -> None:
    clock = FakeClock(NOON)
    with make("run", clock) as writer:
        for _ in range(3):
            clock.sleep(LEASE_SECONDS * 0.75)
            writer.check()
        writer.confirm()
        with pytest.raises(LockedError), make("tick", clock):
            pass


HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from tests.support.fake_clock import FakeClock
from harness.store.writer.lease import Lease
from harness.store.writer.lock import ProcessLock
from tests.support.leases import DeltaLeaseTable, StampedLocalStore
from tests.support.memory_store import MemoryStore

kind, folder = sys.argv[1], Path(sys.argv[2])
clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
writer = (
    ProcessLock(folder, command="tick", clock=clock)
    if kind == "lock"
    else Lease(DeltaLeaseTable(folder / "lease"), MemoryStore(), command="tick", clock=clock)
)
with writer:
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process_holding(kind: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, kind, str(folder)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "held\n"
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("kind", ["lock", "lease"])
def test_a_killed_holder_keeps_the_others_out_no_longer_than_its_time(
    kind: str, tmp_path: Path
) -> None:
    after = FakeClock(NOON + timedelta(seconds=LEASE_SECONDS))
    writer: WriterLock = (
        ProcessLock(tmp_path, command="run", clock=after)
        if kind == "lock"
        else Lease(DeltaLeaseTable(tmp_path / "lease"), MemoryStore(), command="run", clock=after)
    )
    with another_process_holding(kind, tmp_path) as child:
        child.kill()
        child.wait()
        with writer:
            writer.confirm()


APPEND = """
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from tests.support.fake_clock import FakeClock
from harness.errors import HeartbeatError
from harness.store.writer.lease import Lease
from harness.store.writer.fencing import FencedStore
from harness.store.rows import Ledger
from tests.contract.test_writer_lock import tick_row
from tests.support.leases import DeltaLeaseTable, StampedLocalStore

folder = Path(sys.argv[1])
ledgers = StampedLocalStore(folder, "heartbeat")
# Its clock stands still with it: it believes that it has all the time of the world.
clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
try:
    with Lease(DeltaLeaseTable(folder / "lease"), ledgers, command="run", clock=clock) as lease:
        store = FencedStore(ledgers, lease)
        for number in range(10_000):
            store.append(Ledger.TICKS, [tick_row(number)])
            print("appended", flush=True)
except HeartbeatError as error:
    print(error, flush=True)
    # As the command line ends: native threads can abort an ordinary exit.
    os._exit(error.exit_code)
"""


def _make_ledger(folder: Path) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable

    batch = pa.Table.from_pylist([asdict(tick_row(0))])
    DeltaTable.create(folder / "heartbeat.db" / Ledger.TICKS, batch.schema)


def _numbers(ledgers: StampedLocalStore) -> list[int]:
    return sorted(int(str(row["tick_number"])) for row in ledgers.read(Ledger.TICKS))


def test_a_real_process_that_is_frozen_in_the_midst_of_its_appends_adds_none_after_it_wakes_up(
    tmp_path: Path,
) -> None:
    _make_ledger(tmp_path)
    ledgers = StampedLocalStore(tmp_path, "heartbeat")
    after = FakeClock(NOON + timedelta(seconds=LEASE_SECONDS))
    child = subprocess.Popen(
        [sys.executable, "-c", APPEND, str(tmp_path)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        for _ in range(3):
            assert child.stdout.readline() == "appended\n"
        child.send_signal(signal.SIGSTOP)
        with Lease(
            DeltaLeaseTable(tmp_path / "lease"), ledgers, command="tick", clock=after
        ) as lease:
            before = _numbers(ledgers)
            child.send_signal(signal.SIGCONT)
            output = child.communicate(timeout=60)[0]
            lease.confirm()
    finally:
        child.kill()
    assert child.returncode == ExitCode.LOCKED
    assert "has lost the lease" in output
    assert _numbers(ledgers) == before
    assert len(before) >= 3


def test_of_two_sparks_that_begin_at_once_one_gets_the_lease_and_there_is_one_row(
    spark: "SparkSession",
) -> None:
    spark.sql("drop table if exists lease_contract.writer_lease")
    barrier = threading.Barrier(2)
    won: list[Lease] = []

    def race() -> None:
        table = CatalogLeaseTable(SessionSql(lambda: spark), SchemaName("lease_contract"))
        lease = Lease(table, MemoryStore(), command="tick", clock=FakeClock(NOON))
        barrier.wait()
        with suppress(LockedError, StateError):
            won.append(lease.__enter__())

    threads = [threading.Thread(target=race) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    (winner,) = won
    winner.confirm()
    assert spark.table("lease_contract.writer_lease").count() == 1


def test_the_table_of_an_earlier_version_gets_its_missing_column_by_the_next_holder(
    spark: "SparkSession",
) -> None:
    def process() -> Lease:
        return Lease(table, MemoryStore(), command="tick", clock=FakeClock(NOON))

    spark.sql("drop table if exists lease_contract.writer_lease")
    table = CatalogLeaseTable(SessionSql(lambda: spark), SchemaName("lease_contract"))
    with process():
        pass
    earlier = spark.table("lease_contract.writer_lease").drop("ticked_at")
    earlier.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        "lease_contract.writer_lease"
    )
    with process() as lease:
        lease.note_tick(NOON)
    row = table.read()
    assert row is not None
    assert (row.epoch, row.ticked_at) == (2, NOON)


class _Lasting:
    """The session of a cluster: it goes on when a process has done with it."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def stop(self) -> None: ...

    def __getattr__(self, name: str) -> object:
        return getattr(self._spark, name)


def test_on_the_databricks_target_a_command_appends_by_the_lease_that_it_holds(
    spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "heartbeat.yml").write_text("")
    environment = {
        "HEARTBEAT_TARGET": "databricks",
        "HEARTBEAT_CATALOG": "spark_catalog",
        "HEARTBEAT_SCHEMA": "lease_of_commands",
    }
    first, second = (
        Context(load_settings(tmp_path, {}), environment, FakeClock(NOON)) for _ in range(2)
    )
    for context in (first, second):
        vars(context)["session"] = _Lasting(spark)
    with admitted(first, "tick"):
        spark.createDataFrame([asdict(tick_row(0))]).write.format("delta").saveAsTable(
            f"lease_of_commands.{Ledger.TICKS}"
        )
        first.store.append(Ledger.TICKS, [tick_row(1)])
        with (
            pytest.raises(LockedError, match=r"spark_catalog\.lease_of_commands\.writer_lease"),
            admitted(second, "tick"),
        ):
            pass
        # A writer whose clock is wrong takes over.
        spark.sql("update lease_of_commands.writer_lease set expires_at = since")
        vars(second)["session"] = _Lasting(spark)
        with admitted(second, "tick"), pytest.raises(LockedError, match="has lost the lease"):
            first.store.append(Ledger.TICKS, [tick_row(2)])
    (row,) = spark.table("lease_of_commands.writer_lease").collect()
    assert (row.epoch, row.is_held) == (2, False)
    assert sorted(
        row.tick_number for row in spark.table(f"lease_of_commands.{Ledger.TICKS}").collect()
    ) == [0, 1]
