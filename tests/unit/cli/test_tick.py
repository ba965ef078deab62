"""What the command `tick` does after a tick."""

import pytest
from typer.testing import CliRunner

from harness.cli.app import app
from harness.errors import ExitCode
from tests.support.small_world import SmallWorld


@pytest.mark.parametrize("has_news", [True, False])
def test_a_tick_of_its_own_process_compacts_what_is_due_after_new_data(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch, has_news: bool
) -> None:
    compacted: list[object] = []
    monkeypatch.setattr("harness.tick.housekeeping.compact_when_due", compacted.append)
    world.models |= {"trigger_set": list, "job_blockers": list}
    world.remember(must_decide=has_news)
    answer = CliRunner().invoke(app, ["tick", "--quiet"])
    assert answer.exit_code == ExitCode.DONE, answer.output
    assert len(compacted) == has_news
