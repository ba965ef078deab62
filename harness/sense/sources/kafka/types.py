"""The requests and answers of a probe of a Kafka cluster, for any client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Range(NamedTuple):
    """Offsets from the first (inclusive) to the end (exclusive)."""

    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as the cluster describes it."""

    #: Another one when a topic of the same name was created again.
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why the cluster has no answer about one topic or partition."""

    #: Words that go on after "cannot be sensed:".
    reason: str
    #: A client recreated may get an answer at once.
    may_pass: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message that a consumer of committed data sees."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    #: The broker's or the producer's, whichever the topic keeps.
    timestamp: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read of one topic."""

    ranges: Mapping[int, Range]
    #: Stop after so many messages.
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read of one topic."""

    messages: Sequence[Message] = ()
    #: By partition, the offset at which reading goes on; the end of its range once it is read.
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    #: Every range was read to its end.
    is_complete: bool = False
    #: Why it is not, unless ``most`` is the reason.
    problem: str | None = None


class Cluster(Protocol):
    """Queries one Kafka cluster. It is made for one probe."""

    @property
    def query_messages(self) -> int:
        """The most messages that one query is to see."""
        ...

    def topics(self, names: Sequence[str]) -> Mapping[str, Topic | Problem]:
        """Describe every topic, in one request."""
        ...

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        """Return the offset after the last committed message, or marker, of every partition."""
        ...

    def starts(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        """Return the offset of the first message that every partition still has."""
        ...

    def read(self, wanted: Mapping[str, Wanted]) -> Mapping[str, Read]:
        """Read committed messages of several topics."""
        ...
