"""How Heartbeat's command line is called, and what its answers mean."""

import asyncio
from datetime import datetime

import pendulum
import pytest
from airflow.sdk import Connection
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from heartbeat_airflow.client import (
    Cluster,
    Heartbeat,
    HeartbeatError,
    HeartbeatRefusedError,
    iso,
    milliseconds,
)
from heartbeat_airflow.hook import cluster_of
from heartbeat_airflow.provider import get_provider_info
from tests.conftest import CLUSTER, FakeHeartbeat, at, event


def ask(heartbeat: FakeHeartbeat, timeout: float = 60.0, **more: str) -> Heartbeat:
    return Heartbeat(Cluster(name=CLUSTER, **heartbeat.extra, **more), timeout=timeout)


def fetch(heartbeat: FakeHeartbeat, timeout: float = 60.0) -> list[dict[str, object]]:
    return asyncio.run(ask(heartbeat, timeout).events("db.t", at(10), at(11)))


def test_an_interval_is_asked_for_with_both_its_ends(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", [event(1, at(10))])
    assert fetch(heartbeat) == [event(1, at(10))]
    [[command, *options]] = heartbeat.asked
    assert command == "events"
    assert options[:2] == ["--table", "db.t"]
    assert options[2:] == ["--from", iso(at(10)), "--to", iso(at(11)), "--json"]


@pytest.mark.parametrize(
    ("partition", "given"),
    [
        ("2026-03-01;7", "2026-03-01;7"),
        ('["2026-03-01", 7]', '["2026-03-01", 7]'),
        (["2026-03-01", 7], '["2026-03-01", 7]'),
        (['"2026-03-01"', "7"], '["\\"2026-03-01\\"", "7"]'),
    ],
)
def test_a_partition_is_asked_for_in_the_form_of_the_command(
    heartbeat: FakeHeartbeat, partition: str | list[object], given: str
) -> None:
    heartbeat.says("events", [])
    asyncio.run(ask(heartbeat).events("db.t", at(10), at(11), partition))
    [[_, *options]] = heartbeat.asked
    assert options[:3] == ["--table", "db.t", f"--partition={given}"]


def test_nothing_new_is_an_empty_list(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", code=4, err="nothing new")
    assert fetch(heartbeat) == []


def test_a_refusal_is_told_in_heartbeats_own_words(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", code=2, err="a warning\nerror: There is no table 'db.t': name one\n")
    with pytest.raises(HeartbeatRefusedError, match=r"^There is no table 'db.t': name one$"):
        fetch(heartbeat)


def test_a_failure_may_be_tried_again(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", code=1, err="error: The disk is full: make room")
    with pytest.raises(HeartbeatError, match="The disk is full") as caught:
        fetch(heartbeat)
    assert not isinstance(caught.value, HeartbeatRefusedError)


@pytest.mark.parametrize("said", ["", "[", '{"events": []}'])
def test_half_an_answer_is_no_answer(heartbeat: FakeHeartbeat, said: str) -> None:
    heartbeat.says("events", said)
    with pytest.raises(HeartbeatError, match="not understood"):
        fetch(heartbeat)


def test_an_answer_that_does_not_come_is_not_waited_for_forever(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", [], seconds=60)
    with pytest.raises(HeartbeatError, match="not answered `events` within"):
        fetch(heartbeat, timeout=0.5)


def test_a_project_that_is_not_there_is_named(heartbeat: FakeHeartbeat) -> None:
    cluster = Cluster(name=CLUSTER, project="/nowhere", python=heartbeat.extra["python"])
    with pytest.raises(HeartbeatRefusedError, match=r"'/nowhere'.*correct `project` or `python`"):
        asyncio.run(Heartbeat(cluster).told_through())


def test_heartbeats_process_gets_its_home_and_nothing_of_airflow(
    heartbeat: FakeHeartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "a secret")
    monkeypatch.setenv("PYTHONPATH", "/airflow/dags")
    monkeypatch.setenv("ORDERS_PASSWORD", "Heartbeat's own, by env:ORDERS_PASSWORD")
    heartbeat.says("status", {"last_tick_at": None})
    asyncio.run(ask(heartbeat, home="/var/lib/heartbeat").told_through())
    given = heartbeat.environment
    assert given["HEARTBEAT_HOME"] == "/var/lib/heartbeat"
    assert "ORDERS_PASSWORD" in given
    assert [name for name in given if name.startswith(("AIRFLOW", "PYTHONPATH"))] == []


@pytest.mark.parametrize(
    ("said", "told"),
    [(None, None), ("2026-11-01T10:00:00.123456+00:00", at(10) + 123)],
)
def test_all_is_told_up_to_the_last_tick(
    heartbeat: FakeHeartbeat, said: str | None, told: int | None
) -> None:
    heartbeat.says("status", {"last_tick_at": said})
    assert asyncio.run(ask(heartbeat).told_through()) == told


def test_a_heartbeat_that_tells_no_last_tick_is_too_old(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("status", {"control": []})
    with pytest.raises(HeartbeatRefusedError, match="bring it to the version"):
        asyncio.run(ask(heartbeat).told_through())


def test_milliseconds_are_not_rounded_up() -> None:
    assert milliseconds(datetime.fromisoformat("2026-11-01T10:00:00.999999+00:00")) == at(10) + 999
    assert iso(at(10) + 999) == "2026-11-01T10:00:00.999+00:00"


def test_an_instant_of_airflow_has_the_same_milliseconds() -> None:
    instant = pendulum.datetime(2026, 11, 1, 5, 0, 0, 999_999, tz="America/New_York")
    assert milliseconds(instant) == at(10) + 999


def connection(extra: str) -> Connection:
    return Connection(conn_id=CLUSTER, conn_type="heartbeat", extra=extra)


def test_the_interpreter_is_the_projects_own_unless_it_is_named() -> None:
    cluster = cluster_of(connection('{"project": "/srv/heartbeat"}'))
    assert cluster.python == "/srv/heartbeat/.venv/bin/python"


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ("{}", "`project`"),
        ('{"project": 3}', "`project`"),
        ('{"project": "/p", "home": ["x"]}', "`home`"),
        ('{"project": "/p", "phyton": "x"}', "`phyton`"),
    ],
)
def test_a_wrong_connection_is_named_with_what_is_wrong(extra: str, told: str) -> None:
    with pytest.raises(HeartbeatRefusedError, match=f"'{CLUSTER}'.*{told}"):
        cluster_of(connection(extra))


def test_airflow_knows_the_type_of_connection() -> None:
    hook = ProvidersManagerTaskRuntime().hooks["heartbeat"]
    assert hook is not None
    assert hook.package_name == get_provider_info()["package-name"]
