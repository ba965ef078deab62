"""Lets ``python -m harness`` run the command line."""

import atexit
import os
import sys

from harness.cli import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Native threads of the Delta reader can abort an ordinary interpreter exit after all work is
    # done; what there is to flush is flushed, and the exit code is ours.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
