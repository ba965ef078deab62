"""Runs one command of Heartbeat as the task of a Databricks job.

Such a file is run inside a process of the cluster that goes on afterwards: it does not know
where it lies, and must not end that process.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    """Run a command.

    Args:
        arguments: The folder of the project, then the command line.

    Raises:
        SystemExit: The command ended with another code than 0, so that the task fails.
    """
    project, *command = arguments
    if project not in sys.path:
        sys.path.insert(0, project)
    from harness.cli import app as cli

    code = cli.main(command)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
