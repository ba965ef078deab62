"""Keeps tables of planes, departures and carriers by `dbt build`: by key, by range, as a whole.

It is another team's dbt project, with this one as a package. It finds the tables of the bronze
layer in the same catalog.
"""

import os
from pathlib import Path

from examples.flights.jobs import lake
from harness.platform.spark.session import start_session


def main() -> None:
    """Load the run payload into the tables, and print what became of each batch."""
    tables = Path("../tables").resolve()
    # A job ends at once, and Python would warn of the locks that dbt has not released.
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"
    os.chdir("../project")
    # On this machine a job shares the Spark of the ticks; elsewhere it has a cluster of its own.
    start_session(Path.cwd(), Path(os.environ["HEARTBEAT_HOME"]))
    lake.say("; ".join(_build(tables)))


def _build(project: Path) -> list[str]:
    """Build and test all models; return what dbt reports of each of them."""
    from dbt.cli.main import dbtRunner

    places = ["--project-dir", str(project), "--profiles-dir", str(project)]
    writes = ["--target-path", str(project / "target"), "--log-path", str(project / "logs")]
    for command, written in (("deps", writes[2:]), ("build", writes)):
        answer = dbtRunner().invoke(["--quiet", command, *places, *written])
        if not answer.success:
            lake.reject(
                f"dbt {command} of the tables has failed: {answer.exception or 'see above'}"
            )
    results = getattr(answer.result, "results", [])
    return [
        f"{each.node.name} {each.message}" for each in results if each.node.resource_type == "model"
    ]


if __name__ == "__main__":
    lake.run(main)
