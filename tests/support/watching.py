"""Probes one upstream repeatedly, as ticks do."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from harness.events.event import ChangeEvent
from harness.sense.probe import Probe, ProbeResult
from harness.store.work_lists import Upstream

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)


class Watching:
    """A probe and one upstream; the result of each probe is kept for the next."""

    probe: Probe
    upstream: Upstream
    at = AT

    def peek(self) -> ProbeResult:
        """Probe without keeping the result, as a tick does that dies before it records."""
        [result] = self.probe.probe([self.upstream], at=self.at)
        return result

    def probe_once(self) -> ProbeResult:
        """Probe, and keep the result."""
        result = self.peek()
        if result.failure is None:
            self.upstream = replace(
                self.upstream, position=result.position, upstream_value=result.upstream_value
            )
        return result

    def reported(self) -> Sequence[ChangeEvent]:
        """Probe, and return the events; it has to succeed."""
        result = self.probe_once()
        assert result.failure is None, result.failure
        return result.events
