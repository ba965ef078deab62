"""Where the upstreams of a run are, and what every kind of them can do."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.config.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the upstreams of one run are; written to a file for the processes that tick."""

    folder: Path
    #: How many upstreams there are of each kind.
    each: int
    kafka: str
    database: str
    #: How many Iceberg tables there are beside them.
    iceberg: int = 0

    def save(self) -> None:
        """Write it into its folder."""
        (self.folder / "place.json").write_text(json.dumps(asdict(self), default=str))


def place_in(folder: Path) -> Place:
    """Read what ``save`` wrote."""
    content = json.loads((folder / "place.json").read_text())
    return Place(**{**content, "folder": folder})


class Kind(Protocol):
    """All upstreams of one kind."""

    source: Source
    #: How many there are.
    count: int
    #: ``upstream_key`` of its rows.
    key: str
    #: Probes until new data is reported.
    probes_until_reported: int
    #: What the usual way is, in words.
    usual: str

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        ...

    def create(self) -> None:
        """Make all of them, with some data in each."""
        ...

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        ...

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to probe one upstream: by a query or a client of its own."""
        ...
