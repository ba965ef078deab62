"""Looks at the topics of a Kafka cluster: two requests prove that nothing is new in any of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.config.identifiers import TopicName, topic_name_from
from harness.errors import ConfigurationError, LookFailedError
from harness.sense.probe import Look, Upstream
from harness.sense.sources.kafka.cursor import Position, position_from
from harness.sense.sources.kafka.filter import Admission, Found
from harness.sense.sources.kafka.offsets import Finding, TopicNow, compare, unknown_starts
from harness.sense.sources.kafka.types import Cluster, Place, Topic, Trouble

Connect = Callable[[str], Cluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    upstream: Upstream
    name: TopicName
    before: Position | None


class KafkaProbe:
    """Senses ``kafka``: all topics of a cluster in one look."""

    def __init__(self, connect: Connect, admission: Admission) -> None:
        """Take what a look needs.

        Args:
            connect: Makes a client of the cluster of a product.
            admission: Says which findings are events.
        """
        self._connect = connect
        self._admission = admission

    def group_of(self, upstream: Upstream) -> str:
        """Return the product: its topics are in one cluster and are looked at together."""
        name = topic_name_from(upstream.sensor_id)
        return name.product if name is not None else ""

    def look(self, group: Sequence[Upstream], *, at: datetime) -> list[Look]:
        """Return one look per upstream of one cluster; the instant plays no part."""
        looks: dict[str, Look] = {}
        tasks: list[_Task] = []
        for upstream in group:
            try:
                tasks.append(_task(upstream))
            except LookFailedError as error:
                looks[upstream.upstream_id] = _failed(upstream, str(error))
        if tasks:
            looks.update(self._looks(tasks[0].name.product, tasks))
        return [looks[upstream.upstream_id] for upstream in group]

    def _looks(self, product: str, tasks: Sequence[_Task]) -> dict[str, Look]:
        try:
            cluster = self._connect(product)
        except (LookFailedError, ConfigurationError) as error:
            reason = str(error).rstrip(".")
            return {task.upstream.upstream_id: _failed(task.upstream, reason) for task in tasks}
        found = _found(cluster, tasks)
        again = [task for task in tasks if _may_be_stale(task, found[task.upstream.upstream_id])]
        if again:
            cluster = self._connect(product)
            found.update(_found(cluster, again))
        return self._admitted(cluster, tasks, found)

    def _admitted(
        self, cluster: Cluster, tasks: Sequence[_Task], found: "Mapping[str, Finding | Trouble]"
    ) -> dict[str, Look]:
        looks = {}
        known: list[Found] = []
        for task in tasks:
            finding = found[task.upstream.upstream_id]
            if isinstance(finding, Trouble):
                looks[task.upstream.upstream_id] = _failed(task.upstream, finding.reason)
            else:
                known.append(Found(upstream=task.upstream, name=task.name, finding=finding))
        upstreams = {task.upstream.upstream_id: task.upstream for task in tasks}
        for upstream_id, answer in self._admission.looks(cluster, known):
            looks[upstream_id] = (
                answer
                if isinstance(answer, Look)
                else _failed(upstreams[upstream_id], answer.reason)
            )
        return looks


def _task(upstream: Upstream) -> _Task:
    name = topic_name_from(upstream.sensor_id)
    if name is None:
        raise LookFailedError("its id has to be product: topic")
    before = None if upstream.position is None else position_from(upstream.position)
    return _Task(upstream=upstream, name=name, before=before)


def _found(cluster: Cluster, tasks: Sequence[_Task]) -> dict[str, Finding | Trouble]:
    """Compare every topic with its last position, in as few requests as there are questions."""
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


def _topics_now(cluster: Cluster, names: Sequence[str]) -> dict[str, TopicNow | Trouble]:
    described = cluster.topics(names)
    places = [
        Place(name, partition)
        for name, topic in described.items()
        if isinstance(topic, Topic)
        for partition in range(topic.partitions)
    ]
    ends = cluster.ends(places) if places else {}
    return {
        name: topic if isinstance(topic, Trouble) else _topic_now(name, topic, ends)
        for name, topic in described.items()
    }


def _topic_now(name: str, topic: Topic, ends: Mapping[Place, int | Trouble]) -> TopicNow | Trouble:
    known = []
    for partition in range(topic.partitions):
        end = ends[Place(name, partition)]
        if isinstance(end, Trouble):
            return replace(end, reason=f"{end.reason} (partition {partition})")
        known.append(end)
    return TopicNow(topic_id=topic.topic_id, ends=tuple(known))


def _finding(
    task: _Task, now: TopicNow | Trouble, starts: Mapping[Place, int | Trouble]
) -> Finding | Trouble:
    if isinstance(now, Trouble):
        return now
    if task.before is not None and _has_fewer_partitions(task.before, now):
        return Trouble(
            reason=f"it has {len(now.ends)} partitions and had {len(task.before.offsets)}, which"
            " Kafka never does; ask its operators",
            may_pass=True,
        )
    known = {}
    for partition in unknown_starts(task.before, now):
        start = starts[Place(task.name.topic, partition)]
        if isinstance(start, Trouble):
            return replace(start, reason=f"{start.reason} (partition {partition})")
        known[partition] = start
    return compare(task.before, now, known)


def _has_fewer_partitions(before: Position, now: TopicNow) -> bool:
    return before.topic_id == now.topic_id and len(now.ends) < len(before.offsets)


def _may_be_stale(task: _Task, found: Finding | Trouble) -> bool:
    """Tell whether to ask once more: a broker that lags behind may answer with an old offset."""
    return found.may_pass if isinstance(found, Trouble) else bool(found.truncated)


def _failed(upstream: Upstream, reason: str) -> Look:
    return Look(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"The Kafka topic {upstream.sensor_id} cannot be sensed: {reason}.",
    )
