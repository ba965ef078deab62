"""Records the picture of the README: what real commands print in a new project, as an SVG.

    .venv/bin/python docs/picture.py

It creates a project, ticks until its jobs have run, adds data to one of two tables, and draws what
a terminal of 100 columns shows.
"""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from rich.console import Console
from rich.text import Text

from harness.platform.clock import RealClock

ROOT = Path(__file__).resolve().parent.parent
PICTURE = Path(__file__).with_name("terminal.svg")
COLUMNS = 100
#: The project, whose path the picture shows.
FOLDER = Path("/tmp/shop")
#: A second job, which needs two tables.
ROWS = """\
delta_table,/tmp/shop/data/orders,streaming,Orders of the shop,,,102,match-returns,UNPAUSED,TRUE
delta_table,/tmp/shop/data/returns,streaming,Returns of the shop,,,102,match-returns,UNPAUSED,TRUE
"""
COMMAND = """\
      102: {name: match-returns, command: ["true"]}
"""
SHOWN = (("tick",), ("status",), ("explain", "match-returns"))


def run(folder: Path, *arguments: str) -> str:
    """Run a command of the harness at a terminal, and return what it prints there."""
    reader, terminal = pty.openpty()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
        "HEARTBEAT_HOME": str(folder / ".heartbeat"),
    }
    # Answers go to the terminal; progress, which would be drawn over, does not.
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    )
    os.close(terminal)
    found = b""
    try:
        while part := os.read(reader, 65_536):
            found += part
    except OSError:
        # The last process at the terminal has gone.
        pass
    process.wait()
    return found.decode().replace("\r\n", "\n")


def main() -> None:
    """Record the commands and write the picture."""
    if FOLDER.exists():
        raise SystemExit(f"{FOLDER} is there already: remove it first")
    try:
        console = recorded()
    finally:
        run(FOLDER, "engine", "stop")
        run(FOLDER, "jobs-api", "--stop")
        shutil.rmtree(FOLDER)
    # Its font would come from the network.
    drawing = re.sub(r"@font-face {.*?}", "", console.export_svg(title="heartbeat"), flags=re.S)
    PICTURE.write_text(drawing)


def recorded() -> Console:
    """Set the scene, and run what is shown."""
    run(FOLDER.parent, "new", FOLDER.name)
    with (FOLDER / "seeds" / "heartbeat_controls.csv").open("a") as controls:
        controls.write(ROWS)
    configuration = FOLDER / "heartbeat.yml"
    text = configuration.read_text()
    configuration.write_text(text.replace("    commands:\n", f"    commands:\n{COMMAND}"))
    write_deltalake(FOLDER / "data" / "returns", pa.table({"order_id": [1]}))
    run(FOLDER, "tick")
    RealClock().sleep(5)
    run(FOLDER, "tick")
    subprocess.run([sys.executable, "write_orders.py"], cwd=FOLDER, check=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    for arguments in SHOWN:
        console.print(Text(f"$ heartbeat {' '.join(arguments)}", style="bold"))
        printed = run(FOLDER, *arguments).replace("python -m harness", "heartbeat")
        console.print(Text.from_ansi(printed))
    return console


if __name__ == "__main__":
    main()
