"""Records since when a run has been unreachable, across restarts.

A poll of a run that fails leaves no row, since it has no information about the run. The file is a
convenience for who watches: no tick does anything because of it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import StateError
from harness.platform.json_file import load, save
from harness.store.rows import Run

_FILE = "unasked.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """One run that the last ticks could not poll."""

    run_id: int
    since: datetime
    #: Why the last poll had no answer.
    reason: str


def record_unreachable(
    home: Path, runs: Iterable[Run], unanswered: Mapping[int, str], at: datetime
) -> None:
    """Keep which open runs a tick could not poll, and since when; drop the others.

    Args:
        home: The state directory.
        runs: The runs that the tick followed.
        unanswered: Jobs whose run had no answer, and why.
        at: The tick's instant.
    """
    before = load_unreachable(home)
    now = {
        run.job_id: Unreachable(
            run_id=run.run_id,
            since=_since(before.get(run.job_id), run.run_id, at),
            reason=unanswered[run.job_id],
        )
        for run in runs
        if run.is_open and run.run_id is not None and run.job_id in unanswered
    }
    if now != before:
        with suppress(StateError):
            save(home / _FILE, _plain(now))


def load_unreachable(home: Path) -> dict[int, Unreachable]:
    """Return the runs that the last tick could not poll, by job; none without a file."""
    return load(home / _FILE, _unasked_in) or {}


def _unasked_in(content: Any) -> dict[int, Unreachable]:
    return {
        int(job_id): Unreachable(
            run_id=int(each["run_id"]),
            since=datetime.fromisoformat(each["since"]).astimezone(UTC),
            reason=str(each["reason"]),
        )
        for job_id, each in content.items()
    }


def _since(known: Unreachable | None, run_id: int, at: datetime) -> datetime:
    return min(known.since, at) if known and known.run_id == run_id else at


def _plain(unreachable: Mapping[int, Unreachable]) -> dict[str, dict[str, str]]:
    # Ids as text: other readers of the file may round a large number.
    return {
        str(job_id): {
            "run_id": str(each.run_id),
            "since": each.since.isoformat(),
            "reason": each.reason,
        }
        for job_id, each in unreachable.items()
    }
