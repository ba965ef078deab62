"""Probes the topics of a Kafka cluster: two requests prove that nothing is new in any of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.config.identifiers import TopicName, topic_name_from
from harness.errors import ConfigurationError, ProbeFailedError
from harness.sense.probe import ProbeResult
from harness.sense.sources.kafka.cursor import Cursor, cursor_from
from harness.sense.sources.kafka.filter import Admission, Found
from harness.sense.sources.kafka.offsets import Finding, TopicNow, compare, unknown_starts
from harness.sense.sources.kafka.types import Cluster, Place, Problem, Topic
from harness.store.work_lists import Upstream

Connect = Callable[[str], Cluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    upstream: Upstream
    name: TopicName
    before: Cursor | None


class KafkaProbe:
    """Senses ``kafka``: all topics of a cluster in one probe."""

    def __init__(self, connect: Connect, admission: Admission) -> None:
        """Take what a probe needs.

        Args:
            connect: Makes a client of the cluster of a product.
            admission: Decides which findings are events.
        """
        self._connect = connect
        self._admission = admission

    def group_of(self, upstream: Upstream) -> str:
        """Return the product: its topics are in one cluster and are probed together."""
        name = topic_name_from(upstream.sensor_id)
        return name.product if name is not None else ""

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream of one cluster; the instant plays no part."""
        results: dict[str, ProbeResult] = {}
        tasks: list[_Task] = []
        for upstream in group:
            try:
                tasks.append(_task(upstream))
            except ProbeFailedError as error:
                results[upstream.upstream_id] = _failed(upstream, str(error))
        if tasks:
            results.update(self._results(tasks[0].name.product, tasks))
        return [results[upstream.upstream_id] for upstream in group]

    def _results(self, product: str, tasks: Sequence[_Task]) -> dict[str, ProbeResult]:
        try:
            cluster = self._connect(product)
        except (ProbeFailedError, ConfigurationError) as error:
            reason = str(error).rstrip(".")
            return {task.upstream.upstream_id: _failed(task.upstream, reason) for task in tasks}
        found = _found(cluster, tasks)
        again = [task for task in tasks if _may_be_stale(task, found[task.upstream.upstream_id])]
        if again:
            cluster = self._connect(product)
            found.update(_found(cluster, again))
        return self._admitted(cluster, tasks, found)

    def _admitted(
        self, cluster: Cluster, tasks: Sequence[_Task], found: "Mapping[str, Finding | Problem]"
    ) -> dict[str, ProbeResult]:
        results = {}
        known: list[Found] = []
        for task in tasks:
            finding = found[task.upstream.upstream_id]
            if isinstance(finding, Problem):
                results[task.upstream.upstream_id] = _failed(task.upstream, finding.reason)
            else:
                known.append(Found(upstream=task.upstream, name=task.name, finding=finding))
        upstreams = {task.upstream.upstream_id: task.upstream for task in tasks}
        for upstream_id, answer in self._admission.results(cluster, known):
            results[upstream_id] = (
                answer
                if isinstance(answer, ProbeResult)
                else _failed(upstreams[upstream_id], answer.reason)
            )
        return results


def _task(upstream: Upstream) -> _Task:
    name = topic_name_from(upstream.sensor_id)
    if name is None:
        raise ProbeFailedError("its id has to be product: topic")
    before = None if upstream.position is None else cursor_from(upstream.position)
    return _Task(upstream=upstream, name=name, before=before)


def _found(cluster: Cluster, tasks: Sequence[_Task]) -> dict[str, Finding | Problem]:
    """Compare every topic with its last cursor, in as few requests as there are questions."""
    topics = _topics_now(cluster, sorted({task.name.topic for task in tasks}))
    unknown = {
        Place(task.name.topic, partition)
        for task in tasks
        if isinstance(now := topics[task.name.topic], TopicNow)
        for partition in unknown_starts(task.before, now)
    }
    starts = cluster.starts(sorted(unknown)) if unknown else {}
    return {
        task.upstream.upstream_id: _finding(task, topics[task.name.topic], starts) for task in tasks
    }


def _topics_now(cluster: Cluster, names: Sequence[str]) -> dict[str, TopicNow | Problem]:
    described = cluster.topics(names)
    places = [
        Place(name, partition)
        for name, topic in described.items()
        if isinstance(topic, Topic)
        for partition in range(topic.partitions)
    ]
    ends = cluster.ends(places) if places else {}
    return {
        name: topic if isinstance(topic, Problem) else _topic_now(name, topic, ends)
        for name, topic in described.items()
    }


def _topic_now(name: str, topic: Topic, ends: Mapping[Place, int | Problem]) -> TopicNow | Problem:
    known = []
    for partition in range(topic.partitions):
        end = ends[Place(name, partition)]
        if isinstance(end, Problem):
            return replace(end, reason=f"{end.reason} (partition {partition})")
        known.append(end)
    return TopicNow(topic_id=topic.topic_id, ends=tuple(known))


def _finding(
    task: _Task, now: TopicNow | Problem, starts: Mapping[Place, int | Problem]
) -> Finding | Problem:
    if isinstance(now, Problem):
        return now
    if task.before is not None and _has_fewer_partitions(task.before, now):
        return Problem(
            reason=f"it has {len(now.ends)} partitions and had {len(task.before.offsets)}, which"
            " Kafka never does; ask its operators",
            may_pass=True,
        )
    known = {}
    for partition in unknown_starts(task.before, now):
        start = starts[Place(task.name.topic, partition)]
        if isinstance(start, Problem):
            return replace(start, reason=f"{start.reason} (partition {partition})")
        known[partition] = start
    return compare(task.before, now, known)


def _has_fewer_partitions(before: Cursor, now: TopicNow) -> bool:
    return before.topic_id == now.topic_id and len(now.ends) < len(before.offsets)


def _may_be_stale(task: _Task, found: Finding | Problem) -> bool:
    """Return whether to query once more: a broker that lags behind may return an old offset."""
    return found.may_pass if isinstance(found, Problem) else bool(found.truncated)


def _failed(upstream: Upstream, reason: str) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"The Kafka topic {upstream.sensor_id} cannot be sensed: {reason}.",
    )
