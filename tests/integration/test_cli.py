"""One story over the real command line: real processes, Spark, Delta, dbt and local Jobs API.

It begins with the checkout as it is shipped, whose controls are a header alone. The story runs once,
and each test checks one thing in it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from harness.controls.findings import WITHOUT_ROWS
from harness.controls.header import COLUMNS
from tests.support.copied import PROJECT, copy_project
from tests.support.engines import happens
from tests.support.services.connect import Endpoint
from tests.support.services.processes import stopped_by_ctrl_c

# The pieces have nearer tests; that they fit is checked for each commit all the same.
pytestmark = pytest.mark.long(in_sample=True)

GOOD, BAD, WAITS = 2**53 + 1, 2**53 + 3, 2**53 + 5

#: A phase that is at work, a warning, and what a signal leads to.
_OWN_LINE = re.compile(r"warning: | \.\.\. \d+ s$|^stopp(ing|ed)")

Answer = subprocess.CompletedProcess[str]


@dataclass
class Shell:
    """A copy of the project, and a state directory of its own."""

    folder: Path
    #: By which a process finds Spark.
    variables: dict[str, str]
    said: dict[str, Answer] = field(default_factory=dict)
    #: The types of the controls while they have no rows, by column.
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}
        return own | self.variables

    def run(self, step: str, *arguments: str) -> Answer:
        """Run the command line; keep its output under the name of the step."""
        self.said[step] = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        return self.said[step]

    def json(self, step: str) -> dict[str, object]:
        content = json.loads(self.said[step].stdout)
        assert isinstance(content, dict)
        return content

    def edit(self) -> None:
        """Give the project three jobs; one of them fails, and one waits for what is not there."""
        rows = [("orders", GOOD, "good"), ("orders", BAD, "bad"), ("missing", WAITS, "waits")]
        lines = [
            f"delta_table,{self.folder / name},streaming,,,,{job_id},{job_name},UNPAUSED,TRUE"
            for name, job_id, job_name in rows
        ]
        text = "\n".join([",".join(COLUMNS), *lines]) + "\n"
        (self.project / "seeds" / "heartbeat_controls.csv").write_text(text)
        (self.project / "heartbeat.yml").write_text(
            "jobs:\n  local:\n    default_command: 'true'\n"
            f"    commands:\n      {BAD}: {{command: 'echo boom >&2; exit 3'}}\n"
        )
        write_deltalake(self.folder / "orders", pa.table({"a": [1, 2, 3]}))

    def lose_a_commit(self) -> None:
        """Tick on a ledger whose newest commit a power cut has emptied; put it back afterwards."""
        schema = f"{self.variables['HEARTBEAT_SCHEMA']}.db"
        log = self.folder / "home" / "warehouse" / schema / "ledger_runs" / "_delta_log"
        newest = max(log.glob("*.json"))
        content = newest.read_bytes()
        newest.write_bytes(b"")
        self.run("tick without a commit", "tick")
        self.run("doctor without a commit", "doctor", "--json")
        newest.write_bytes(content)

    def stop(self, command: str) -> None:
        """Press Ctrl-C once a command is at work."""
        self.said[f"stopped {command}"] = stopped_by_ctrl_c(
            [command],
            folder=self.project,
            environment=self.environment,
            home=Path(self.environment["HEARTBEAT_HOME"]),
        )

    def is_public(self, tick_id: str) -> bool:
        """Return whether what a tick did is what readers see; `run` publishes after its ticks."""
        status = Path(self.environment["HEARTBEAT_HOME"], "status.json")
        return json.loads(status.read_text())["tick_id"] == tick_id

    def stay_and_stop(self) -> None:
        """Let a resident process tick; signal it to end after its first tick with new data."""
        resident = subprocess.Popen(
            [sys.executable, "-m", "harness", "run", "--every", "1s", "--json"],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert resident.stdout is not None
        try:
            first = resident.stdout.readline()
            assert happens(lambda: self.is_public(json.loads(first)["tick_id"]))
            self.run("second", "tick")
            self.run("status beside run", "status")
            self.run("doctor beside run", "doctor", "--json")
            resident.send_signal(signal.SIGTERM)
            rest, errors = resident.communicate(timeout=300)
        finally:
            resident.kill()
        self.said["run"] = subprocess.CompletedProcess(
            [], resident.returncode, first, rest + errors
        )


@pytest.fixture(scope="module")
def shell(
    spark: SparkSession, spark_endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("cli")
    shell = Shell(folder, spark_endpoint.variables(spark, folder / "home"))
    copy_project(shell.project)
    shutil.copy(PROJECT / "heartbeat.yml", shell.project)
    shell.stop("init")
    shell.run("empty init", "init")
    shell.run("init again", "init")
    for command in ("tick", "status", "jobs", "events"):
        shell.run(f"empty {command}", command)
    shell.run("empty explain", "explain", "daily-revenue")
    shell.run("empty doctor", "doctor", "--json")
    seed = spark.table(f"{shell.variables['HEARTBEAT_SCHEMA']}.heartbeat_controls")
    shell.columns = {each.name: each.dataType.simpleString() for each in seed.schema}
    shell.edit()
    shell.run("init", "init")
    shell.run("status before", "status", "--json")
    shell.stop("tick")
    shell.run("tick", "tick", "--json")
    shell.stay_and_stop()
    shell.run("status", "status", "--json")
    for listing in ("jobs", "upstreams", "runs"):
        shell.run(listing, listing, "--json")
    shell.run("logs bad", "logs", "bad")
    shell.run("explain bad", "explain", "bad", "--json")
    shell.run("explain waits", "explain", str(WAITS))
    shell.run("retry good", "retry", "good")
    shell.run("retry bad", "retry", "bad")
    shell.lose_a_commit()
    shell.stop("maintain")
    shell.run("maintain", "maintain", "--json")
    yield shell
    shell.run("stop", "jobs-api", "--stop")


@pytest.mark.parametrize("command", ["init", "tick", "status"])
def test_without_rows_a_command_ends_well_and_prints_once_what_to_do_first(
    shell: Shell, command: str
) -> None:
    output = shell.said[f"empty {command}"]
    assert output.returncode == 0, output.stderr
    assert " ".join(output.stdout.split()).count(WITHOUT_ROWS) == 1
    assert "harness tick" not in output.stdout


@pytest.mark.parametrize(
    ("command", "code", "printed"),
    [
        ("jobs", 0, "0 jobs\n"),
        ("events", 4, "no recorded event matches\n"),
        (
            "explain",
            2,
            "error: There is no job 'daily-revenue'; none is recorded yet: add a row for it to "
            "seeds/heartbeat_controls.csv, and run a tick\n",
        ),
    ],
)
def test_without_rows_no_job_and_no_event_is_found_and_one_line_states_it(
    shell: Shell, command: str, code: int, printed: str
) -> None:
    output = shell.said[f"empty {command}"]
    assert (output.returncode, output.stdout + output.stderr) == (code, printed)


def test_without_rows_doctor_names_the_remedy_and_nothing_is_broken(shell: Shell) -> None:
    assert shell.said["empty doctor"].returncode == 0
    findings = {each["about"]: each for each in shell.json("empty doctor")["findings"]}  # type: ignore[attr-defined]
    assert findings["controls"]["what"] == WITHOUT_ROWS.rstrip(".")


def test_the_seed_without_rows_has_its_columns_as_text(shell: Shell) -> None:
    assert shell.columns == dict.fromkeys(COLUMNS, "string")


def test_init_prints_what_there_is_and_what_comes_next(shell: Shell) -> None:
    output = shell.said["init"]
    assert output.returncode == 0, output.stderr
    assert "3 rows, 3 jobs, 2 upstreams" in output.stdout
    assert "python -m harness tick" in output.stdout


def test_init_has_nothing_to_build_where_nothing_has_changed(shell: Shell) -> None:
    again = shell.said["init again"]
    assert (again.returncode, again.stdout) == (0, shell.said["empty init"].stdout)
    assert not re.search("Spark|building", again.stderr)


def test_a_phase_is_never_further_than_its_end(shell: Shell) -> None:
    shown = re.findall(r"\((\d+) of (\d+)\) \.\.\. ", shell.said["empty init"].stderr)
    assert shown and all(int(done) <= int(total) for done, total in shown)


def test_status_works_before_the_first_tick(shell: Shell) -> None:
    control = shell.json("status before")["control"]
    assert [row["trigger_job_id"] for row in control] == [str(GOOD), str(BAD), str(WAITS)]  # type: ignore[attr-defined]


def test_a_tick_with_an_unreadable_upstream_starts_the_others_and_ends_with_one(
    shell: Shell,
) -> None:
    tick = shell.json("tick")
    assert shell.said["tick"].returncode == 1
    assert {each["job"] for each in tick["fired"]} == {str(GOOD), str(BAD)}  # type: ignore[attr-defined]
    assert (tick["events"], tick["failed_looks"]) == (1, 1)


def test_a_person_sees_no_noise_of_the_jvm(shell: Shell) -> None:
    for step in (
        "stopped init",
        "empty init",
        "init",
        "stopped tick",
        "tick",
        "stopped maintain",
        "maintain",
    ):
        lines = shell.said[step].stderr.splitlines()
        assert [line for line in lines if not _OWN_LINE.search(line)] == []


@pytest.mark.parametrize("command", ["init", "tick", "maintain"])
def test_ctrl_c_names_what_stops_and_ends_with_130(shell: Shell, command: str) -> None:
    output = shell.said[f"stopped {command}"]
    assert output.returncode == 130
    stopping, stopped = output.stderr.splitlines()[-2:]
    assert stopping.startswith("stopping ")
    assert stopped == "stopped; nothing is lost, the next tick continues from here"
    assert output.stdout == ""


def test_a_tick_that_ctrl_c_has_stopped_starts_no_job(shell: Shell) -> None:
    # The tick that follows is the first one to start anything.
    assert len(shell.json("tick")["fired"]) == 2  # type: ignore[arg-type]


def test_a_resident_process_settles_and_ends_with_130_on_a_signal(shell: Shell) -> None:
    assert shell.json("run")["settled"] == 2
    assert shell.said["run"].returncode == 130, shell.said["run"].stderr


def test_beside_a_resident_process_a_tick_ends_with_three(shell: Shell) -> None:
    assert shell.said["second"].returncode == 3
    assert "`run`" in shell.said["second"].stderr


def test_beside_a_resident_process_status_answers_and_names_the_process_at_work(
    shell: Shell,
) -> None:
    assert shell.said["status beside run"].returncode == 0
    assert "`run` has been at work for" in shell.said["status beside run"].stdout


def test_beside_a_resident_process_doctor_answers_and_finds_nothing_broken(shell: Shell) -> None:
    examined = shell.json("doctor beside run")
    assert (shell.said["doctor beside run"].returncode, examined["broken"]) == (0, 0)
    output = {each["about"]: each["what"] for each in examined["findings"]}  # type: ignore[attr-defined]
    assert output["lock"].startswith("`run` is at work")


def test_a_tick_on_a_ledger_that_lost_a_commit_starts_nothing_and_reports_it(shell: Shell) -> None:
    output = shell.said["tick without a commit"]
    assert output.returncode == 1
    assert output.stderr.startswith("error: The newest commit of ledger_runs is empty")
    assert len(output.stderr.splitlines()) == 1


def test_doctor_names_the_commit_that_was_lost_and_ends_with_one(shell: Shell) -> None:
    broken = [
        each
        for each in shell.json("doctor without a commit")["findings"]  # type: ignore[attr-defined]
        if each["level"] == "broken"
    ]
    assert shell.said["doctor without a commit"].returncode == 1
    assert [each["about"] for each in broken] == ["ledger_runs"]
    assert "A table is damaged" in broken[0]["todo"]


def test_status_has_every_face(shell: Shell) -> None:
    status = shell.json("status")
    faces = ["control", "blockers", "runs", "sensors", "failing", "failing_triggers"]
    assert list(status) == [*faces, "quarantined", "last_tick_at"]
    statuses = {row["trigger_job_id"]: row["status"] for row in status["control"]}  # type: ignore[attr-defined]
    assert statuses == {str(GOOD): "COMPLETED", str(BAD): "FAILED", str(WAITS): None}
    assert {run["run_status"] for run in status["runs"]} == {"SUCCEEDED", "FAILED"}  # type: ignore[attr-defined]


def test_status_shows_what_has_kept_failing_over_several_processes(shell: Shell) -> None:
    [failing] = shell.json("status")["failing"]  # type: ignore[misc]
    assert "does not exist" in failing["reason"]
    assert failing["failed_looks"] > 1


def listed(shell: Shell, listing: str, name: str, value: str) -> dict[str, str]:
    rows = json.loads(shell.said[listing].stdout)
    return {row[name]: row[value] for row in rows}


def test_listings_have_every_job_upstream_and_run(shell: Shell) -> None:
    states = {"good": "waiting", "bad": "held", "waits": "attention"}
    assert listed(shell, "jobs", "job_name", "state") == states
    upstreams = listed(shell, "upstreams", "sensor_id", "state")
    assert upstreams == {
        str(shell.folder / "orders"): "ok",
        str(shell.folder / "missing"): "unreadable",
    }
    assert listed(shell, "runs", "job_name", "run_status") == {
        "good": "SUCCEEDED",
        "bad": "FAILED",
    }


def test_the_output_of_a_run_is_printed_by_the_name_of_its_job(shell: Shell) -> None:
    assert shell.said["logs bad"].stdout == "boom\n"
    assert "/jobs-api/runs/" in shell.said["logs bad"].stderr


def test_explain_shows_why_a_job_is_held(shell: Shell) -> None:
    explained = shell.json("explain bad")
    assert explained["verdict"] == "held"
    assert "boom" in str(explained["reason"])


def test_explain_shows_why_a_job_waits(shell: Shell) -> None:
    output = shell.said["explain waits"].stdout
    assert output.startswith(f"waits ({WAITS}) is waiting")
    assert "does not exist" in output


def test_only_a_held_job_is_retried(shell: Shell) -> None:
    assert shell.said["retry good"].returncode == 2
    assert shell.said["retry bad"].returncode == 0


def test_maintaining_leaves_one_file_a_table_and_folds(shell: Shell) -> None:
    kept = shell.json("maintain")
    assert shell.said["maintain"].returncode == 0
    files = {each["table"]: each["files_after"] for each in kept["tables"]}  # type: ignore[attr-defined]
    # What has no rows has no file: seeds that have a header alone, and what is for triggers.
    seeds = {
        "event_triggers",
        "imported_sensors",
        "retry_policies",
        "scheduled_jobs",
        "sensor_assets",
    }
    without_rows = {table for table, count in files.items() if count == 0}
    others = {"ledger_trigger_looks", "event_partitions", "stg_retry_policies"}
    assert seeds <= without_rows <= seeds | others
    # Its files are apart by table.
    files.pop("event_partitions", None)
    assert set(files.values()) == {0, 1}
    assert kept["folded"] is True
