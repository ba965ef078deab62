"""Determines when what keeps failing is probed again, and keeps that across restarts.

The file is a convenience, never the truth: whether an upstream fails at all is in the ledgers, and
without the file it is probed by the next tick.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.errors import StateError
from harness.platform.json_file import load, save
from harness.sense.probe import ProbeResult
from harness.store.rows import text_or_none
from harness.store.work_lists import Upstream

VERSION = 1

#: The first failures in a row are tried again by the next tick; many are over by then.
_PATIENCE = 2
#: Ticks come a little early or late, so a probe may be early by this part of its wait, and by no
#: more than so many seconds.
_TOLERANCE = 0.1
_MOST_EARLY_SECONDS = 5.0
#: No configuration allows a longer wait.
_LONGEST_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """An upstream whose last probes failed, and how long it is not probed now."""

    upstream_id: str
    reason: str
    #: How many probes failed in a row.
    failed_looks: int
    #: When the first and the last of them began.
    since: datetime
    failed_at: datetime
    #: Zero: the next tick probes.
    wait_seconds: float = 0.0
    #: What distinguishes two upstreams of one name; no source in an entry of an earlier version.
    source: str = ""
    read_type: str = ""
    upstream_key: str | None = None
    preprocess_query: str | None = None

    def next_probe(self, now: datetime) -> datetime | None:
        """Return from when on a tick probes again; nothing when the next one does in any case."""
        if self.is_due(now):
            return None
        return self.failed_at + timedelta(seconds=self.wait_seconds)

    def is_due(self, at: datetime) -> bool:
        """Return whether a tick at this instant probes; it does if the clock went back."""
        waited = (at - self.failed_at).total_seconds()
        early = min(_TOLERANCE * self.wait_seconds, _MOST_EARLY_SECONDS)
        return waited < 0 or waited >= self.wait_seconds - early

    def again(self, reason: str, at: datetime, most_seconds: float) -> "Failing":
        """Return a copy after one more probe that failed.

        The wait is twice the time since the probe before: that was the ticks' own interval at
        first, and what was waited later.
        """
        since_last = max(0.0, (at - self.failed_at).total_seconds())
        has_patience = self.failed_looks + 1 <= _PATIENCE
        wait = 0.0 if has_patience else 2 * max(since_last, self.wait_seconds)
        return replace(
            self,
            reason=reason,
            failed_looks=self.failed_looks + 1,
            failed_at=at,
            wait_seconds=min(wait, most_seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackOff:
    """Every upstream whose last probe failed."""

    failing: Mapping[str, Failing] = field(default_factory=dict)

    def deferred(self, upstream_ids: Iterable[str], at: datetime) -> dict[str, Failing]:
        """Return those that a tick at this instant leaves alone."""
        if not self.failing:
            return {}
        known = (self.failing.get(upstream_id) for upstream_id in upstream_ids)
        return {each.upstream_id: each for each in known if each and not each.is_due(at)}

    def after(self, results: Iterable[ProbeResult], at: datetime, most_seconds: float) -> "BackOff":
        """Return a copy after probes: a success clears all failures before it."""
        failing = dict(self.failing)
        for result in results:
            before = failing.pop(result.upstream_id, None)
            if result.failure is not None:
                failing[result.upstream_id] = (
                    before.again(result.failure, at, most_seconds)
                    if before
                    else Failing(
                        upstream_id=result.upstream_id,
                        reason=result.failure,
                        failed_looks=1,
                        since=at,
                        failed_at=at,
                    )
                )
        return BackOff(failing=failing)

    def described(self, upstreams: Iterable[Upstream]) -> "BackOff":
        """Return a copy that has of these what distinguishes them."""
        if not self.failing:
            return self
        known = {each.upstream_id: each for each in upstreams if each.upstream_id in self.failing}
        return BackOff(
            failing={
                key: replace(
                    each,
                    source=known[key].source,
                    read_type=known[key].read_type,
                    upstream_key=known[key].upstream_key,
                    preprocess_query=known[key].preprocess_query,
                )
                if key in known
                else each
                for key, each in self.failing.items()
            }
        )

    def only(self, upstream_ids: Iterable[str]) -> "BackOff":
        """Return a copy without all others."""
        if not self.failing:
            return self
        kept = frozenset(upstream_ids)
        return BackOff(failing={key: each for key, each in self.failing.items() if key in kept})

    def without(self, upstream_ids: Iterable[str]) -> "BackOff":
        """Return a copy without these."""
        if not self.failing:
            return self
        return self.only(self.failing.keys() - set(upstream_ids))

    def reset(self, upstream_ids: Iterable[str]) -> "BackOff":
        """Return a copy in which the next tick probes these, as if they began to fail then."""
        meant = frozenset(upstream_ids)
        return BackOff(
            failing={
                key: replace(each, failed_looks=0, wait_seconds=0.0) if key in meant else each
                for key, each in self.failing.items()
            }
        )


def load_back_off(path: Path, configuration: str | None = None) -> BackOff:
    """Read the file; nothing when it is missing or broken.

    Args:
        path: The file.
        configuration: Names the present one. An edit may be what puts an upstream right: all that
            failed under another one is due at once. ``None`` reads the file as it is.
    """
    return load(path, lambda content: _back_off_in(content, configuration)) or BackOff()


def _back_off_in(content: Any, configuration: str | None) -> BackOff | None:
    if content["version"] != VERSION:
        return None
    found = [_failing_from(each) for each in content["failing"]]
    back_off = BackOff(failing={each.upstream_id: each for each in found})
    is_other = configuration is not None and content["configuration"] != configuration
    return back_off.reset(back_off.failing) if is_other else back_off


def save_back_off(path: Path, back_off: BackOff, configuration: str) -> None:
    """Write the file, whole or not at all; none when nothing fails.

    Raises:
        StateError: It cannot be written, or not be removed.
    """
    if not back_off.failing:
        end_back_off(path)
        return
    content = {
        "version": VERSION,
        "configuration": configuration,
        "failing": [asdict(each) for each in back_off.failing.values()],
    }
    save(path, content, default=datetime.isoformat)


def end_back_off(path: Path) -> BackOff:
    """Let the next tick probe all that fails: remove the file, and return what it held.

    A tick that is probing this moment notices it when it ends.

    Raises:
        StateError: The file cannot be removed.
    """
    held = load_back_off(path)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StateError(
            f"{path} cannot be removed ({reason}): make its folder writable"
        ) from error
    return held


def _failing_from(row: Mapping[str, str]) -> Failing:
    return Failing(
        upstream_id=str(row["upstream_id"]),
        reason=str(row["reason"]),
        failed_looks=int(row["failed_looks"]),
        since=_instant(row["since"]),
        failed_at=_instant(row["failed_at"]),
        wait_seconds=_wait(row["wait_seconds"]),
        source=str(row.get("source") or ""),
        read_type=str(row.get("read_type") or ""),
        upstream_key=text_or_none(row.get("upstream_key")),
        preprocess_query=text_or_none(row.get("preprocess_query")),
    )


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} is in no time zone")
    return instant


def _wait(number: str) -> float:
    seconds = float(number)
    if not 0 <= seconds <= _LONGEST_SECONDS:
        raise ValueError(f"{seconds} is not a wait")
    return seconds
