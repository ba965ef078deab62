"""Serves the emulator: ``python -m harness.platform.jobs_emulator HOME IDLE_MINUTES``."""

import logging
import sys
from pathlib import Path

from harness.errors import HeartbeatError
from harness.platform.jobs_emulator.service import ServiceSettings, serve

_SECONDS_FOR_AN_ENDING_SERVER = 15.0


def main() -> int:
    """Serve the state directory of the first argument, and return the process's exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    home, idle_minutes = sys.argv[1:3]
    try:
        serve(
            ServiceSettings(
                home=Path(home),
                idle_minutes=float(idle_minutes),
                patience_seconds=_SECONDS_FOR_AN_ENDING_SERVER,
            )
        )
    except HeartbeatError as error:
        logging.error("%s", error)
        return int(error.exit_code)
    return 0


sys.exit(main())
