"""Which sources there are."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from harness.config.sources import Source
from harness.errors import ConfigurationError
from harness.sense.probe import ProbeResult
from harness.sense.registry import ProbeServices, Registry, known_sources
from harness.store.work_lists import Upstream


def no_session() -> object:
    raise AssertionError("Spark was started")


WORLD = ProbeServices(session=no_session, trigger_files_root="/triggers")  # type: ignore[arg-type]


class Pigeons:
    def __init__(self, world: ProbeServices) -> None:
        self.world = world

    def group_of(self, upstream: Upstream) -> str:
        return "all"

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        return []


def test_every_source_has_a_probe_and_making_them_starts_no_spark() -> None:
    assert set(known_sources().probes(WORLD)) == set(Source)


def test_a_new_source_is_one_line() -> None:
    registry = known_sources()
    registry.add("pigeon", Pigeons)

    assert isinstance(registry.probes(WORLD)["pigeon"], Pigeons)


def test_a_source_is_never_replaced_in_silence() -> None:
    registry = Registry()
    registry.add("pigeon", Pigeons)

    with pytest.raises(ConfigurationError, match="pigeon has a probe already"):
        registry.add("pigeon", Pigeons)


def test_both_kinds_of_delta_table_share_one_probe() -> None:
    probes = known_sources().probes(WORLD)

    assert probes[Source.DELTA_TABLE] is probes[Source.LMU_DELTA_TABLE]
