"""What admits one writer: the lock of a state folder, and the lease of a workspace's tables."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.clock import FakeClock
from harness.errors import ExitCode, LockedError
from harness.lease import LEASE_SECONDS, Lease, LeaseTable
from harness.lock import ProcessLock, WriterLock
from harness.store.lease_row import CatalogLeaseTable
from tests.leases import DeltaLeaseTable, MemoryLeaseTable
from tests.unit.memory_store import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: Makes a writer for a command, by a clock; all of one test want the same thing.
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
            return CatalogLeaseTable(lambda: spark, "lease_contract")


@pytest.fixture(params=["lock", "lease in memory", "lease in Delta", "lease in Spark"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "lock":
        return lambda command, clock: ProcessLock(tmp_path, command=command, clock=clock)
    table = _lease_table(request)
    return lambda command, clock: Lease(table, MemoryStore(), command=command, clock=clock)


def test_a_second_writer_is_told_who_holds_it_and_since_when(make: Make) -> None:
    with (
        make("tick", FakeClock(NOON)),
        pytest.raises(
            LockedError, match=r"`tick`, since 12:00:00Z.*wait for it, or stop it$"
        ) as no,
        make("run", FakeClock(NOON + timedelta(seconds=1))),
    ):
        pass
    assert no.value.exit_code is ExitCode.LOCKED


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
from harness.clock import FakeClock
from harness.lease import Lease
from harness.lock import ProcessLock
from tests.leases import DeltaLeaseTable
from tests.unit.memory_store import MemoryStore

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
