"""Makes a wrong history short: which of its moves are enough for it to be wrong in the same way."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from tests.simulation.history import HistoryResult, play
from tests.simulation.machine import Wiring

#: So often a history is played again at most: some tens of seconds.
_MOST_PLAYS = 300


def shrink(wrong: HistoryResult, wiring: Wiring | None = None) -> HistoryResult:
    """Return the shortest history that was found of a wrong one; it breaks one of the same rules.

    Parts of the moves are left out, half of them first and single ones last, for as long as what
    remains is wrong.
    """
    plays = 0
    size = len(wrong.moves)
    shortest = wrong
    while size and plays < _MOST_PLAYS:
        for kept in _without_parts([*shortest.moves], size):
            plays += 1
            reported = play(wrong.seed, moves=kept, wiring=wiring)
            if reported.broken & wrong.broken:
                shortest = reported
                break
            if plays == _MOST_PLAYS:
                break
        else:
            size //= 2
        size = min(size, len(shortest.moves))
    return shortest


def _without_parts(moves: Sequence[int], size: int) -> Iterator[frozenset[int]]:
    """Leave out each part of a size, the last one first: what comes last matters least."""
    for end in range(len(moves), 0, -size):
        yield frozenset({*moves[: max(end - size, 0)], *moves[end:]})


def command(reported: HistoryResult, *, takes_turns: bool = False) -> str:
    """Return the command that plays these moves again."""
    option = " --turns" if takes_turns else ""
    return f"python -m tests.simulation {reported.seed}{option} --moves {in_words(reported.moves) or 'none'}"


def report(histories: Iterable[HistoryResult], wiring: Wiring | None = None) -> str:
    """Report for each wrong history what is wrong and how to play it; the first is made short.

    Args:
        histories: What was played, right or wrong.
        wiring: How the machine was put together.
    """
    takes_turns = wiring is not None and wiring.turn is not None
    wrong = [reported for reported in histories if reported.complaints]
    texts = []
    for reported in wrong[:1]:
        short = shrink(reported, wiring)
        lines = [*short.lines, *short.complaints, "", command(short, takes_turns=takes_turns)]
        texts.append("\n".join([f"seed {reported.seed}, {len(short.moves)} moves:", *lines]))
    option = " --turns" if takes_turns else ""
    for reported in wrong[1:]:
        texts.append(
            f"{reported.complaints[0]}\n  python -m tests.simulation {reported.seed}{option}"
        )
    return "\n\n".join(texts)


def in_words(moves: Iterable[int]) -> str:
    """Write numbers as the command line has them: 0-3,7."""
    spans: list[list[int]] = []
    for number in sorted(moves):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in spans)


def from_words(text: str) -> Collection[int]:
    """Read numbers as they are written in ``0-3,7``; ``none`` has none.

    Raises:
        ValueError: The text has another form.
    """
    if text == "none":
        return frozenset()
    spans = (span.partition("-") for span in text.split(","))
    return frozenset(n for a, _, b in spans for n in range(int(a), int(b or a) + 1))
