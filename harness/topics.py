"""Reads what a ``kafka`` row names: a product, and a topic of its cluster.

The one place that says so: a check of the controls and a look ask the same.
"""

import re
from dataclasses import dataclass

_FORM = re.compile(r"\s*([^:\s](?:[^:]*[^:\s])?)\s*:\s*([A-Za-z0-9._-]{1,249})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicName:
    """A topic, and the product whose cluster it is in."""

    #: The key below ``connections.kafka`` of ``heartbeat.yml``.
    product: str
    topic: str


def topic_name_from(sensor_id: str) -> TopicName | None:
    """Read ``product: topic``; ``None`` for anything that Kafka would not take for a topic."""
    form = _FORM.fullmatch(sensor_id)
    if form is None or form.group(2) in {".", ".."}:
        return None
    return TopicName(product=form.group(1), topic=form.group(2))
