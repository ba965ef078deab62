"""Decides which findings are events: markers are not data, and a query may reject messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.config.identifiers import TopicName
from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.sense.preprocess.run import Questions, evaluate
from harness.sense.probe import ProbeResult
from harness.sense.sources.kafka.new_rows import rows_of
from harness.sense.sources.kafka.offsets import Finding, event_of
from harness.sense.sources.kafka.types import Cluster, Problem, Read, Wanted
from harness.store.work_lists import Upstream

#: One message proves that there is data.
_PROOF = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one upstream's topic shows."""

    upstream: Upstream
    name: TopicName
    finding: Finding

    @property
    def is_silent(self) -> bool:
        """A first observation that only sets where to start from."""
        upstream = self.upstream
        return upstream.position is None and upstream.on_first_sight is FirstSight.BASELINE

    @property
    def must_be_read(self) -> bool:
        """Whether there is an event cannot be determined from the offsets."""
        if self.is_silent or not self.finding.ranges:
            return False
        return bool(self.upstream.preprocess_query) or not self.finding.counts_unread

    def wanted(self, query_messages: int) -> Wanted:
        """Return what to read in order to decide."""
        most = query_messages if self.upstream.preprocess_query else _PROOF
        return Wanted(ranges=self.finding.ranges, most=most)


class Admission:
    """Converts findings into probe results."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def results(
        self, cluster: Cluster, found: Sequence[Found]
    ) -> Iterator[tuple[str, ProbeResult | Problem]]:
        """Return the result of each upstream by its id, or why there is none."""
        unread = []
        for each in found:
            if each.must_be_read:
                unread.append(each)
            else:
                yield each.upstream.upstream_id, _unread(each)
        while unread:
            # Upstreams that share a topic differ in what they read of it.
            one_per_topic = {each.name.topic: each for each in reversed(unread)}
            reads = cluster.read(
                {
                    topic: each.wanted(cluster.query_messages)
                    for topic, each in one_per_topic.items()
                }
            )
            for topic, each in one_per_topic.items():
                yield each.upstream.upstream_id, self._after_reading(each, reads[topic])
            unread = [each for each in unread if each is not one_per_topic[each.name.topic]]

    def _after_reading(self, found: Found, read: Read) -> ProbeResult | Problem:
        if not found.upstream.preprocess_query:
            return _confirmed(found, read)
        if read.problem and not read.messages:
            return Problem(reason=f"its preprocess_query cannot be evaluated, since {read.problem}")
        try:
            return self._filtered(found, read)
        except ProbeFailedError as error:
            return Problem(reason=str(error))

    def _filtered(self, found: Found, read: Read) -> ProbeResult:
        if not read.messages:
            return _nothing(found, read.next_offsets)
        rows = rows_of(found.name.topic, read.messages)
        answer = evaluate(self._questions, found.upstream, rows, is_baseline=False)
        result = _event(found, {}) if answer.is_change else _nothing(found, read.next_offsets)
        return replace(result, upstream_value=answer.upstream_value)


def _unread(found: Found) -> ProbeResult:
    counts = found.finding.counts_unread and not found.upstream.preprocess_query
    if counts and not found.is_silent:
        return _event(found, {})
    return _nothing(found, {})


def _confirmed(found: Found, read: Read) -> ProbeResult:
    if read.messages:
        return _event(found, {})
    if read.is_complete:
        # Only markers of transactions, or messages that were taken back.
        return _nothing(found, read.next_offsets)
    return _event(found, {"unconfirmed": read.problem or "not read"})


def _event(found: Found, more_tags: Mapping[str, str]) -> ProbeResult:
    table = f"{found.name.product}/{found.name.topic}"
    result = _nothing(found, {})
    return replace(result, events=(event_of(found.finding, table, more_tags),))


def _nothing(found: Found, next_offsets: Mapping[int, int]) -> ProbeResult:
    """Return a result without an event, that goes on where reading ended."""
    after = found.finding.after
    offsets = tuple(next_offsets.get(each, end) for each, end in enumerate(after.offsets))
    return ProbeResult(
        upstream_id=found.upstream.upstream_id,
        position=replace(after, offsets=offsets).to_text(),
        upstream_value=found.upstream.upstream_value,
        gap=found.finding.gap,
    )
