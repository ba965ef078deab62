"""Learns how often each upstream has new data, and decides whether it is late.

The file is a convenience for those who watch: no decision about a job depends on it. Without it,
the rhythm of each upstream is learned again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.platform.json_file import load, save

VERSION = 1
#: So many gaps are kept, and so many are needed before any of them counts as usual.
_KEPT = 20
_NEEDED = 8
#: This part of the gaps is not longer than the usual gap: single pauses are left aside.
_USUAL = 0.9
#: A source that writes every second is not late after three.
_LEAST = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """When an upstream last had new data, and the time between its last arrivals."""

    last: datetime
    #: In seconds, oldest first.
    gaps: tuple[int, ...] = ()

    def after(self, at: datetime) -> "Rhythm":
        """Return a copy after one more arrival; one that is not later changes nothing."""
        if at <= self.last:
            return self
        gap = round((at - self.last).total_seconds())
        return Rhythm(last=at, gaps=(*self.gaps, gap)[-_KEPT:])

    @property
    def usual_gap(self) -> timedelta | None:
        """The time between two arrivals that nine in ten keep to; nothing while unknown."""
        if len(self.gaps) < _NEEDED:
            return None
        ordered = sorted(self.gaps)
        return timedelta(seconds=ordered[int(_USUAL * (len(ordered) - 1))])

    def late_after(self, factor: float) -> timedelta | None:
        """Return for how long it may be quiet: so many usual gaps; 0 turns this off."""
        usual = self.usual_gap
        return None if usual is None or factor == 0 else max(_LEAST, factor * usual)

    def is_late(self, now: datetime, factor: float) -> bool:
        """Return whether it has been quiet for longer than ``late_after``."""
        limit = self.late_after(factor)
        return limit is not None and now - self.last > limit


def rhythm_of(arrivals: Sequence[datetime]) -> Rhythm | None:
    """Return the rhythm of an upstream with these arrivals, oldest first; nothing without any."""
    rhythm: Rhythm | None = None
    for at in arrivals[-_KEPT - 1 :]:
        rhythm = rhythm.after(at) if rhythm else Rhythm(last=at)
    return rhythm


def with_arrivals(
    rhythms: Mapping[str, Rhythm], upstream_ids: Iterable[str], at: datetime
) -> dict[str, Rhythm]:
    """Return the rhythms after new data of these upstreams."""
    after = dict(rhythms)
    for upstream_id in set(upstream_ids):
        known = after.get(upstream_id)
        after[upstream_id] = known.after(at) if known else Rhythm(last=at)
    return after


def load_rhythms(path: Path) -> dict[str, Rhythm]:
    """Read the file; nothing when it is missing or broken."""
    return load(path, _rhythms_in) or {}


def save_rhythms(path: Path, rhythms: Mapping[str, Rhythm]) -> None:
    """Write the file, whole or not at all.

    Raises:
        StateError: It cannot be written.
    """
    content = {key: [each.last.isoformat(), *each.gaps] for key, each in rhythms.items()}
    save(path, {"version": VERSION, "rhythms": content})


def _rhythms_in(content: Any) -> dict[str, Rhythm] | None:
    if content["version"] != VERSION:
        return None
    return {
        str(key): Rhythm(last=_instant(last), gaps=tuple(map(int, gaps)))
        for key, (last, *gaps) in content["rhythms"].items()
    }


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} is in no time zone")
    return instant
