"""Looks at one upstream again and again, as ticks do."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from harness.sense.probe import DataChange, Look, Probe, Upstream

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)


class Watching:
    """A probe and one upstream; what a look says is remembered for the next."""

    probe: Probe
    upstream: Upstream
    at = AT

    def peek(self) -> Look:
        """Look without taking the answer over, as a tick does that dies before it records."""
        [look] = self.probe.look([self.upstream], at=self.at)
        return look

    def look(self) -> Look:
        """Look, and take the answer over."""
        look = self.peek()
        if look.failure is None:
            self.upstream = replace(
                self.upstream, position=look.position, upstream_value=look.upstream_value
            )
        return look

    def told(self) -> Sequence[DataChange]:
        """Look, and return the events; it has to succeed."""
        look = self.look()
        assert look.failure is None, look.failure
        return look.events
