"""Processes that stand still in the midst of a tick, wake up after others took over, and go on."""

import pytest

from harness.store.rows import FencingToken
from harness.store.writer.fencing import HeldLease
from harness.store.writer.lease import Lease
from tests.simulation.history import HistoryResult, play
from tests.simulation.machine import Wiring
from tests.simulation.shrink import report

TURNS = Wiring(turn=lambda lease: lease)
SEEDS = range(60)
#: Some history of these shows each thing that may be wrong: first those that show both.
SEEDS_OF_WRONG = (154, 172, *range(600))


class _Unstamped:
    """A lease whose appends the ledgers accept at any time."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._count = 0

    def fencing_token(self) -> FencingToken:
        self._lease.check()
        self._count += 1
        return FencingToken(application=f"{id(self)}", version=self._count)

    def confirm(self) -> None:
        self._lease.confirm()

    def append_failed(self) -> None:
        self._lease.append_failed()


class _Unconfirmed(_Unstamped):
    """A lease that takes all that it appended for landed."""

    def fencing_token(self) -> FencingToken:
        return self._lease.fencing_token()

    def confirm(self) -> None: ...


@pytest.fixture(scope="module")
def histories() -> list[HistoryResult]:
    return [play(seed, wiring=TURNS) for seed in SEEDS]


def test_no_history_with_frozen_processes_breaks_a_promise(histories: list[HistoryResult]) -> None:
    wrong = report(histories, TURNS)
    assert not wrong, wrong


def test_frozen_processes_wake_up_and_their_lost_lease_is_reported(
    histories: list[HistoryResult],
) -> None:
    lines = [line for reported in histories for line in reported.lines]
    assert sum(line.startswith("  another ticks") for line in lines) > 50
    assert any("has lost the lease" in line for line in lines)


@pytest.mark.parametrize("turn", [_Unstamped, _Unconfirmed])
def test_the_checker_complains_of_a_turn_without(turn: type[HeldLease]) -> None:
    assert any(play(seed, wiring=Wiring(turn=turn)).complaints for seed in SEEDS_OF_WRONG)
