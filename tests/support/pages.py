"""The report of an installation on a disk, as the command makes it."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from harness.config.load import load_settings
from harness.context import Context
from harness.inspect.page.deliver import page_of
from harness.inspect.page.read import Recorded
from harness.inspect.status import Status
from harness.store.queries import LastDecision
from tests.support.fake_clock import FakeClock
from tests.support.ledgers import TEN
from tests.support.report_world import NOW, World, write

_CONTENT = re.compile(r'<script type="application/json" id="content">(.*?)</script>', re.DOTALL)


def context_of(project: Path, configuration: str = "") -> Context:
    """Wire the services of a project whose state is in ``state``."""
    (project / "heartbeat.yml").write_text(configuration)
    settings = load_settings(project, {"HEARTBEAT_HOME": str(project / "state")})
    return Context(settings, {}, FakeClock(NOW))


def page_in(project: Path, world: World, *, days: float = 7, configuration: str = "") -> str:
    """Write the past of a world, and return its report."""
    write(world, project / "state", days=days)
    return page_of(context_of(project, configuration))


def content_in(page: str) -> dict[str, Any]:
    """Return what a browser reads out of the report."""
    found = _CONTENT.findall(page)
    assert len(found) == 1
    content: dict[str, Any] = json.loads(found[0])
    return content


def recorded(**changed: Any) -> Recorded:
    """Return what was read where nothing was recorded, with these changes; it is noon."""
    decision = LastDecision(tick_id="9-x", tick_number=9, tick_at=TEN, jobs=changed.pop("jobs", ()))
    status = Status(
        now=TEN + timedelta(hours=2),
        control=(),
        sensors=(),
        runs=changed.pop("newest_runs", ()),
        decision=decision,
        holder=None,
        last_tick_at=changed.pop("last_tick_at", TEN + timedelta(hours=2)),
        **changed.pop("status", {}),
    )
    fields = {"status": status, "since": TEN, "controls": (), **changed}
    return Recorded(**fields)
