"""What becomes of a list of events on its way from task to task."""

import random
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from airflow.providers.standard.operators.python import ShortCircuitOperator

from heartbeat_airflow.events import (
    MOST_BYTES,
    DataChangeEvent,
    decode_events,
    distinct,
    encode_events,
    events_exist,
)
from tests.conftest import CLUSTER, at, event

HOSTILE = {
    "tags": {"a'b\" $(rm) `x` \\ {{ y }}": "ü\u2028\x00\n%s"},
    "partition": ["2026/01", None],
}
PACKAGE = Path(__file__).resolve().parents[1]


class Pushed:
    """A task instance whose XComs are given."""

    def __init__(self, xcoms: dict[str, object]) -> None:
        self._xcoms = xcoms

    def xcom_pull(self, task_ids: str) -> object:
        return self._xcoms.get(task_ids)


def test_events_come_back_as_they_were() -> None:
    events = [event(1, at(10)) | HOSTILE, event(2, at(11))]
    assert decode_events(encode_events(events)) == events


def test_encoded_events_need_no_quotes_in_a_shell() -> None:
    word = encode_events([event(1, at(10)) | HOSTILE])
    assert shlex.quote(word) == word


def test_encoded_events_are_no_option_of_a_command() -> None:
    assert not encode_events([]).startswith("-")


def test_a_list_at_the_limit_is_one_argument_of_a_real_process() -> None:
    noise = random.Random(3)
    events = [event(n, at(10)) | {"event_id": noise.randbytes(400).hex()} for n in range(200)]
    word = encode_events(events)
    assert MOST_BYTES * 0.9 < len(word) <= MOST_BYTES
    counted = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.argv[1]))", word.ljust(MOST_BYTES, "=")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert counted.stdout.strip() == str(MOST_BYTES)


def test_a_list_that_is_too_long_for_an_argument_is_refused_with_the_way_out() -> None:
    noise = random.Random(3)
    events = [event(n, at(10)) | {"event_id": noise.randbytes(400).hex()} for n in range(300)]
    with pytest.raises(ValueError, match=r"300 events take \d+ bytes.*131071.*shorter"):
        encode_events(events)


def test_nothing_pushed_is_no_empty_list() -> None:
    with pytest.raises(ValueError, match="name the task"):
        encode_events(None)


@pytest.mark.parametrize(
    "word", ["", "x", "eyJ9", "ü", encode_events([event(1, at(10))])[:-8], encode_events([])[:-4]]
)
def test_a_word_that_is_no_whole_list_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not a list of encoded events"):
        decode_events(word)


def test_a_spark_job_decodes_events_without_airflow() -> None:
    script = (
        "import sys; from heartbeat_airflow.events import decode_events; "
        "print(decode_events(sys.argv[1])[0]['event_id'], 'airflow' in sys.modules)"
    )
    message = subprocess.run(
        [sys.executable, "-c", script, encode_events([event(7, at(10))])],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert message.stdout.split() == ["e7", "False"]


@pytest.mark.parametrize(("pushed", "exist"), [([{"event_id": "e1"}], True), ([], False)])
def test_a_short_circuit_goes_on_when_there_are_events(pushed: object, exist: bool) -> None:
    operator = ShortCircuitOperator(
        task_id="skip", python_callable=partial(events_exist, "fetched_events")
    )
    assert operator.execute({"ti": Pushed({"fetched_events": pushed})}) is exist


def test_a_short_circuit_ends_where_nothing_was_pushed() -> None:
    assert events_exist("fetched_events", ti=Pushed({})) is False


def test_a_cluster_is_named_by_a_constant() -> None:
    assert DataChangeEvent.CLUSTER1 == CLUSTER


def test_what_is_no_constant_is_no_cluster() -> None:
    assert not hasattr(DataChangeEvent, "cluster1")


def test_an_event_that_comes_twice_is_taken_once_where_it_came_first() -> None:
    again = event(1, at(10)) | {"tags": {"complete": "99"}}
    assert distinct([event(1, at(10)), event(2, at(10)), again]) == [again, event(2, at(10))]
