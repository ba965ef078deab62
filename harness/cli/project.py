"""Creates a project, and prepares the Python environment: ``new`` and ``setup``."""

import os
import shlex
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common import MODULE, print_line
from harness.cli.example import JOB_NAME, controls_text, with_command, write_example
from harness.config.project import PACKAGE, link_package
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.errors import ConfigurationError, StateError

_README = """\
# Jobs that start when their data is there

A project of Heartbeat. `seeds/heartbeat_controls.csv` has a row for each upstream of each job:

    {header}
    delta_table,sales.orders,streaming,Orders,,,111111111,daily-revenue,UNPAUSED,TRUE

A job that runs on this machine has its command in `heartbeat.yml`:

    jobs:
      target: local
      local:
        commands:
          111111111:
            name: daily-revenue
            command: [python, jobs/daily_revenue.py]
{example}
Then, in this folder (elsewhere, set HEARTBEAT_PROJECT to it):

    heartbeat validate             # check both files
    heartbeat tick                 # probe once, decide, start jobs, follow runs
    heartbeat run --every 30s      # ticks, until Ctrl-C
    heartbeat status --watch
    heartbeat explain daily-revenue
    heartbeat logs daily-revenue   # the output of its newest run
    dbt docs generate              # plain dbt works, too

`heartbeat setup` prepares the Python environment once: Spark then starts in half the time, without
the network, and plain `dbt` finds a Java that came with `pip install 'heartbeat[java]'`.

Edit `seeds/*.csv` (but `status_transitions.csv`), `heartbeat.yml` and `profiles.yml`. State is in
`.heartbeat/`. What `.gitignore` names besides are links to the installed package, for plain `dbt`:
edit nothing there. After an upgrade of the package the next tick builds what has changed. After a
clone, or when the Python environment has moved, `heartbeat init` creates the links again.
"""
_EXAMPLE = """
## The example

`data/orders` is a Delta table with three orders, and `jobs/count_orders.py` a job that reads it.
The row in the CSV has the table's absolute path: correct it when you move this folder.

    heartbeat tick                     # builds the tables, once, and starts count-orders
    heartbeat logs count-orders        # what it has printed
    python write_orders.py             # appends three orders
    heartbeat tick                     # starts it again, with one event

Let it fail, find out why, correct it, and run it again with the same event:

    python write_orders.py --broken    # one amount is negative
    heartbeat tick && heartbeat tick   # starts the job, and follows its run to the end
    heartbeat explain count-orders     # why it is held
    heartbeat logs count-orders
    # set ALLOW_NEGATIVE to True in jobs/count_orders.py, then:
    heartbeat retry count-orders --now

## Your own jobs

Replace the row and the command by yours; `data`, `jobs` and `write_orders.py` can go.
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
    empty: Annotated[
        bool, typer.Option("--empty", help="Leave the example out: a CSV without rows, no job.")
    ] = False,
) -> None:
    """Create a project with an example that works.

    It has the controls CSV, heartbeat.yml, profiles.yml, a Delta table and a job that the first
    tick starts. The models stay in the installed package, so that an upgrade reaches every project.

    Examples:
        python -m harness new my-project

        cd my-project && python -m harness tick
    """
    given, folder = folder, folder.absolute()
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigurationError(
                f"{given} is not empty: name a folder that is empty or not there yet"
            )
        (folder / "seeds").mkdir(parents=True, exist_ok=True)
        _write_project(folder, has_example=not empty)
    except OSError as error:
        raise StateError(
            f"{given} cannot be created ({error.strerror or error}): name another folder"
        ) from error
    link_package(folder.resolve())
    print_line(f"created {given}; next:")
    print_line(f"  cd {shlex.quote(str(given))}")
    if empty:
        print_line("  add your rows to seeds/heartbeat_controls.csv: README.md shows how")
    print_line(f"  {MODULE} tick" + ("" if empty else f"   # starts the job {JOB_NAME}"))


def _write_project(folder: Path, *, has_example: bool) -> None:
    header = ",".join(COLUMNS)
    settings = (PACKAGE / "heartbeat.yml").read_text(encoding="utf-8")
    if has_example:
        write_example(folder)
    texts = {
        Path("heartbeat.yml"): with_command(settings) if has_example else settings,
        CONTROLS: controls_text(folder) if has_example else f"{header}\n",
        Path("README.md"): _README.format(header=header, example=_EXAMPLE if has_example else ""),
        Path(".gitignore"): _IGNORED,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copyfile(PACKAGE / "profiles.yml", folder / "profiles.yml")


def setup() -> None:
    """Prepare this Python environment for Spark.

    Finds a Java, fetches the jars of Delta and Iceberg, archives Java's classes and parses the
    project. Optional, once for each environment: without it Spark resolves its packages at each
    start.

    Examples:
        python -m harness setup
    """
    from harness.platform.spark.setup import prepare

    try:
        # Java looks for log4j2.properties here.
        with chdir(PACKAGE):
            prepared = prepare(PACKAGE, dict(os.environ))
    except (subprocess.CalledProcessError, OSError) as error:
        raise StateError(
            f"This environment cannot be prepared ({error}): correct that, and run setup again"
        ) from error
    for sentence in prepared:
        print_line(sentence)
