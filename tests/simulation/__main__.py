"""Plays histories by hand: one seed with its whole story, or many seeds in a row.

python -m tests.simulation 42                  the history of seed 42, as short as it is wrong
python -m tests.simulation 42 --moves 0-3,12   only these of its moves, then peace
python -m tests.simulation --count 5000        so many fresh seeds; prints those that fail, made
                                               short, and what was never played together
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Collection

from tests.simulation.history import play
from tests.simulation.machine import Wiring
from tests.simulation.played import table
from tests.simulation.shrink import command, from_words, shrink


def main() -> int:
    """Play, and exit with 1 when a history is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seed", nargs="?", type=int, help="the one history to play and to print")
    parser.add_argument("--moves", type=from_words, help="play only these, as in 0-3,12")
    parser.add_argument("--count", type=int, default=1000, help="how many fresh seeds to play")
    parser.add_argument("--first", type=int, help="the first of them; drawn when left out")
    parser.add_argument("--turns", action="store_true", help="processes freeze, and take turns")
    options = parser.parse_args()
    wiring = Wiring(turn=lambda lease: lease) if options.turns else Wiring()
    if options.seed is not None:
        return play_one(options.seed, options.moves, wiring)
    return play_many(options.first, options.count, wiring)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def play_one(seed: int, moves: Collection[int] | None, wiring: Wiring) -> int:
    """Print one history, the shortest that is wrong where one is."""
    reported = play(seed, moves=moves, wiring=wiring)
    if reported.complaints and moves is None:
        reported = shrink(reported, wiring)
    _say("\n".join([*reported.lines, "", *(reported.complaints or ["nothing is wrong"])]))
    if reported.complaints:
        _say(command(reported, takes_turns=wiring.turn is not None))
    return 1 if reported.complaints else 0


def play_many(first: int | None, count: int, wiring: Wiring) -> int:
    """Play fresh seeds; print those whose histories are wrong, and what was played."""
    first = random.SystemRandom().randrange(10**9) if first is None else first
    _say(f"seeds {first} to {first + count - 1}")
    began, used = time.perf_counter(), time.process_time()
    failed, moves, starts = 0, 0, 0
    kinds: Counter[str] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + count):
        reported = play(seed, wiring=wiring)
        starts += reported.starts
        moves += len(reported.moves)
        cells.update(reported.cells)
        if reported.complaints:
            failed += 1
            kinds.update(reported.broken)
            short = shrink(reported, wiring) if kinds[min(reported.broken)] == 1 else reported
            _say(
                f"{short.complaints[0][:300]}\n  {command(short, takes_turns=wiring.turn is not None)}"
            )
    seconds, used = time.perf_counter() - began, time.process_time() - used
    _say(table(cells))
    _say(
        f"{failed} of {count} wrong, {moves} moves, {starts} requests, {seconds:.0f} s,"
        f" {moves / max(used, 0.001):.0f} moves per second of processor time {dict(kinds)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
