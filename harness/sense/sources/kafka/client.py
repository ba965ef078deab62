"""Queries a Kafka cluster with librdkafka: a new client per probe, since a kept one may go stale.

A client that was kept over a broker's restart, or over the end of a topic, was seen to answer
wrongly or not at all for long. A new one is right each time and costs less than 0.1 s.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from harness.config.connections import KafkaCluster
from harness.sense.sources.kafka.new_rows import read_messages
from harness.sense.sources.kafka.types import Place, Problem, Read, Topic, Wanted

#: librdkafka accepts no less, and no more.
_LEAST_TIMEOUT_SECONDS = 1.0
_MOST_SOCKET_TIMEOUT = 300_000
#: When no broker can be reached, another address of theirs may still be tried for so long.
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.1
_STEP_SECONDS = 0.5

#: Errors that a client recreated may not have: the metadata of the old one is out of date.
_MAY_PASS = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._NOENT,
        KafkaError._TRANSPORT,
        KafkaError._UNKNOWN_PARTITION,
    }
)
_NO_ACCESS = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_SENTENCES = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic does not exist in the cluster",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        "the cluster does not let this user see it; grant DESCRIBE on the topic"
    ),
    KafkaError.LEADER_NOT_AVAILABLE: "one of its partitions has no leader",
    KafkaError._NOENT: "one of its partitions has no leader",
}


def configuration_of(cluster: KafkaCluster, password: str | None) -> dict[str, Any]:
    """Return the settings of every client of a cluster, as librdkafka names them."""
    # A connection lasts longer than a request, so that silence can be distinguished from a refusal.
    timeout = round((cluster.timeout_seconds + 1) * 1000)
    settings = {
        "bootstrap.servers": ",".join(cluster.bootstrap_servers),
        "client.id": "heartbeat",
        "security.protocol": cluster.security_protocol,
        "sasl.mechanism": cluster.sasl_mechanism,
        "sasl.username": cluster.user,
        "sasl.password": password,
        "ssl.ca.location": cluster.ca_file,
        "socket.timeout.ms": min(timeout, _MOST_SOCKET_TIMEOUT),
        "socket.connection.setup.timeout.ms": timeout,
        # Else the cluster may create a topic that is only queried.
        "allow.auto.create.topics": False,
        # Else it writes a line a second to the error stream while a broker is down.
        "log_level": 0,
    }
    return {name: value for name, value in settings.items() if value is not None}


class KafkaClient:
    """One client of one cluster, for one probe."""

    def __init__(
        self,
        cluster: KafkaCluster,
        password: str | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_seconds = cluster.timeout_seconds
        self._query_messages = cluster.query_messages
        self._configuration = configuration_of(cluster, password)
        self._monotonic = monotonic
        self._errors = _Errors()
        settings = self._configuration | {"error_cb": self._errors.note}
        self._admin = AdminClient(settings)
        self._is_connected = False

    @property
    def query_messages(self) -> int:
        """The most messages that one query is to see."""
        return self._query_messages

    def topics(self, names: Sequence[str]) -> Mapping[str, Topic | Problem]:
        """Describe every topic, in one request."""
        if not self._connect(names[0]):
            return dict.fromkeys(names, Problem(reason=self._no_answer()))
        futures = self._admin.describe_topics(
            TopicCollection(list(names)), request_timeout=self._request_timeout
        )
        return {
            name: answer
            if isinstance(answer, Problem)
            else Topic(topic_id=str(answer.topic_id), partitions=len(answer.partitions))
            for name, answer in self._answers(futures).items()
        }

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        """Return the offset after the last committed message, or marker, of every partition."""
        return self._offsets(places, OffsetSpec.latest())

    def starts(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        """Return the offset of the first message that every partition still has."""
        return self._offsets(places, OffsetSpec.earliest())

    def read(self, wanted: Mapping[str, Wanted]) -> Mapping[str, Read]:
        """Read committed messages of several topics, within the time of one request."""
        deadline = self._monotonic() + self._timeout_seconds
        return read_messages(
            self._configuration, wanted, is_late=lambda: self._monotonic() >= deadline
        )

    @property
    def _request_timeout(self) -> float:
        return max(self._timeout_seconds, _LEAST_TIMEOUT_SECONDS)

    def _offsets(self, places: Sequence[Place], spec: OffsetSpec) -> dict[Place, int | Problem]:
        if not places:
            return {}
        if not self._connect(places[0].topic):
            return dict.fromkeys(places, Problem(reason=self._no_answer()))
        futures = self._admin.list_offsets(
            {TopicPartition(*place): spec for place in places},
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._request_timeout,
        )
        return {
            Place(requested.topic, requested.partition): answer
            if isinstance(answer, Problem)
            else int(answer.offset)
            for requested, answer in self._answers(futures).items()
        }

    def _answers(self, futures: "Mapping[Any, Future[Any]]") -> dict[Any, Any]:
        """Wait for every answer, but not for that of a cluster which cannot be reached at all."""
        self._wait(list(futures.values()))
        return {requested: self._answer(future) for requested, future in futures.items()}

    def _connect(self, topic: str) -> bool:
        """Wait for a connection, by a request whose answer does not matter.

        A new client sometimes lets its first batch of requests wait for seconds, though it has a
        connection by then. One that has had an answer before never does.
        """
        started = self._monotonic()
        while not self._is_connected:
            try:
                self._admin.list_topics(topic, timeout=min(_STEP_SECONDS, self._timeout_seconds))
                self._is_connected = True
            except KafkaException:
                if self._is_hopeless(started):
                    return False
        return True

    def _wait(self, futures: "Sequence[Future[Any]]") -> None:
        started = self._monotonic()
        while wait(futures, _POLL_SECONDS).not_done:
            if self._is_hopeless(started):
                return

    def _is_hopeless(self, started: float) -> bool:
        self._admin.poll(0)
        waited = self._monotonic() - started
        if self._errors.is_refused or waited >= self._timeout_seconds:
            return True
        return self._errors.is_unreachable and waited > _GRACE_SECONDS

    def _answer(self, future: "Future[Any]") -> Any:
        if not future.done():
            return Problem(reason=self._no_answer())
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, KafkaException):
            return Problem(reason=str(error))
        return self._problem(error.args[0])

    def _problem(self, error: KafkaError) -> Problem:
        code = error.code()
        if code in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
            self._admin.poll(0)
            return Problem(reason=self._no_answer())
        reason = _SENTENCES.get(code) or error.str().rstrip(".")
        return Problem(reason=reason, may_pass=code in _MAY_PASS)

    def _no_answer(self) -> str:
        if self._errors.is_refused:
            return "the cluster refuses the login; check user and password of its connection"
        if self._errors.is_unreachable:
            return "none of the cluster's brokers can be reached"
        return f"the cluster does not answer within {self._timeout_seconds:g} s"


class _Errors:
    """Collects what librdkafka reports of the connections; it may do so from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._codes: set[int] = set()

    def note(self, error: KafkaError) -> None:
        with self._lock:
            self._codes.add(error.code())

    @property
    def is_refused(self) -> bool:
        return bool(self._codes & _NO_ACCESS)

    @property
    def is_unreachable(self) -> bool:
        return KafkaError._ALL_BROKERS_DOWN in self._codes
