"""The example DAGs, run by Airflow against a real Heartbeat and real Iceberg tables.

The tables, the state directory and Airflow's database are made once; each test checks one result.
"""

import json
import os
import runpy
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from heartbeat_airflow.events import decode_events, encode_events
from heartbeat_airflow.sensors import HeartbeatJobSensor
from tests.conftest import CLUSTER

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
EXAMPLES = PACKAGE / "examples"
PYTHON = os.environ.get("HEARTBEAT_PYTHON", str(ROOT / ".venv" / "bin" / "python"))

pytestmark = [pytest.mark.timeout(900), pytest.mark.whole]


class World:
    """A lake, a Heartbeat that has watched it for a day, and an Airflow beside them.

    Args:
        folder: Where all of it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.lake = folder / "lake"
        self.results = folder / "results"
        self.snapshots: list[tuple[str, str]] = []
        runpy.run_path(str(ROOT / "tests" / "support" / "copied.py"))["copy_project"](self.project)

    def live(self) -> None:
        """Let the day pass."""
        message = subprocess.run(
            [PYTHON, str(PACKAGE / "tests" / "world.py"), str(self.lake)],
            cwd=self.project,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert message.returncode == 0, message.stdout + message.stderr
        self.snapshots = [tuple(each) for each in json.loads(message.stdout.splitlines()[-1])]

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that Airflow's process needs."""
        extra = {"project": str(self.project), "python": PYTHON, "home": str(self.folder / "home")}
        return {
            f"AIRFLOW_CONN_{CLUSTER.upper()}": json.dumps(
                {"conn_type": "heartbeat", "extra": extra}
            ),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "HEARTBEAT_PROJECT": str(self.project),
            "HEARTBEAT_BIN": str(Path(PYTHON).parent),
            "LAKE_WAREHOUSE": str(self.lake),
            "PAGEVIEWS_RESULTS": str(self.results),
        }

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AIRFLOW", "PYTHON", "VIRTUAL_ENV"))
        }
        search = os.pathsep.join(map(str, (self.project, ROOT)))
        return kept | {"HEARTBEAT_HOME": str(self.folder / "home"), "PYTHONPATH": search}


@pytest.fixture(scope="module")
def world(database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The lake at the end of the day, with Airflow connected to it."""
    world = World(tmp_path_factory.mktemp("world"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.variables.items():
            patch.setenv(name, value)
        world.live()
        yield world


def dag_of(name: str) -> DAG:
    """The DAG of an example's file."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["dag"]


def run(name: str, hour: int, minute: int = 5) -> DagRun:
    """Run the example for the last interval that has ended by then."""
    return dag_of(name).test(logical_date=datetime(2026, 11, 1, hour, minute, tzinfo=UTC))


def states(ran: DagRun) -> dict[str, str]:
    return {task.task_id: str(task.state) for task in ran.get_task_instances()}


def fetched(ran: DagRun) -> list[dict]:
    return ran.get_task_instance("fetched_events").xcom_pull(task_ids="fetched_events")


def ids(world: World, hour: int) -> list[int]:
    """The rows that the Spark job of an interval has written."""
    begins = int(datetime(2026, 11, 1, hour, tzinfo=UTC).timestamp())
    files = (world.results / str(begins)).glob("part-*.json")
    return sorted(json.loads(line)["id"] for file in files for line in file.open())


def test_the_first_interval_has_all_rows(world: World) -> None:
    ran = run("changed_pageviews", 11)
    assert states(ran) == dict.fromkeys(states(ran), "success")
    assert [each["snapshot_id"] for each in fetched(ran)] == [world.snapshots[0][0]]
    assert ids(world, 10) == [1, 2, 3]


def test_the_second_interval_has_only_the_rows_that_are_new(world: World) -> None:
    ran = run("changed_pageviews", 12)
    events = fetched(ran)
    assert [each["snapshot_id"] for each in events] == [each[0] for each in world.snapshots[1:3]]
    assert decode_events(encode_events(events)) == events
    assert ids(world, 11) == [4, 5, 6]


def test_an_interval_in_which_no_row_changed_starts_no_spark_job(world: World) -> None:
    assert world.snapshots[3][1] == "replace"
    ran = run("changed_pageviews", 13)
    assert str(ran.state) == "success"
    assert states(ran)["count_rows"] == "skipped"
    assert fetched(ran) == []
    assert not (
        world.results / str(int(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()))
    ).exists()


def test_a_job_that_heartbeat_started_is_seen_to_have_succeeded(world: World) -> None:
    ran = run("report_after_revenue", 23)
    assert states(ran) == {"revenue_is_there": "success", "report": "success"}


def test_a_job_that_a_failed_run_holds_is_not_waited_for(world: World) -> None:
    sensor = HeartbeatJobSensor(task_id="waits", job="held-report", cluster=CLUSTER)
    begins = datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(AirflowFailException, match=r"held-report .* the cluster was gone; what"):
        sensor.execute({"data_interval_start": begins})
