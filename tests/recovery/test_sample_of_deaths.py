"""A few of the deaths that ``test_killed_process`` plays, for every run of the tests.

Most of them leave the ledgers as they were, so the next tick needs no JVM to learn where it stands.
"""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from harness.errors import ExitCode
from harness.jobs.local.faults import When
from tests.copied import PROJECT
from tests.recovery.deaths import (
    FOLLOWING,
    PUBLISHING,
    RESENDING,
    RUN_NOW,
    STARTING,
    AtCommit,
    AtPoint,
    Death,
    FromServer,
    die,
)
from tests.recovery.evidence import changes_of_the_past, record_of
from tests.recovery.machine import Machine, installed
from tests.simulation.checker import complaints
from tests.simulation.history import CRASH_POINTS

#: A JVM starts three times, on a machine that may have other things to do.
pytestmark = pytest.mark.timeout(900)

#: Two starts have had no answer.
SAMPLE: tuple[Death, ...] = (
    AtPoint("before_call"),
    FromServer(RUN_NOW, When.AFTER),
    AtPoint("after_call"),
    AtPoint("before_outcome"),
    AtCommit("ledger_runs", has_news=True),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """An installation after these deaths, at rest."""
    with installed(tmp_path_factory.mktemp("sample")) as machine:
        assert machine.tick_without_answers() == ExitCode.FAILED, machine.complaint()
        for death in SAMPLE:
            assert die(machine, death), f"{death} did not kill the tick"
        machine.come_to_rest()
        yield machine


def _crash_points_of_the_code() -> Iterator[str]:
    for path in (PROJECT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "crash_point":
                yield ast.literal_eval(node.args[0])


def test_every_crash_point_of_the_code_is_died_at() -> None:
    deaths = (*RESENDING, *PUBLISHING, *FOLLOWING, *STARTING)
    died_at = {death.point for death in deaths if isinstance(death, AtPoint)}
    assert died_at == {*_crash_points_of_the_code()}


def test_the_simulation_knows_every_crash_point_of_the_code() -> None:
    assert {*CRASH_POINTS} == {*_crash_points_of_the_code()}


def test_a_few_deaths_lose_no_event_and_start_no_job_twice(machine: Machine) -> None:
    record = record_of(machine)
    assert complaints(record) == []
    assert list(changes_of_the_past(machine)) == []
    worked = Counter(machine.worked.read_text().split())
    assert worked == Counter({str(row["intent_id"]) for row in record.steps})
