"""Ticks whose processes are killed for real: nothing is lost, nothing is doubled, whatever dies.

One installation serves all tests, since every tick costs a JVM. ``python -m tests.recovery`` plays
more deaths than these.
"""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from harness.errors import ExitCode
from harness.store.rows import Ledger
from tests.recovery.deaths import (
    FOLLOWING,
    OF_ENGINE,
    PUBLISHING,
    RELEASING,
    RESENDING,
    STARTING,
    AtPoint,
    Death,
    die,
)
from tests.recovery.evidence import changes_of_the_past, record_of
from tests.recovery.machine import Machine, installed
from tests.simulation.checker import complaints
from tests.simulation.record import Record, Row, attempt_of

pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A machine after all deaths, and what is to be judged of it."""

    machine: Machine
    record: Record
    #: How a second process ended, and what it printed, while the first was frozen.
    refused: "subprocess.CompletedProcess[bytes]"
    frozen_pid: int
    #: How the first ended when it had woken up.
    woken_code: int


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with installed(tmp_path_factory.mktemp("recovery")) as machine:
        assert machine.tick_without_answers() == ExitCode.FAILED, machine.complaint()
        _die_of(machine, (*RESENDING, *PUBLISHING))
        with machine.runs_held():
            frozen, refused = _freeze(machine)
            woken_code = machine.end_of(frozen)
            machine.append()
            _die_of(machine, FOLLOWING)
        _die_of(machine, STARTING)
        machine.add_trigger()
        _die_of(machine, RELEASING)
        _die_of(machine, OF_ENGINE)
        machine.come_to_rest()
        yield Played(
            machine=machine,
            record=record_of(machine),
            refused=refused,
            frozen_pid=frozen.pid,
            woken_code=woken_code,
        )


def _die_of(machine: Machine, deaths: Iterable[Death]) -> None:
    for death in deaths:
        assert die(machine, death), f"{death} did not kill the tick"


def _freeze(
    machine: Machine,
) -> tuple["subprocess.Popen[bytes]", "subprocess.CompletedProcess[bytes]"]:
    """Stop a tick while it starts a job, tick beside it, and let the first go on."""
    machine.append()
    frozen = machine.start()
    machine.server.freezes = frozen.pid
    try:
        assert machine.server.has_frozen.wait(600), machine.complaint()
        refused = subprocess.run(
            frozen.args,
            cwd=machine.project,
            env=machine.environment(),
            capture_output=True,
            check=False,
        )
    finally:
        os.killpg(frozen.pid, signal.SIGCONT)
    return frozen, refused


def test_no_death_loses_an_event_or_starts_a_job_twice(played: Played) -> None:
    assert complaints(played.record) == []


def test_every_start_did_its_work_once(played: Played) -> None:
    worked = Counter(played.machine.worked.read_text().split())
    intents = {str(row["intent_id"]) for row in played.record.steps}
    assert worked == Counter(intents)


def test_no_tick_changes_what_an_earlier_one_has_recorded(played: Played) -> None:
    assert list(changes_of_the_past(played.machine)) == []


def test_what_is_public_shows_in_the_end_that_all_is_done(played: Played) -> None:
    rows = played.machine.store.read("heartbeat_control")
    reported = sorted((str(row["trigger_job_id"]), row["sensor_id"], row["status"]) for row in rows)
    assert reported == sorted((str(job), name, "COMPLETED") for job, name in played.machine.lines)


def test_while_a_tick_is_frozen_another_process_is_refused_with_the_reason(played: Played) -> None:
    assert played.refused.returncode == ExitCode.LOCKED
    output = " ".join(played.refused.stderr.decode().split())
    assert f"pid {played.frozen_pid}, `tick`" in output


def test_a_frozen_tick_ends_rightly_when_it_wakes(played: Played) -> None:
    assert played.woken_code == ExitCode.DONE


def _one_more_run(record: Record) -> Record:
    token, runs = next(iter(record.runs.items()))
    return replace(record, runs={**record.runs, token: [*runs, {**runs[0], "run_id": 1}]})


def _another_run(record: Record) -> Record:
    token, runs = next(iter(record.runs.items()))
    return replace(record, runs={**record.runs, token: [{**runs[0], "run_id": 1}]})


def _a_run_of_nobody(record: Record) -> Record:
    return replace(record, runs={**record.runs, "unknown": next(iter(record.runs.values()))})


def _other_start(**changed: object) -> Callable[[Record], Record]:
    def change(record: Record) -> Record:
        other = replace(record.starts[0], **changed)  # type: ignore[arg-type]
        return replace(record, starts=[*record.starts, other])

    return change


def _with(record: Record, ledger: Ledger, rows: list[Row]) -> Record:
    return replace(record, ledgers={**record.ledgers, ledger: rows})


def _never_ended(record: Record) -> Record:
    last = attempt_of(record.steps[-1])
    rows = [r for r in record.steps if attempt_of(r) != last or r["run_status"] != "SUCCEEDED"]
    return _with(record, Ledger.RUNS, rows)


def _began_again(record: Record) -> Record:
    again = {**record.steps[-1], "run_status": "STARTED"}
    return _with(record, Ledger.RUNS, [*record.steps, again])


def _taken_again(record: Record) -> Record:
    again = {**record.steps[0], "intent_id": "another", "token": "another"}
    return _with(record, Ledger.RUNS, [*record.steps, again])


def _nothing_taken(record: Record) -> Record:
    return _with(record, Ledger.RUNS, [{**row, "event_ids": []} for row in record.steps])


def _event_twice(record: Record) -> Record:
    return _with(record, Ledger.EVENTS, [*record.events, record.events[0]])


def _released_twice(record: Record) -> Record:
    copy = next(row for row in record.events if str(row["upstream_id"]).startswith("trigger:"))
    return _with(record, Ledger.EVENTS, [*record.events, {**copy, "event_id": "another"}])


def _event_missing(record: Record) -> Record:
    return _with(record, Ledger.EVENTS, list(record.events[1:]))


#: What is changed in the real record, and the rule that has to notice.
WRONGS: Mapping[str, Callable[[Record], Record]] = {
    "one_run_per_attempt": _one_more_run,
    "a_run_is_known_by_its_own_id": _another_run,
    "no_start_without_an_intent": _other_start(was_intended=False),
    "no_start_without_an_intent: no ledger": _a_run_of_nobody,
    "one_token_and_one_body": _other_start(body="{}"),
    "one_token_and_one_body: attempt": _other_start(token=None),
    "every_start_ends_or_is_parked": _never_ended,
    "steps_are_legal": _began_again,
    "an_event_is_consumed_once_by_each_job": _taken_again,
    "no_event_is_lost": _nothing_taken,
    "an_event_is_recorded_once": _event_twice,
    "a_trigger_releases_a_change_once": _released_twice,
    "every_change_is_an_event": _event_missing,
    "what_ended_ended_so": lambda record: replace(record, outcomes={}),
}


@pytest.mark.parametrize("complaint", WRONGS)
def test_what_is_gathered_is_enough_to_complain_of(played: Played, complaint: str) -> None:
    wrong = WRONGS[complaint](played.record)
    assert any(each.startswith(complaint) for each in complaints(wrong))


def test_without_the_token_a_death_after_the_call_starts_a_job_twice(played: Played) -> None:
    """The last test: the installation is of no use after it."""
    played.machine.take_out_the_token()
    assert die(played.machine, AtPoint("after_call", has_news=True))
    assert die(played.machine, AtPoint("after_outcome"))
    broken = {each.partition(":")[0] for each in complaints(record_of(played.machine))}
    assert {"one_run_per_attempt", "one_token_and_one_body"} <= broken
