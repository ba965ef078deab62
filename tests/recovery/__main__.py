"""Plays more deaths than the tests do, each in a tick of its own, and judges what is left.

python -m tests.recovery points          at every crash point, with new data and without
python -m tests.recovery requests        by the Jobs API, at each request, before its effect and after
python -m tests.recovery commits         at each commit of a tick that publishes and compacts
python -m tests.recovery installation    at each commit of the first tick of all
python -m tests.recovery without-token   what the checker reports when no idempotency token is sent

What is counted goes on until a tick comes to its end. Each death costs about as long as a tick. In
pieces: `--folder F --minutes 3`, which prints with which `--first` the next piece begins.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.recovery.deaths import AtCommit, AtPoint, Death, FromServer, die
from tests.recovery.evidence import changes_of_the_past, record_of
from tests.recovery.machine import Machine, installed
from tests.simulation.checker import complaints
from tests.simulation.history import CRASH_POINTS
from tests.support.jobs_emulator.faults import When

#: As often as can be, so that each tick has commits of compacting.
_FOLD_AFTER = {"commits": 1}
KINDS = ("points", "requests", "commits", "installation", "without-token")


def main() -> int:
    """Play, and exit with 1 when something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.recovery",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--first", type=int, default=1, help="begin with the n-th")
    parser.add_argument("--step", type=int, default=1, help="play every n-th only")
    parser.add_argument("--most", type=int, default=1000, help="play so many at most")
    parser.add_argument(
        "--minutes", type=float, default=600, help="begin no further death after so long"
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the installation there, and go on with it"
    )
    options = parser.parse_args()
    chosen = slice(options.first - 1, options.first - 1 + options.most * options.step, options.step)
    until = time.perf_counter() + 60 * options.minutes
    with (
        tempfile.TemporaryDirectory() as passing,
        installed(options.folder or Path(passing), _FOLD_AFTER.get(options.kind)) as machine,
    ):
        if options.kind != "installation":
            _rest(machine)
        if options.kind == "without-token":
            machine.take_out_the_token()
        for deaths in _series(options.kind):
            numbered = itertools.islice(
                enumerate(deaths, start=1), chosen.start, chosen.stop, chosen.step
            )
            _play(machine, numbered, until)
        _rest(machine)
        return _judge(machine)


def _series(kind: str) -> list[Iterable[Death]]:
    """Return the deaths of a kind; a series ends where a tick outlives the death meant for it."""
    match kind:
        case "points":
            return [
                [AtPoint(name, has_news) for name in CRASH_POINTS for has_news in (True, False)]
            ]
        case "requests":
            return [_at_requests(when) for when in When]
        case "without-token":
            return [[AtPoint("after_call", True), AtPoint("after_outcome")]]
        case _:
            has_news = kind == "commits"
            return [(AtCommit("", number, has_news) for number in itertools.count(1))]


def _at_requests(when: When) -> Iterator[Death]:
    return (FromServer("", when, number, True) for number in itertools.count(1))


def _play(machine: Machine, deaths: Iterable[tuple[int, Death]], until: float) -> None:
    for number, death in deaths:
        began, before = time.perf_counter(), machine.commits()
        if began > until:
            _say(began, f"the time is over: go on with --first {number}")
            return
        is_dead = die(machine, death)
        new = ", ".join(sorted(machine.commits() - before))
        _say(began, f"{death}: {'killed' if is_dead else 'outlived'}; new: {new}")
        # A point that this tick does not pass may be passed by the next; a higher number cannot be.
        if not is_dead and not isinstance(death, AtPoint):
            return


def _rest(machine: Machine) -> None:
    began = time.perf_counter()
    machine.come_to_rest()
    _say(began, "at rest")


def _judge(machine: Machine) -> int:
    record = record_of(machine)
    wrong = [*complaints(record), *changes_of_the_past(machine)]
    reported = "\n".join(wrong) or "nothing is wrong"
    sys.stdout.write(f"{len(record.attempts)} starts, {len(record.starts)} requests: {reported}\n")
    return 1 if wrong else 0


def _say(began: float, text: str) -> None:
    sys.stdout.write(f"{time.perf_counter() - began:6.1f} s  {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
