"""One secret of each kind is planted, and searched for in all that one process writes."""

import base64
import copy
import gzip
import io
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.cli.app import _exit_with
from harness.cli.common import print_json, print_line
from harness.cli.views.terminal import console_for, line
from harness.config.load import load_settings
from harness.config.secrets import EnvironmentSecrets, SecretReference
from harness.errors import ConfigurationError, ExitCode, ProbeFailedError
from harness.platform.databricks.client import ClientSettings
from harness.platform.databricks.workspace import bounded_config, described
from harness.platform.jobs_emulator.server import Endpoint
from harness.platform.logs import set_up_logging
from harness.platform.masking import mask_environment
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.sense.sources.jdbc.session import credentials
from harness.sense.sources.kafka.connection import connector
from harness.store.work_lists import Upstream
from tests.support.canaries import Canary, found_below, found_in
from tests.support.golden import AT

KINDS = ("kafka", "jdbc", "sap", "iceberg", "workspace")
FILE = """
connections:
  kafka:
    shop: {bootstrap_servers: "h:1", security_protocol: SASL_SSL, sasl_mechanism: PLAIN, user: u,
           password: "env:KAFKA_LOGIN"}
  jdbc: {shop: {url: "jdbc:x:y", user: u, password: "env:JDBC_LOGIN"}}
  sap: {sap_bw: {url: "jdbc:x:y", user: u, password: "env:SAP_LOGIN"}}
  iceberg: {lake: {url: "jdbc:x:y", user: u, password: "env:ICEBERG_LOGIN"}}
"""


