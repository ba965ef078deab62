"""Secrets of a workspace's scopes, through the real SDK over HTTP."""

import base64
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.config.load import load_settings
from harness.config.secrets import SecretReference, SecretResolver
from harness.config.workspace_secrets import secrets_for
from harness.context import Context
from harness.errors import ConfigurationError
from harness.platform.masking import masked
from harness.store.work_lists import Upstream
from tests.support.golden import AT

VALUE = "pässword-of-the-shop"
ENCODED = base64.b64encode(VALUE.encode()).decode()
TOKEN = "a-token-of-the-test"
REFERENCE = SecretReference.parse("secret:shop/kafka")


class Workspace(ThreadingHTTPServer):
    """Serves its secrets as a workspace does, or returns the status that is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.secrets: dict[tuple[str, str], str] = {("shop", "kafka"): ENCODED}
        self.status: int | None = None
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, login: str | None) -> tuple[int, dict[str, str]]:
        place = urlsplit(path)
        if place.path != "/api/2.0/secrets/get":
            return 404, {}
        self.asked.append(path)
        if self.status is not None:
            return self.status, {"error_code": "SOME_CODE", "message": "so it is"}
        if login != f"Bearer {TOKEN}":
            return 403, {"error_code": "PERMISSION_DENIED", "message": "not you"}
        wanted = {name: each[0] for name, each in parse_qs(place.query).items()}
        value = self.secrets.get((wanted["scope"], wanted["key"]))
        if value is None:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such secret"}
        return 200, {"key": wanted["key"], "value": value}


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Workspace)
        status, content = self.server.answer(self.path, self.headers.get("Authorization"))
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace that the SDK's own environment names."""
    with Workspace() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("DATABRICKS_HOST", server.address)
        monkeypatch.setenv("DATABRICKS_TOKEN", TOKEN)
        yield server
        server.shutdown()


@pytest.fixture
def secrets(workspace: Workspace, tmp_path: Path) -> SecretResolver:
    """What a deployment with a workspace fetches its secrets with."""
    (tmp_path / "heartbeat.yml").write_text("")
    environment = {"DATABRICKS_HOST": workspace.address, "OTHER": "from the environment"}
    return secrets_for(load_settings(tmp_path, environment), environment)


def refusal(secrets: SecretResolver) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        REFERENCE.resolve(secrets)
    return caught.value


def test_a_secret_of_a_scope_is_fetched_and_read_as_text(secrets: SecretResolver) -> None:
    assert REFERENCE.resolve(secrets).get_secret_value() == VALUE


def test_a_secret_is_fetched_at_each_use(secrets: SecretResolver, workspace: Workspace) -> None:
    REFERENCE.resolve(secrets)
    workspace.secrets["shop", "kafka"] = base64.b64encode(b"another").decode()
    assert REFERENCE.resolve(secrets).get_secret_value() == "another"


def test_a_variable_is_not_requested_from_the_workspace(
    secrets: SecretResolver, workspace: Workspace
) -> None:
    value = SecretReference.parse("env:OTHER").resolve(secrets).get_secret_value()
    assert (value, workspace.asked) == ("from the environment", [])


def test_a_secret_that_is_not_there_is_named_with_the_way_out(
    secrets: SecretResolver, workspace: Workspace
) -> None:
    workspace.secrets.clear()
    assert str(refusal(secrets)) == (
        "the workspace has no secret:shop/kafka; databricks secrets put-secret shop kafka makes it"
    )


def test_a_secret_that_may_not_be_read_is_named_with_the_way_out(
    secrets: SecretResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_TOKEN", "somebody-else")
    assert str(refusal(secrets)) == (
        "the workspace does not let this user read secret:shop/kafka; grant READ on the scope shop"
    )


def test_an_empty_secret_is_none(secrets: SecretResolver, workspace: Workspace) -> None:
    workspace.secrets["shop", "kafka"] = ""
    assert "secret:shop/kafka is not set" in str(refusal(secrets))


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_a_workspace_in_trouble_is_queried_once_and_reported_in_one_sentence(
    secrets: SecretResolver, workspace: Workspace, status: int
) -> None:
    workspace.status = status
    assert str(refusal(secrets)) == (
        "secret:shop/kafka cannot be fetched from the workspace: SOME_CODE: so it is; check the login"
    )
    assert len(workspace.asked) == 1


def test_a_workspace_that_is_not_there_is_reported_in_one_sentence(
    secrets: SecretResolver, workspace: Workspace
) -> None:
    workspace.shutdown()
    workspace.server_close()
    output = str(refusal(secrets))
    assert output.startswith("secret:shop/kafka cannot be fetched from the workspace: ")
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("stored", [VALUE, "QUJD!", base64.b64encode(b"\xff\xfe" * 9).decode()])
def test_a_value_that_is_no_text_is_refused_and_never_repeated(
    secrets: SecretResolver, workspace: Workspace, stored: str
) -> None:
    workspace.secrets["shop", "kafka"] = stored
    error = refusal(secrets)
    assert "secret:shop/kafka of the workspace is not UTF-8 text" in str(error)
    assert error.__suppress_context__
    assert stored not in f"{error} {error.__cause__}"


def test_no_log_line_repeats_a_value(
    secrets: SecretResolver, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "databricks.sdk"):
        REFERENCE.resolve(secrets)
    assert "/api/2.0/secrets/get" in caplog.text
    assert VALUE not in caplog.text
    assert ENCODED not in caplog.text


TOPIC = Upstream(
    upstream_id="kafka:shop: orders", source="kafka", sensor_id="shop: orders", read_type="batch"
)


def look_at_topic(folder: Path, workspace: Workspace) -> str | None:
    """Probe a topic of a cluster that is down, with everything wired as in a deployment."""
    (folder / "heartbeat.yml").write_text(
        "connections: {kafka: {shop: {bootstrap_servers: '127.0.0.1:1', timeout_seconds: 1,"
        " security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, user: heartbeat,"
        " password: 'secret:shop/kafka'}}}"
    )
    environment = {"DATABRICKS_HOST": workspace.address}
    context = Context(load_settings(folder, environment), environment)
    [result] = context.probe_pool.probe_all([TOPIC], at=AT)
    return result.failure


def test_a_probe_logs_in_with_the_value_and_hides_it(tmp_path: Path, workspace: Workspace) -> None:
    failure = look_at_topic(tmp_path, workspace)
    assert failure is not None
    assert "shop: orders cannot be sensed: none of the cluster's brokers can be reached" in failure
    assert masked(f"{VALUE} {ENCODED}") == "*** ***"


def test_a_probe_whose_secret_is_not_there_fails_with_its_name(
    tmp_path: Path, workspace: Workspace
) -> None:
    workspace.secrets.clear()
    assert look_at_topic(tmp_path, workspace) == (
        "The Kafka topic shop: orders cannot be sensed: the workspace has no secret:shop/kafka;"
        " databricks secrets put-secret shop kafka makes it."
    )
