"""OpenLineage over the official client to a real HTTP server and to a file."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from openlineage.client.uuid import generate_new_uuid

from harness.observe.delivery import Result
from harness.observe.lineage import BY_PROCESS
from tests.support.mail_and_web import Web, free_port, web_server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def event(kind: str = "START") -> dict[str, object]:
    return {
        "type": kind,
        "at": "2026-03-01T10:20:00Z",
        "run_id": str(generate_new_uuid(datetime(2026, 3, 1, tzinfo=UTC))),
        "namespace": "shop",
        "job": "täglich",
        "facts": {"jobId": "1", "dataChangeEvents": [{"table": "a.b", "tags": {"x": "y"}}]},
        "error": None,
        "inputs": [{"namespace": "s3://lake", "name": "orders", "version": "7"}],
    }


def delivered(transport: dict[str, object], *events: dict[str, object]) -> Result | None:
    delivery = BY_PROCESS({"transport": transport, "events": list(events)}, 60)
    delivery.wait(90)
    return delivery.result


def http(web: Web, **changed: object) -> dict[str, object]:
    url = f"http://127.0.0.1:{web.port}"
    plain = {"type": "http", "url": url, "endpoint": "api/v1/lineage", "retry": {"total": 0}}
    return plain | {"timeout": 30, **changed}


def test_events_arrive_at_a_server_in_their_order_with_the_key(web: Web) -> None:
    auth = {"type": "api_key", "apiKey": "sesame"}
    assert delivered(http(web, auth=auth), event("START"), event("COMPLETE")) == Result(delivered=2)
    assert [each["eventType"] for each in web.posts] == ["START", "COMPLETE"]
    assert set(web.paths) == {"/api/v1/lineage"}
    assert {each["Authorization"] for each in web.headers} == {"Bearer sesame"}
    first = json.loads(json.dumps(web.posts[0]))
    assert first["job"]["name"] == "täglich"
    assert first["inputs"][0]["facets"]["version"]["datasetVersion"] == "7"
    assert first["run"]["facets"]["heartbeat_run"]["dataChangeEvents"][0]["tags"] == {"x": "y"}
    assert first["producer"].startswith("urn:heartbeat:")


def test_a_server_that_refuses_is_a_failure_with_its_code(web: Web) -> None:
    web.status = 503
    result = delivered(http(web), event())
    assert result is not None and result.delivered == 0
    assert "503" in str(result.reason)


def test_a_server_that_is_not_there_is_a_failure(web: Web) -> None:
    result = delivered(http(web, url=f"http://127.0.0.1:{free_port()}"), event())
    assert result is not None and result.delivered == 0 and result.reason


def test_events_before_a_wrong_one_are_delivered(web: Web) -> None:
    result = delivered(http(web), event(), event() | {"run_id": "no uuid"}, event())
    assert result is not None and result.delivered == 1 and result.reason
    assert len(web.posts) == 1


def test_a_file_gets_one_line_for_each_event(tmp_path: Path) -> None:
    path = tmp_path / "out" / "lineage.jsonl"
    transport: dict[str, object] = {"type": "file", "log_file_path": str(path), "append": True}
    assert delivered(transport, event("START")) == Result(delivered=1)
    assert delivered(transport, event("COMPLETE")) == Result(delivered=1)
    kinds = [json.loads(line)["eventType"] for line in path.read_text().splitlines()]
    assert kinds == ["START", "COMPLETE"]


def test_the_clients_own_environment_changes_no_target(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "console")
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    assert delivered(http(web), event()) == Result(delivered=1)
    assert len(web.posts) == 1
