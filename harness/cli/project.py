"""Creates a project, and prepares the Python environment: ``new`` and ``setup``."""

import os
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common import print_line
from harness.config.project import PACKAGE, link_package
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.errors import ConfigurationError, StateError

_README = """\
# Jobs that start when their data is there

A project of Heartbeat. Add a row to `seeds/heartbeat_controls.csv` for each upstream of each job:

    {header}
    delta_table,sales.orders,streaming,Orders,,,111111111,daily-revenue,UNPAUSED,TRUE

and, for a job that runs on this machine, its command to `heartbeat.yml`:

    jobs:
      target: local
      local:
        commands:
          111111111:
            name: daily-revenue
            command: [python, jobs/daily_revenue.py]

Then, in this folder (elsewhere, set HEARTBEAT_PROJECT to it):

    heartbeat validate             # check both files
    heartbeat init                 # build the tables
    heartbeat tick                 # probe once, decide, start jobs, follow runs
    heartbeat status
    heartbeat explain daily-revenue
    dbt docs generate              # plain dbt works, too

`heartbeat setup` prepares the Python environment once: Spark then starts in half the time, without
the network, and plain `dbt` finds a Java that came with `pip install 'heartbeat[java]'`.

Edit `seeds/*.csv` (but `status_transitions.csv`), `heartbeat.yml` and `profiles.yml`. State is in
`.heartbeat/`. What `.gitignore` names besides are links to the installed package, for plain `dbt`:
edit nothing there. After an upgrade of the package the next tick builds what has changed. After a
clone, or when the Python environment has moved, `heartbeat init` creates the links again.
"""
_IGNORED = """\
# Links to the installed package; `heartbeat init` creates them.
/dbt_project.yml
/selectors.yml
/log4j2.properties
/macros
/models
/tests/dbt
/seeds/*.yml
/seeds/status_transitions.csv
# State, and what tools write.
/.heartbeat/
/target/
/logs/
/dbt_packages/
.user.yml
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(new)
    app.command()(setup)


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Its folder: empty, or not there yet.")
    ],
) -> None:
    """Create a project in a folder.

    It has the controls CSV without rows, heartbeat.yml, profiles.yml, a dbt project.

    The models stay in the installed package, so that an upgrade reaches every project.

    Examples:
        python -m harness new my-project

        cd my-project && python -m harness init
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigurationError(
                f"{folder} is not empty: name a folder that is empty or not there yet"
            )
        (folder / "seeds").mkdir(parents=True, exist_ok=True)
        for name in ("heartbeat.yml", "profiles.yml"):
            shutil.copyfile(PACKAGE / name, folder / name)
        header = ",".join(COLUMNS)
        (folder / CONTROLS).write_text(f"{header}\n", encoding="utf-8")
        (folder / "README.md").write_text(_README.format(header=header), encoding="utf-8")
        (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")
    except OSError as error:
        raise StateError(f"{folder} cannot be created: {error.strerror or error}") from error
    link_package(folder.resolve())
    print_line(f"created {folder}: its README.md lists the next steps")


def setup() -> None:
    """Prepare this Python environment for Spark.

    Finds a Java, and fetches the jars of Delta and Iceberg. Optional, once for each environment:
    without it Spark resolves its packages at each start.

    Examples:
        python -m harness setup
    """
    from harness.platform.spark.setup import prepare

    try:
        # Java looks for log4j2.properties here.
        with chdir(PACKAGE):
            prepared = prepare(PACKAGE, dict(os.environ))
    except (subprocess.CalledProcessError, OSError) as error:
        raise StateError(f"This environment cannot be prepared: {error}") from error
    for sentence in prepared:
        print_line(sentence)
