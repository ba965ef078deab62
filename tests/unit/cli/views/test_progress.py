"""What is shown while something goes on: the phase at work, never an old one, never silence."""

import time
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.cli.views.progress import BAR_FROM, PlainLines, Progress, phase_of
from harness.platform.stopping import Activity
from harness.sense.probe import ProbeResult

PHASES = ("starting Spark", "probing the upstreams", "deciding", "publishing the tables")
#: A phase, and for how many halves of a second it lasts.
HISTORIES = st.lists(st.tuples(st.sampled_from(PHASES), st.integers(0, 40)), max_size=12)


def written(history: Sequence[tuple[str, int]]) -> list[tuple[float, str, str]]:
    """Return when each line was written, its text, and the phase at work then."""
    lines = PlainLines("getting ready", 0.0)
    now, found = 0.0, []
    for words, halves in history:
        lines.heard(words, now)
        for _ in range(halves):
            now += 0.5
            line = lines.due(now)
            if line is not None:
                found.append((now, line, words))
    return found


@given(HISTORIES)
def test_no_history_is_silent_for_more_than_five_seconds(history: list[tuple[str, int]]) -> None:
    end = sum(halves for _, halves in history) / 2
    instants = [0.0, *(at for at, _, _ in written(history)), end]
    assert all(later - earlier <= 5 for earlier, later in pairwise(instants))


@given(HISTORIES)
def test_a_line_has_the_phase_at_work_and_the_seconds_since_the_begin(
    history: list[tuple[str, int]],
) -> None:
    for at, line, words in written(history):
        assert line == f"{words} ... {at:.0f} s"


def test_a_phase_that_takes_longer_than_a_moment_has_its_own_line() -> None:
    found = written([(phase, 5) for phase in PHASES])
    assert [words for _, _, words in found] == list(PHASES)


def test_what_is_over_in_a_moment_is_not_reported() -> None:
    assert written([("deciding", 3), ("publishing the tables", 3)]) == []


def test_how_far_a_phase_has_come_is_no_phase_of_its_own() -> None:
    lines = PlainLines("building", 0.0)
    shown = []
    for second in range(1, 8):
        lines.heard(f"building ({second} of 9)", float(second))
        shown.append(lines.due(float(second)))
    assert [line for line in shown if line] == [
        "building (2 of 9) ... 2 s",
        "building (6 of 9) ... 6 s",
    ]


def test_the_seconds_are_those_since_the_command_began() -> None:
    assert PlainLines("deciding", 100.0, began=90.0).due(102.0) == "deciding ... 12 s"


def drawn(activity: Activity, act: object, *, began: float) -> str:
    stream = StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system=None)
    with Progress(console, activity, began=began) as progress:
        assert callable(act)
        act(progress)
        progress._bars.refresh()
    return stream.getvalue()


def test_a_terminal_shows_the_phase_with_its_seconds_and_those_of_the_command() -> None:
    activity = Activity()
    text = drawn(activity, lambda _: activity.begin("deciding"), began=time.monotonic() - 30)
    assert "deciding 0 s, 30 s in all" in " ".join(text.split())


@pytest.mark.parametrize("count", [7, BAR_FROM + 7])
def test_probes_are_counted(count: int) -> None:
    activity = Activity()

    def probe(progress: Progress) -> None:
        activity.begin("probing the upstreams")
        progress.on_plan(count)
        for number in range(count - 2):
            progress.on_result(ProbeResult(upstream_id=str(number), position=None))
        assert progress._lines.due(time.monotonic() + 9) == (
            f"probing the upstreams ({count - 2} of {count}) ... 9 s"
        )
        activity.begin("deciding")
        assert progress._lines.due(time.monotonic() + 18) == "deciding ... 18 s"

    drawn(activity, probe, began=time.monotonic())


def test_the_count_of_one_phase_is_not_that_of_the_next() -> None:
    assert phase_of("building (3 of 51)") == "building"
