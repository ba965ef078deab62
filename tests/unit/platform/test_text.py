"""Text from outside: what a terminal, JSON and a table are given of it."""

import json
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.app import _exit_with
from harness.cli.common import print_json, print_line
from harness.errors import ConfigurationError, ExitCode
from harness.platform.text import escaped, json_text, mapped, storable
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.store.work_lists import Upstream
from tests.support.golden import AT
from tests.support.hostile import EVERYTHING, HALF, PRINTABLE, UNSEEN

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)


def moves_or_hides(text: str) -> bool:
    """Return whether a terminal would do anything but show each character, apart from joiners."""
    return not all(each.isprintable() or each in " \u200c\u200d\u00ad\u3000" for each in text)


@pytest.mark.parametrize("text", [*UNSEEN, HALF, EVERYTHING])
def test_what_a_terminal_would_obey_is_shown_as_its_escape(text: str) -> None:
    assert not moves_or_hides(escaped(text))


@pytest.mark.parametrize("text", [*PRINTABLE, "Größe 数据 ✔ 👩‍🚀 می‌خواهم"])
def test_what_can_be_seen_is_left_as_it_is(text: str) -> None:
    assert escaped(text) == text


@settings(deadline=None)
@given(ANY_TEXT)
def test_text_in_json_means_the_same_and_is_one_line_of_utf_8(text: str) -> None:
    output = json_text({text: [text]})
    assert json.loads(output) == {text: [text]}
    assert "\n" not in output.encode().decode()


def test_nothing_in_json_moves_a_cursor() -> None:
    assert not moves_or_hides(json_text([EVERYTHING]))


@settings(deadline=None)
@given(ANY_TEXT)
def test_text_for_a_table_has_a_form_in_utf_8_and_is_otherwise_as_it_was(text: str) -> None:
    stored = storable(text)
    assert stored.encode().decode() == stored
    assert stored == text or any("\ud800" <= each <= "\udfff" for each in text)


def test_text_is_changed_wherever_it_stands_in_a_row() -> None:
    row = {HALF: [HALF, 1, None, (HALF, {"tags": [(HALF, HALF)]})]}
    assert HALF not in repr(mapped(row, storable)).encode().decode()
    assert mapped(row, str) == row


def test_no_answer_and_no_stack_trace_moves_a_cursor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTBEAT_DEBUG", "1")
    print_line(EVERYTHING)
    print_json({EVERYTHING: EVERYTHING})
    try:
        raise ConfigurationError(EVERYTHING) from ValueError(EVERYTHING)
    except ConfigurationError as error:
        _exit_with(str(error), error, ExitCode.USAGE)
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    for output in (captured.out, captured.err):
        assert not any(moves_or_hides(line) for line in output.split("\n"))


class Failing:
    """A probe that fails with any words."""

    def group_of(self, upstream: Upstream) -> str:
        return upstream.upstream_id

    def probe(self, group: list[Upstream], *, at: datetime) -> list[ProbeResult]:
        if group[0].upstream_id == "raises":
            raise RuntimeError(HALF)
        return [ProbeResult(upstream_id=group[0].upstream_id, position=None, failure=HALF)]


@pytest.mark.parametrize("upstream_id", ["raises", "says"])
def test_the_words_of_a_failed_probe_can_be_kept_whatever_they_are(upstream_id: str) -> None:
    upstream = Upstream(upstream_id=upstream_id, source="any", sensor_id="x", read_type="batch")
    [result] = ProbePool({"any": Failing()}).probe_all([upstream], at=AT)  # type: ignore[dict-item]
    assert result.failure is not None
    assert storable(result.failure) == result.failure