class World:
    """A configuration with a canary behind each reference."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canaries = {kind: Canary(kind) for kind in KINDS}
        # A header takes no other characters.
        self.canaries["workspace"] = Canary("workspace", around="a-token-{}/x")
        self.environment = {
            f"{kind.upper()}_LOGIN": canary.value for kind, canary in self.canaries.items()
        }
        (folder / "heartbeat.yml").write_text(FILE)
        self.settings = load_settings(folder, self.environment)
        self.secrets = EnvironmentSecrets(self.environment)

    def use(self, kind: str) -> str:
        """Fetch a secret as its source does, and return what a client may report of it."""
        connections = self.settings.connections
        value = self.canaries[kind].value
        match kind:
            case "kafka":
                connector(connections.kafka, self.secrets)("shop")
            case "jdbc":
                value = credentials(connections.jdbc["shop"], self.secrets)["password"]
            case "sap":
                assert connections.sap.sap_bw is not None
                value = credentials(connections.sap.sap_bw, self.secrets)["password"]
            case "iceberg":
                lake = connections.iceberg["lake"].database()
                value = credentials(lake, self.secrets)["password"]
            case "workspace":
                bounded_config(host="http://127.0.0.1:1", token=value)
        assert value == self.canaries[kind].value
        raw = value.encode()
        shapes = [
            value,
            repr(value),
            json.dumps(value),
            quote(value),
            quote(value, safe=""),
            raw.hex(),
            base64.b64encode(raw).decode(),
            base64.b64encode(b"user:" + raw).decode(),
            base64.urlsafe_b64encode(b"us:" + raw + b"\n").decode(),
        ]
        return f"login refused: {' '.join(shapes)}\nand once more {value}"

    def found(self, *texts: str) -> set[str]:
        """Return which secrets texts and files contain."""
        everywhere = set().union(*found_below(self.folder, self.canaries.values()).values(), set())
        return everywhere | found_in("\n".join(texts).encode(), self.canaries.values())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("DATABRICKS_TOKEN", "DATABRICKS_HOST", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return World(tmp_path)


@pytest.fixture
def loud_logs(tmp_path: Path) -> Iterator[Path]:
    """The log of a process that logs everything."""
    levels = {name: logging.getLogger(name).level for name in ("databricks", "py4j", "urllib3")}
    # `logging_as_before` restores the root logger.
    set_up_logging(tmp_path, is_writer=True, console=io.StringIO())
    for name in (*levels, None):
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield tmp_path / "logs" / "heartbeat.log"
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


EACH = pytest.mark.parametrize("kind", KINDS)


@EACH
def test_no_log_gives_a_secret_away(world: World, loud_logs: Path, kind: str) -> None:
    output = world.use(kind)
    for name in (
        "harness.tick.engine",
        "py4j.java_gateway",
        "databricks.sdk",
        "urllib3.connectionpool",
    ):
        try:
            raise ProbeFailedError(output) from ValueError(output)
        except ProbeFailedError:
            logging.getLogger(name).debug("setProperty %s %r", output, [output], exc_info=True)
    assert "login refused" in loud_logs.read_text()
    assert world.found() == set()


@EACH
@pytest.mark.parametrize("debug", ["", "1"])
def test_no_sentence_and_no_stack_trace_gives_a_secret_away(
    world: World,
    kind: str,
    debug: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HEARTBEAT_DEBUG", debug)
    output = world.use(kind)
    try:
        raise ConfigurationError(output) from ValueError(output)
    except ConfigurationError as error:
        _exit_with(str(error), error, ExitCode.USAGE)
    captured = capsys.readouterr()
    assert ("Traceback" in captured.err) == bool(debug)
    assert world.found(captured.out, captured.err) == set()


@EACH
def test_no_answer_gives_a_secret_away(
    world: World, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = world.use(kind)
    print_line(output)
    print_json({output: [output]})
    page = io.StringIO()
    console_for(page).print(line(output, (output, "bold")))
    assert world.found(capsys.readouterr().out, page.getvalue()) == set()


class Failing:
    """A probe that fails with a message that contains a secret."""

    def __init__(self, output: str, *, raises: bool) -> None:
        self.said = output
        self.raises = raises

    def group_of(self, upstream: Upstream) -> str:
        return upstream.upstream_id

    def probe(self, group: list[Upstream], *, at: object) -> list[ProbeResult]:
        if self.raises:
            raise RuntimeError(self.said)
        return [ProbeResult(upstream_id=group[0].upstream_id, position=None, failure=self.said)]


@EACH
@pytest.mark.parametrize("raises", [True, False])
def test_no_failed_probe_gives_a_secret_away(world: World, kind: str, raises: bool) -> None:
    probe = Failing(world.use(kind), raises=raises)
    upstream = Upstream(upstream_id="u", source="jdbc", sensor_id="shop: t", read_type="batch")
    [result] = ProbePool({"jdbc": probe}).probe_all([upstream], at=AT)  # type: ignore[dict-item]
    assert result.failure is not None
    assert "login refused" in result.failure
    assert world.found(repr(result)) == set()


@EACH
def test_no_answer_of_the_jobs_api_gives_a_secret_away(world: World, kind: str) -> None:
    output = world.use(kind)
    assert world.found(described(ValueError(output)), described(OSError(output))) == set()


def test_nothing_that_is_kept_in_memory_gives_a_secret_away_when_it_is_written_down(
    world: World,
) -> None:
    for kind in KINDS:
        world.use(kind)
    token = world.canaries["workspace"].value
    kept = [
        world.settings,
        world.settings.connections,
        ClientSettings(host="h", token=token),
        Endpoint(host="h", token=token),
        SecretReference.parse("env:JDBC_LOGIN").resolve(world.secrets),
    ]
    written = [repr(kept), str(kept), f"{kept}", repr(copy.deepcopy(kept))]
    pickled = pickle.dumps([world.settings, world.settings.connections])
    written += [world.settings.connections.model_dump_json(), repr(pickled)]
    assert world.found(*written) == set()


def test_a_secret_is_hidden_before_anything_has_requested_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = world.canaries["workspace"]
    mask_environment({"DATABRICKS_TOKEN": canary.value})
    print_line(f"refused: {canary.value}")
    assert world.found(capsys.readouterr().out) == set()


@pytest.mark.parametrize(
    "write",
    [
        lambda value: value.encode(),
        lambda value: quote(value).encode(),
        lambda value: json.dumps({"password": value}).encode(),
        lambda value: base64.b64encode(b"user:" + value.encode()),
        lambda value: base64.urlsafe_b64encode(b"x" + value.encode()),
        lambda value: value.encode().hex().encode(),
        lambda value: value.encode().hex().upper().encode(),
    ],
)
def test_the_search_finds_a_secret_in_every_spelling(
    tmp_path: Path, write: Callable[[str], bytes]
) -> None:
    canary = Canary("any")
    (tmp_path / "log").write_bytes(b"before " + write(canary.value) + b" after")
    assert found_below(tmp_path, [canary]) == {str(tmp_path / "log"): {"any"}}
    assert found_below(tmp_path, [Canary("any")]) == {}


def test_the_search_finds_a_secret_in_compressed_rows(tmp_path: Path) -> None:
    canary = Canary("any")
    table = pa.table({"reason": [canary.value] * 1000, "tags": [[canary.value]] * 1000})
    parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    (tmp_path / "log.gz").write_bytes(gzip.compress(canary.value.encode()))
    assert len(found_below(tmp_path, [canary])) == 2
