"""Reports which moves were played together with which moments of a tick, and which never were."""

from collections.abc import Mapping

from tests.simulation.history import EVERY_MOMENT
from tests.simulation.moves import MOVES

#: A move that was played at fewer moments than these has those named that are left.
_ALL_BUT = 12


def table(cells: Mapping[tuple[str, str], int]) -> str:
    """Return a line for each move: at how many moments it was played, how often, and what is left.

    Args:
        cells: How often a move came at a moment, or before a tick that died at it.
    """
    lines = [f"{'move':16} moments of {len(EVERY_MOMENT)}   times   never at"]
    for name in MOVES:
        at = {moment: cells.get((name, moment), 0) for moment in EVERY_MOMENT}
        never = [moment for moment, count in at.items() if not count]
        few = len(never) <= _ALL_BUT
        left = ", ".join(never) if few else f"{len(never)} moments, among them {never[0]}"
        lines.append(f"{name:16} {len(EVERY_MOMENT) - len(never):13} {sum(at.values()):7}   {left}")
    never_died = [
        moment for moment in EVERY_MOMENT if not any(cells.get((name, moment)) for name in MOVES)
    ]
    lines.append(f"never together with any move: {', '.join(never_died) or 'no moment'}")
    return "\n".join(lines)
