"""What commands share: lengths of time, and the first steps after the first tick."""

from datetime import timedelta

import pytest

from harness.cli.common import length_of_time
from harness.cli.tick import _show_next_steps
from harness.errors import ConfigurationError
from harness.store.rows import RunStatus
from tests.unit.inspect.test_tick_summary import busy, idle, started


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("0.5", 0.5), ("5s", 5), ("500ms", 0.5), ("1h30m", 5400)]
)
def test_a_number_alone_has_seconds(text: str, seconds: float) -> None:
    assert length_of_time(text, "--every") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["often", "", "0", "-5", "1.2.3"])
def test_what_is_no_length_of_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--every .*; write for example 500ms, 30s"):
        length_of_time(text, "--every")


def test_after_the_first_tick_the_next_steps_name_the_job_that_was_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _show_next_steps(busy(started(RunStatus.STARTED, job_name="my job", run_id=7)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "next"
    assert any(line.startswith("  python -m harness explain 'my job' ") for line in lines)
    assert any(line.startswith("  python -m harness logs 'my job' ") for line in lines)


def test_where_nothing_was_started_the_next_steps_name_no_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _show_next_steps(idle())
    output = capsys.readouterr().out
    assert "explain JOB" in output
    assert "logs" not in output
