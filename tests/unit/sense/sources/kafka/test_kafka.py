"""Kafka topics: what counts as new data, by offsets."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation
from harness.sense.sources.kafka.filter import Admission
from harness.sense.sources.kafka.probe import KafkaProbe
from harness.sense.sources.kafka.types import Place, Problem
from harness.store.work_lists import Upstream
from tests.support.fake_kafka import FakeKafka, FakeQuestions
from tests.support.golden import AT
from tests.support.watching import Watching

P0 = Place("orders", 0)


def upstream(sensor_id: str = "shop: orders", **more: Any) -> Upstream:
    return Upstream(
        upstream_id=sensor_id, source="kafka", sensor_id=sensor_id, read_type="streaming", **more
    )


class Watcher(Watching):
    """A topic of two partitions, which is probed again and again."""

    def __init__(self, **more: Any) -> None:
        self.kafka = FakeKafka()
        self.kafka.create("orders", 2)
        self.questions = FakeQuestions()
        self.upstream = upstream(**more)
        self.probe = KafkaProbe(self.kafka.connect, Admission(self.questions))

    def events(self) -> list[ChangeEvent]:
        result = self.probe_once()
        assert result.failure is None, result.failure
        return list(result.events)

    def event(self) -> ChangeEvent:
        [event] = self.events()
        return event

    def asked(self) -> list[str]:
        """Return what one probe requests from the cluster."""
        self.kafka.asked.clear()
        self.probe_once()
        return self.kafka.asked


@pytest.fixture
def known() -> Watcher:
    """A topic with three messages, all of them seen."""
    watcher = Watcher()
    watcher.kafka.send("orders", "a", "b", "c")
    watcher.probe_once()
    return watcher


def test_first_sight_of_an_empty_topic_is_silent() -> None:
    assert Watcher().events() == []


def test_first_sight_of_messages_is_one_event_over_all_of_them() -> None:
    watcher = Watcher()
    watcher.kafka.send("orders", "a", "b", partition=1)

    event = watcher.event()

    assert (event.tags["offsets"], event.prev_snapshot_id) == ('{"1":[0,2]}', None)


def test_first_sight_of_a_topic_with_expired_messages_loses_nothing() -> None:
    watcher = Watcher()
    watcher.kafka.send("orders", "a", "b")
    watcher.kafka.expire("orders", 1)

    result = watcher.probe_once()

    assert (result.gap, result.events[0].tags["offsets"]) == (None, '{"0":[1,2]}')


def test_first_sight_as_baseline_is_silent_and_reads_nothing() -> None:
    watcher = Watcher(on_first_sight=FirstSight.BASELINE)
    watcher.kafka.send("orders", "a")

    assert (watcher.events(), "read" in watcher.kafka.asked) == ([], False)


def test_an_idle_probe_makes_two_requests(known: Watcher) -> None:
    assert known.asked() == ["connect", "topics", "ends"]


def test_many_idle_topics_of_a_cluster_make_two_requests_together() -> None:
    kafka, ups = FakeKafka(), []
    for number in range(50):
        kafka.create(f"t{number}", 4)
        ups.append(upstream(f"shop: t{number}", on_first_sight=FirstSight.BASELINE))
    probe = KafkaProbe(kafka.connect, Admission(FakeQuestions()))
    results = probe.probe(ups, at=AT)
    seen = [replace(up, position=result.position) for up, result in zip(ups, results, strict=True)]
    kafka.asked.clear()

    probe.probe(seen, at=AT)

    assert kafka.asked == ["connect", "topics", "ends"]


def test_an_event_states_from_where_to_where(known: Watcher) -> None:
    known.kafka.send("orders", "d", "e")

    event = known.event()

    assert event.operation_type is Operation.APPEND
    assert (event.table, event.partition) == ("shop/orders", ("0",))
    assert (event.prev_snapshot_id, event.snapshot_id) == ('{"0":3,"1":0}', '{"0":5,"1":0}')
    assert (event.tags["offsets"], event.tags["records_upper_bound"]) == ('{"0":[3,5]}', "2")


def test_an_event_over_two_partitions_names_neither(known: Watcher) -> None:
    known.kafka.send("orders", "d")
    known.kafka.send("orders", "e", partition=1)

    assert known.event().partition is None


# Transactions


def test_markers_alone_are_no_event_and_are_passed(known: Watcher) -> None:
    known.kafka.abort("orders")

    assert known.events() == []
    assert known.asked() == ["connect", "topics", "ends"]


def test_messages_of_an_open_transaction_wait_for_its_end(known: Watcher) -> None:
    partition = known.kafka.partitions["orders"][0]
    partition.values.append("d")
    partition.open_from = 3
    while_open = known.events()
    partition.open_from = None

    assert (while_open, len(known.events())) == ([], 1)


def test_messages_that_must_not_be_read_count_unconfirmed(known: Watcher) -> None:
    known.kafka.unreadable["orders"] = "no right to read it"
    known.kafka.send("orders", "d")

    assert known.event().tags["unconfirmed"] == "no right to read it"


# What happens to topics


def test_a_new_partition_is_read_from_its_first_message(known: Watcher) -> None:
    known.kafka.grow("orders")
    known.kafka.send("orders", "d", partition=2)

    assert known.event().tags["offsets"] == '{"2":[0,1]}'


def test_a_new_partition_without_messages_is_no_event(known: Watcher) -> None:
    known.kafka.grow("orders")

    assert known.events() == []


def test_a_new_partition_whose_first_messages_are_gone_is_a_gap(known: Watcher) -> None:
    known.kafka.grow("orders")
    known.kafka.partitions["orders"][2].values = ["d", "e"]
    known.kafka.partitions["orders"][2].start = 1

    assert known.probe_once().gap == (
        "messages were deleted before a probe could read them (partition 2 before 1)"
    )


def test_retention_past_the_position_is_an_event_and_a_gap(known: Watcher) -> None:
    known.kafka.send("orders", "d", "e", "f")
    known.kafka.expire("orders", 5)

    result = known.probe_once()

    assert (
        result.gap == "messages were deleted before a probe could read them (partition 0 before 5)"
    )
    assert result.events[0].tags["lost_before"] == '{"0":5}'
    assert result.events[0].tags["offsets"] == '{"0":[5,6]}'


def test_messages_that_all_expired_unseen_are_an_event(known: Watcher) -> None:
    known.kafka.send("orders", "d")
    known.kafka.expire("orders", 4)

    assert known.event().tags["records_upper_bound"] == "0"


def test_retention_of_what_was_seen_is_nothing(known: Watcher) -> None:
    known.kafka.expire("orders", 3)

    result = known.probe_once()

    assert (result.events, result.gap) == ((), None)


def test_a_truncation_is_an_event_that_assumes_nothing_and_a_gap(known: Watcher) -> None:
    known.kafka.truncate("orders", 1)

    result = known.probe_once()

    assert result.gap == (
        "its offsets fell back (partition 0 from 3 to 1), so messages were lost or replaced"
    )
    assert result.events[0].operation_type is Operation.UPDATE
    assert result.events[0].tags["truncated"] == '{"0":[3,1]}'


def test_the_same_offset_after_a_truncation_is_another_event(known: Watcher) -> None:
    known.kafka.send("orders", "d")
    first = known.event().id_at("u")
    known.kafka.truncate("orders", 2)
    known.probe_once()
    known.kafka.send("orders", "x", "y")

    assert known.event().id_at("u") != first


def test_an_old_answer_is_requested_again_by_a_new_client(known: Watcher) -> None:
    known.kafka.stale_ends[P0] = 2

    result = known.probe_once()

    assert (result.events, result.gap) == ((), None)
    assert known.kafka.asked.count("connect") == 3


def test_a_topic_created_again_is_read_from_its_start(known: Watcher) -> None:
    known.kafka.delete("orders")
    known.kafka.create("orders")
    known.kafka.send("orders", "x", "y", "z", "zz")

    result = known.probe_once()

    assert result.gap == "the topic was created again, so what came last into the old one is gone"
    assert result.events[0].tags["recreated"] == "true"
    assert (result.events[0].tags["offsets"], result.events[0].prev_snapshot_id) == (
        '{"0":[0,4]}',
        None,
    )


def test_a_topic_created_again_at_the_very_same_offsets_is_another_event() -> None:
    watcher = Watcher()
    watcher.kafka.send("orders", "a")
    first = watcher.event().id_at("u")
    watcher.kafka.delete("orders")
    watcher.kafka.create("orders", 2)
    watcher.kafka.send("orders", "a")

    assert watcher.event().id_at("u") != first


def test_a_topic_created_again_and_still_empty_is_a_gap_and_no_event(known: Watcher) -> None:
    known.kafka.delete("orders")
    known.kafka.create("orders")

    result = known.probe_once()

    assert (result.events, result.gap is None) == ((), False)


def test_a_partition_that_is_gone_is_a_failure(known: Watcher) -> None:
    known.kafka.partitions["orders"].pop()

    assert known.probe_once().failure == (
        "The Kafka topic shop: orders cannot be sensed: it has 1 partitions and had 2, which Kafka"
        " never does; ask its operators."
    )


# Failures


def test_a_topic_that_is_missing_fails_alone(known: Watcher) -> None:
    known.kafka.send("orders", "d")
    missing, found = known.probe.probe([upstream("shop: none"), known.upstream], at=AT)

    assert missing.failure == (
        "The Kafka topic shop: none cannot be sensed: the topic does not exist in the cluster."
    )
    assert len(found.events) == 1


def test_a_partition_without_an_answer_fails_its_topic_and_names_it(known: Watcher) -> None:
    known.kafka.problem[P0] = Problem(reason="it is down")

    assert known.probe_once().failure == (
        "The Kafka topic shop: orders cannot be sensed: it is down (partition 0)."
    )


def test_trouble_that_may_pass_is_retried_by_a_new_client(known: Watcher) -> None:
    known.kafka.problem[P0] = Problem(reason="fenced", may_pass=True)
    known.kafka.send("orders", "d")

    assert len(known.events()) == 1


def test_a_failure_keeps_the_position(known: Watcher) -> None:
    known.kafka.problem["orders"] = Problem(reason="it is down")

    assert known.probe_once().position == known.upstream.position


def test_a_product_without_a_cluster_fails_each_of_its_topics() -> None:
    def connect(product: str) -> FakeKafka:
        raise ProbeFailedError(f"heartbeat.yml has no connections.kafka.{product}")

    probe = KafkaProbe(connect, Admission(FakeQuestions()))

    results = probe.probe([upstream("shop: a"), upstream("shop: b")], at=AT)

    assert [result.failure for result in results] == [
        f"The Kafka topic shop: {name} cannot be sensed: heartbeat.yml has no"
        " connections.kafka.shop."
        for name in "ab"
    ]


@pytest.mark.parametrize("sensor_id", ["orders", ": orders", "shop:", "shop: a b", "shop: .."])
def test_an_id_of_another_shape_is_a_failure(sensor_id: str) -> None:
    [result] = Watcher().probe.probe([upstream(sensor_id)], at=AT)

    assert "has to be product: topic" in (result.failure or "")


def test_topics_of_one_product_are_probed_together() -> None:
    probe = Watcher().probe

    assert {probe.group_of(upstream(f"{one}: {two}")) for one in "ab" for two in "xyz"} == {*"ab"}


# Queries


def asking(query: str, **more: Any) -> Watcher:
    watcher = Watcher(preprocess_query=query, **more)
    watcher.probe_once()
    return watcher


def test_a_query_sees_the_new_messages_only() -> None:
    watcher = asking("value = c")
    watcher.kafka.send("orders", "a", "b")
    watcher.probe_once()
    watcher.kafka.send("orders", "c")

    assert (len(watcher.events()), watcher.questions.seen) == (1, [["a", "b"], ["c"]])


def test_a_query_without_a_row_makes_it_no_event_and_the_position_moves() -> None:
    watcher = asking("value = c")
    watcher.kafka.send("orders", "a")

    assert watcher.events() == []
    assert json.loads(watcher.upstream.position or "")["offsets"] == [1, 0]


def test_a_query_is_not_run_over_markers() -> None:
    watcher = asking("value = c")
    watcher.kafka.abort("orders")

    assert (watcher.events(), watcher.questions.seen) == ([], [])


def test_more_messages_than_a_query_may_see_wait_for_the_next_probe() -> None:
    watcher = asking("value = e")
    watcher.kafka.query_messages = 2
    watcher.kafka.send("orders", "a", "b", "c", "d", "e")

    reported = [len(watcher.events()) for _ in range(4)]

    assert (reported, watcher.questions.seen) == ([0, 0, 1, 0], [["a", "b"], ["c", "d"], ["e"]])


def test_a_query_that_finds_a_row_makes_an_event_of_all_that_is_there() -> None:
    watcher = asking("value = a")
    watcher.kafka.query_messages = 2
    watcher.kafka.send("orders", "a", "b", "c", "d", "e")

    assert watcher.event().snapshot_id == '{"0":5,"1":0}'


def test_messages_that_cannot_be_read_make_a_query_fail() -> None:
    watcher = asking("value = a")
    watcher.kafka.unreadable["orders"] = "no right to read it"
    watcher.kafka.send("orders", "a")

    assert watcher.probe_once().failure == (
        "The Kafka topic shop: orders cannot be sensed: its preprocess_query cannot be evaluated, since"
        " no right to read it."
    )


def test_the_placeholders_are_the_key_and_its_largest_value() -> None:
    watcher = asking("?upstream_key > ?upstream_value c", upstream_key="value")
    watcher.kafka.send("orders", "a", "b")
    watcher.probe_once()

    assert watcher.upstream.upstream_value == "b"


def test_a_key_without_a_query_plays_no_part() -> None:
    watcher = Watcher(upstream_key="value")
    watcher.kafka.send("orders", "a")

    assert (len(watcher.events()), watcher.upstream.upstream_value) == (1, None)


def test_two_rows_with_one_topic_each_run_their_own_query() -> None:
    watcher = Watcher()
    watcher.kafka.send("orders", "a")
    yes = replace(upstream(preprocess_query="value = a"), upstream_id="yes")
    no = replace(upstream(preprocess_query="value = b"), upstream_id="no")

    results = watcher.probe.probe([no, yes, watcher.upstream], at=AT)

    assert [len(result.events) for result in results] == [0, 1, 1]
