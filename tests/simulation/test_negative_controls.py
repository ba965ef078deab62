"""The checker sees each way of being wrong; without that, its silence would prove nothing."""

import pytest

from tests.simulation.history import play
from tests.simulation.machine import Wiring
from tests.simulation.wrong import WRONG

#: The same seeds have nothing to complain of when all is right. First six that show every fault
#: between them, in the order that takes the least time.
SEEDS = (17, 81, 3, 16, 157, 114, *range(200))


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_complains_of_a_harness(name: str) -> None:
    wiring, rules = WRONG[name]
    found = (_broken(seed, wiring) & rules for seed in SEEDS)
    assert any(found), f"no history showed that a harness {name} breaks one of {sorted(rules)}"


def _broken(seed: int, wiring: Wiring) -> set[str]:
    return {each.partition(":")[0] for each in play(seed, wiring=wiring).complaints}
