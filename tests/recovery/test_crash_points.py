"""No crash point of the code is left out: neither by real deaths, nor by played ones."""

import ast
from collections.abc import Iterator

from tests.recovery.deaths import FOLLOWING, PUBLISHING, RELEASING, RESENDING, STARTING, AtPoint
from tests.simulation.history import CRASH_POINTS, RELEASE_POINTS
from tests.support.copied import PROJECT


def _crash_points_of_the_code() -> Iterator[str]:
    for path in (PROJECT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "crash_point":
                yield ast.literal_eval(node.args[0])


def test_every_crash_point_of_the_code_is_died_at() -> None:
    deaths = (*RESENDING, *PUBLISHING, *FOLLOWING, *STARTING, *RELEASING)
    died_at = {death.point for death in deaths if isinstance(death, AtPoint)}
    assert died_at == {*_crash_points_of_the_code()}


def test_the_simulation_has_every_crash_point_of_the_code() -> None:
    assert {*CRASH_POINTS, *RELEASE_POINTS} == {*_crash_points_of_the_code()}
