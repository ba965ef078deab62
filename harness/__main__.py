"""Runs the command line: for ``python -m harness``, for ``heartbeat``, and as a task of a job."""

import atexit
import gc
import logging
import os
import signal
import sys

from harness.platform.stopping import INTERRUPTED


def _run() -> int:
    try:
        # SIGTERM ends every command as Ctrl-C does; those that write have a handler of their own.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from harness.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("stopped before anything began\n")
        return INTERRUPTED


def main() -> None:
    """Run the command line and end the process."""
    collect_seldom()
    code = _run()
    # Native threads of the Delta reader can abort an ordinary interpreter exit after all work is
    # done; what there is to flush is flushed, and the exit code is ours.
    if code == INTERRUPTED:
        # A call that was broken off may leave what the others end waiting for ever.
        logging.shutdown()
    else:
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def collect_seldom() -> None:
    """Let Python search for unreachable cycles less often than each 700 objects.

    Rows of a ledger and the nodes of dbt are many objects and no garbage: searching them is a
    seventh of the time that a start with 100,000 events takes, and a twentieth of that to parse a
    project.
    """
    gc.set_threshold(50_000, 10, 10)


def task() -> None:
    """Run the command line as a task of a Databricks job, within a process that goes on afterwards.

    Raises:
        SystemExit: The command ended with another code than 0, so that the task fails.
    """
    from harness.cli.app import main

    if code := main(sys.argv[1:]):
        raise SystemExit(code)


if __name__ == "__main__":
    main()
