"""Plays histories by hand: one seed with its whole story, or many seeds in a row.

python -m tests.simulation 42                  the history of seed 42, move by move
python -m tests.simulation 42 --moves 12       only its first moves, then peace
python -m tests.simulation --count 5000        so many fresh seeds; prints those that fail
"""

import argparse
import random
import sys
import time
from collections import Counter

from tests.simulation.history import MOVES, play


def main() -> int:
    """Play, and exit with 1 when a history is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seed", nargs="?", type=int, help="the one history to play and to tell")
    parser.add_argument("--moves", type=int, help="play only so many of its moves")
    parser.add_argument("--count", type=int, default=1000, help="how many fresh seeds to play")
    parser.add_argument("--first", type=int, help="the first of them; drawn when left out")
    options = parser.parse_args()
    if options.seed is not None:
        return tell(options.seed, options.moves)
    return play_many(options.first, options.count)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def tell(seed: int, moves: int | None) -> int:
    """Print one history, the shortest that is wrong where one is."""
    told = play(seed, moves=moves)
    if told.complaints and moves is None:
        shorter = (play(seed, moves=number) for number in range(1, MOVES + 1))
        told = next(each for each in shorter if each.complaints)
    _say("\n".join([*told.lines, "", *(told.complaints or ["nothing is wrong"])]))
    return 1 if told.complaints else 0


def play_many(first: int | None, count: int) -> int:
    """Play fresh seeds and print those whose histories are wrong."""
    first = random.SystemRandom().randrange(10**9) if first is None else first
    _say(f"seeds {first} to {first + count - 1}")
    began, failed, kinds, starts = time.perf_counter(), 0, Counter[str](), 0
    for seed in range(first, first + count):
        told = play(seed)
        starts += told.starts
        if told.complaints:
            failed += 1
            kinds.update({each.partition(":")[0] for each in told.complaints})
            _say(f"seed {seed}: {told.complaints[0][:300]}")
    _say(
        f"{failed} of {count} wrong, {starts} requests, {time.perf_counter() - began:.0f} s {dict(kinds)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
