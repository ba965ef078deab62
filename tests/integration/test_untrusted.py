"""One real tick in the worst of worlds: hostile text in every place, and secrets near every error.

Everything is logged, and each secret is a canary that is searched for afterwards in all that is
left: the state directory with its tables and logs, Spark's event log, and what was printed.
"""

import base64
import csv
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.controls.header import COLUMNS
from harness.platform.text import escaped
from harness.store.local import LocalStore
from tests.support.canaries import Canary, found_below, found_in
from tests.support.copied import copy_project
from tests.support.hostile import FORMATS, JINJA, PATHS, PRINTABLE, QUOTES, SQL, UNSEEN, VARIABLE
from tests.support.services.postgres import Postgres

pytestmark = pytest.mark.long(in_sample=True)

LOUD = """
import logging, os, sys
import harness.platform.logs

set_up = harness.platform.logs.set_up_logging

def loudly(*arguments, **named):
    set_up(*arguments, **named)
    for name in (None, "grpc", "sqlalchemy", "psycopg", "databricks", "urllib3", "requests", "dbt", "pyspark", "harness"):
        logging.getLogger(name).setLevel(logging.DEBUG)

harness.platform.logs.set_up_logging = loudly
import harness.sense.sources.kafka.client as kafka

configuration_of = kafka.configuration_of
kafka.configuration_of = lambda *told: {**configuration_of(*told), "debug": "all", "log_level": 7}
from harness.cli.app import main

code = main(sys.argv[1:])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""

#: What a folder's name may hold by the rules of trigger files, and by those of paths.
FOLDER = "{{ 1 \u2215 0 }} it's $(id) %s '; drop table x --"
#: Each text is the name of a job: 101, 102, ...
NAMES = (
    QUOTES,
    JINJA,
    SQL,
    VARIABLE,
    FORMATS,
    PATHS,
    f"{QUOTES}{JINJA}",
    "{{ name }}",
    "a",
    "b",
    "c",
)
DESCRIPTION = "\n\t".join(PRINTABLE)
FILES = [text.replace("/", "_").replace("\0", "_").lstrip("._") for text in (*PRINTABLE, *UNSEEN)]


class Workspace(ThreadingHTTPServer):
    """Has the secrets of a scope, refuses every start of a job, and repeats every login it is sent."""

    def __init__(self, secrets: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.secrets = secrets
        self.logins: set[str] = set()

    def answer(self, path: str, login: str) -> tuple[int, dict[str, str]]:
        self.logins.add(login)
        place = urlsplit(path)
        if place.path == "/api/2.0/secrets/get":
            key = parse_qs(place.query)["key"][0]
            value = base64.b64encode(self.secrets[key].encode()).decode()
            return 200, {"key": key, "value": value}
        again = f"{login} {base64.b64encode(login.encode()).decode()} {login.encode().hex()}"
        return 403, {"error_code": "PERMISSION_DENIED", "message": f"not you: {again} {UNSEEN[0]}"}


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Workspace)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        login = self.headers.get("Authorization") or ""
        status, content = self.server.answer(self.path, login)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@dataclass
class World:
    """A copy of the project, its surroundings, and the output of its commands."""

    folder: Path
    workspace: Workspace
    canaries: dict[str, Canary]
    #: A database that admits everybody, whatever the password.
    database: str
    said: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}
        own |= {name: each for name, each in os.environ.items() if name.endswith("_JARS")}
        return {
            **own,
            "HEARTBEAT_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(self.project),
            "SPARK_CONF_DIR": str(self.folder / "spark"),
            "DATABRICKS_HOST": f"http://127.0.0.1:{self.workspace.server_address[1]}",
            "DATABRICKS_TOKEN": self.canaries["workspace"].value,
            "DATABRICKS_DEBUG_HEADERS": "true",
            "DATABRICKS_DEBUG_TRUNCATE_BYTES": "10000",
            "KAFKA_LOGIN": self.canaries["kafka"].value,
            "SAP_LOGIN": self.canaries["sap"].value,
            "GONE_LOGIN": self.canaries["gone"].value,
            "ICEBERG_LOGIN": self.canaries["iceberg"].value,
        }

    def run(self, step: str, *arguments: str) -> None:
        self.said[step] = subprocess.run(
            [sys.executable, str(self.folder / "loud.py"), *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def set_up(self) -> None:
        copy_project(self.project)
        (self.folder / "loud.py").write_text(LOUD)
        (self.folder / "spark").mkdir()
        (self.folder / "events").mkdir()
        (self.folder / "spark" / "spark-defaults.conf").write_text(
            "spark.eventLog.enabled true\nspark.eventLog.compress false\n"
            f"spark.eventLog.rolling.enabled false\nspark.eventLog.dir file://{self.folder}/events\n"
        )
        gone = "jdbc:postgresql://127.0.0.1:1/gone"
        (self.project / "heartbeat.yml").write_text(
            f"""
