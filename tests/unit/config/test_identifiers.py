"""What names a topic."""

import pytest

from harness.config.identifiers import TopicName, topic_name_from


@pytest.mark.parametrize(
    "sensor_id", ["my_product: my.topic", "my_product:my.topic", " my_product : my.topic "]
)
def test_a_product_and_a_topic_stand_around_a_colon(sensor_id: str) -> None:
    assert topic_name_from(sensor_id) == TopicName(product="my_product", topic="my.topic")


@pytest.mark.parametrize(
    "sensor_id", ["my.topic", ":t", "p:", "p: a/b", "p: a: b", "p: ..", "p: ü", "p: " + "a" * 250]
)
def test_what_kafka_would_not_take_for_a_topic_is_none(sensor_id: str) -> None:
    assert topic_name_from(sensor_id) is None