trigger_files: {{root: {self.folder}/triggers}}
jobs: {{target: databricks}}
logs: {{max_megabytes: 1024}}
engine: {{mode: inline}}
connections:
  kafka:
    shop: {{bootstrap_servers: "127.0.0.1:1", security_protocol: SASL_PLAINTEXT,
           sasl_mechanism: PLAIN, user: u, password: "env:KAFKA_LOGIN", timeout_seconds: 2}}
  jdbc:
    shop: {{url: "{self.database}", password: "secret:shop/jdbc"}}
    gone: {{url: "{gone}", user: u, password: "env:GONE_LOGIN"}}
  sap: {{sap_bw: {{url: "{gone}", user: u, password: "env:SAP_LOGIN"}}}}
  iceberg: {{lake: {{url: "{gone}", user: u, password: "env:ICEBERG_LOGIN"}}}}
"""
        )
        write_deltalake(self.folder / FOLDER, pa.table({"note": ["x"]}))
        for place in (self.folder / "triggers" / FOLDER, self.folder / "files; it's"):
            place.mkdir(parents=True)
            for name in FILES:
                (place / name).write_text("x")
        with (self.project / "seeds" / "heartbeat_controls.csv").open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *self.rows()])

    def rows(self) -> list[list[str]]:
        """Return the rows of the CSV, each with another name, the same description and no friends."""
        query = (
            "select * from sensor_new_data where note <> '{{ 1 / 0 }} {% raw %}; drop table x --'"
        )
        upstreams = [
            ("delta_table", str(self.folder / FOLDER), "", query),
            ("trigger_file", FOLDER, "", ""),
            ("lmu_delta_table", str(self.folder / FOLDER), "`it's {{ 1 / 0 }}; --`", ""),
            ("kafka", "shop: orders", "", ""),
            (
                "jdbc",
                "shop: (select 1 as id)",
                "id",
                "select * from sensor_new_data where id > 0",
            ),
            ("jdbc", "gone: orders", "id", ""),
            ("sap_bw", "X{{1/0}}`$(id)`", "", ""),
            ("iceberg_table", "lake.db.{{1}}", "", ""),
            ("file", str(self.folder / "files; it's"), "", ""),
            ("hive_table", "default.{{1}}", "", ""),
            ("delta_upstream_sensor", f"{self.folder}/none: {{{{ 1 / 0 }}}} 'x'", "", ""),
        ]
        ends = ("UNPAUSED", "TRUE")
        return [
            [source, sensor_id, "batch", DESCRIPTION, key, query, str(101 + at), NAMES[at], *ends]
            for at, (source, sensor_id, key, query) in enumerate(upstreams)
        ]

    def read(self, table: str) -> list[dict[str, object]]:
        return LocalStore(self.folder / "home" / "warehouse", "heartbeat").read(table)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[World]:
    canaries = {kind: Canary(kind) for kind in ("kafka", "jdbc", "sap", "gone", "iceberg")}
    # A header takes no other characters.
    canaries["workspace"] = Canary("workspace", around="a-token-{}/x")
    with Workspace({"jdbc": canaries["jdbc"].value}) as workspace:
        threading.Thread(target=workspace.serve_forever, args=(0.01,), daemon=True).start()
        world = World(tmp_path_factory.mktemp("untrusted"), workspace, canaries, postgres.url)
        world.set_up()
        world.run("validate", "validate", "--debug")
        world.run("tick", "tick", "--debug")
        world.run("status", "status", "--all")
        world.run("status json", "status", "--json")
        world.run("explain", "explain", "101")
        world.run("refused", "explain", canaries["workspace"].value, "--debug")
        yield world
        workspace.shutdown()


def test_the_tick_went_through_all_of_it(world: World) -> None:
    assert world.said["validate"].returncode == 0, world.said["validate"].stdout
    assert world.said["tick"].returncode == 1, world.said["tick"].stderr[-3000:]
    results = [(str(row["upstream_id"]), row["outcome"], row["reason"]) for row in probes(world)]
    found = {upstream.split(":")[0] for upstream, outcome, _ in results if outcome == "found"}
    assert found == {"delta_table", "trigger_file", "jdbc"}, results
    assert {upstream.split(":")[0] for upstream, _, _ in results} == {
        row[0] for row in world.rows()
    }


def probes(world: World) -> list[dict[str, object]]:
    return world.read("ledger_probes")


def test_each_secret_was_used(world: World) -> None:
    output = " ".join(str(row["reason"]) for row in probes(world))
    assert "brokers can be reached" in output
    assert output.count("port 1 failed: Connection refused") == 3
    assert world.workspace.logins >= {f"Bearer {world.canaries['workspace'].value}"}
    assert {row["run_status"] for row in world.read("ledger_runs")} == {"INTENDED"}
    log = (world.folder / "home" / "logs" / "heartbeat.log").read_text()
    assert " DEBUG sqlalchemy" in log
    assert "/api/2.0/secrets/get" in log


def test_no_file_that_is_left_gives_a_secret_away(world: World) -> None:
    assert list((world.folder / "events").iterdir())
    assert found_below(world.folder, world.canaries.values()) == {}


@pytest.mark.parametrize(
    "step", ["validate", "tick", "status", "status json", "explain", "refused"]
)
def test_nothing_that_is_printed_gives_a_secret_away(world: World, step: str) -> None:
    output = world.said[step]
    assert found_in((output.stdout + output.stderr).encode(), world.canaries.values()) == set()


@pytest.mark.parametrize(
    "step", ["validate", "tick", "status", "status json", "explain", "refused"]
)
def test_nothing_that_is_printed_moves_a_cursor(world: World, step: str) -> None:
    output = world.said[step]
    assert all(escaped(line) == line for line in output.stdout.split("\n"))
    own = [line for line in output.stderr.split("\n") if not line.startswith("%7|")]
    assert all(escaped(line) == line for line in own)


def test_every_cell_is_in_the_tables_as_it_stands_in_the_file(world: World) -> None:
    wanted = sorted([cell or None for cell in row] for row in world.rows())
    seeded = sorted([row[column] for column in COLUMNS] for row in world.read("heartbeat_controls"))
    assert seeded == wanted
    recorded = {str(row["job_id"]): row for row in world.read("ledger_controls")}
    assert {job: row["job_name"] for job, row in recorded.items()} == {
        row[6]: row[7] for row in world.rows()
    }
    assert {row["asset_description"] for row in recorded.values()} == {DESCRIPTION}


def test_scripts_get_every_name_as_it_is(world: World) -> None:
    control = json.loads(world.said["status json"].stdout)["control"]
    assert {row["trigger_job_id"]: row["trigger_job_name"] for row in control} == {
        row[6]: row[7] for row in world.rows()
    }


def test_every_file_of_any_name_is_an_event(world: World) -> None:
    paths = [
        dict(row["tags"]).get("path")  # type: ignore[call-overload]
        for row in world.read("ledger_data_change_events")
    ]
    triggers = {path for path in paths if str(path).startswith(f"{FOLDER}/")}
    assert triggers == {f"{FOLDER}/{name}" for name in FILES}


def test_a_hostile_query_let_its_rows_through_and_did_nothing_else(world: World) -> None:
    sources = [str(row["upstream_id"]) for row in world.read("ledger_data_change_events")]
    assert sum(source.startswith("delta_table:") for source in sources) == 1
    assert {row["job_id"] for row in world.read("ledger_runs")} == {101, 102, 105}
