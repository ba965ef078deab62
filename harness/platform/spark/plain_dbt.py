"""Lets plain ``dbt`` use the engine of the state directory, when one is there.

The embedded metastore admits one process: beside an engine dbt cannot start a JVM of its own.

``setup`` copies this file to the environment, whose Pythons run it when they start as ``dbt``, in
whatever checkout. So it imports nothing but the standard library, may be older than the engine
that it finds, and leaves dbt as it is when anything is not as expected.
"""

import atexit
import contextlib
import fcntl
import json
import logging
import os
import re
import socket
import stat
import sys
import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

_PROFILE = re.compile(r"""^profile:\s*["']?([\w-]+)""", re.MULTILINE)
#: What each client of HTTP/2 sends first, and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SECONDS_TO_ANSWER = 10.0


def use_engine(
    argv: Sequence[str] | None = None, environ: MutableMapping[str, str] | None = None
) -> None:
    """Let this process use the engine, if it is dbt on the local target; never raises.

    Args:
        argv: The program and its arguments; those of the process when not given.
        environ: The variables, which get the engine's address and token.
    """
    with contextlib.suppress(Exception):
        _use_engine(sys.argv if argv is None else argv, os.environ if environ is None else environ)


def _use_engine(argv: Sequence[str], environ: MutableMapping[str, str]) -> None:
    project = _project_of(argv, environ)
    if project is None:
        return
    home = project / (environ.get("HEARTBEAT_HOME") or ".heartbeat")
    address, token = _engine_of(home / "engine")
    # Another address was set by a person.
    if not address or environ.get("SPARK_REMOTE", address) != address:
        return
    environ["SPARK_REMOTE"] = address
    environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    # The engine is on this machine, where no proxy finds it.
    direct = environ.get("no_grpc_proxy") or environ.get("no_proxy") or ""
    environ["no_grpc_proxy"] = ",".join(filter(None, [direct, "localhost"]))
    environ.setdefault("GRPC_VERBOSITY", "NONE")
    _silence_pyspark()
    atexit.register(_release_session)


def _project_of(argv: Sequence[str], environ: MutableMapping[str, str]) -> Path | None:
    """Return the folder in which dbt is to run, if it runs there on the engine's own tables."""
    is_module = argv[0] == "-m" and "dbt.cli.main" in sys.orig_argv
    if not is_module and Path(argv[0]).name != "dbt":
        return None
    target = _option(argv, "--target", "-t") or environ.get("DBT_TARGET")
    if (target or environ.get("HEARTBEAT_TARGET", "local")) != "local":
        return None
    project = _folder_of(_option(argv, "--project-dir") or environ.get("DBT_PROJECT_DIR"))
    profile = _option(argv, "--profile") or environ.get("DBT_PROFILE")
    if not profile:
        found = _PROFILE.search((project / "dbt_project.yml").read_text())
        profile = found[1] if found else ""
    return project if profile == "heartbeat" else None


def _folder_of(named: str | None) -> Path:
    """Return the folder to which dbt changes."""
    if named:
        return Path(named).absolute()
    here = Path.cwd()
    above = (each for each in (here, *here.parents) if (each / "dbt_project.yml").exists())
    return next(above, here)


def _option(argv: Sequence[str], *names: str) -> str | None:
    """Return the last value of an option, as ``--name value`` or ``--name=value``."""
    value = None
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        name, is_joined, rest = word.partition("=")
        if name in names:
            value = rest if is_joined else following
    return value


def _engine_of(folder: Path) -> tuple[str, str]:
    """Return the address and the token of a living engine, which stays while this process does."""
    if not folder.is_dir():
        return "", ""
    # Another process may just start one.
    with _shared(folder / "start.lock"):
        users = os.open(folder / "users.lock", os.O_RDWR)
        # One that is ending ends first. The process keeps the file open, and so the engine up.
        fcntl.flock(users, fcntl.LOCK_SH)
        record = _record(folder / "engine.json")
        port = int(record["port"])
        if _lives(record, "owner") and _lives(record, "server"):
            if _answers(port):
                return f"sc://localhost:{port}", str(record["token"])
            sys.stderr.write(
                f"warning: The engine of {folder.parent} does not answer, and dbt starts a"
                " Spark of its own: if that fails, run `python -m harness engine stop`\n"
            )
        os.close(users)
    return "", ""


@contextlib.contextmanager
def _shared(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _record(path: Path) -> dict[str, Any]:
    """Read a file that no other user can have written or read."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(path)
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise PermissionError(path)
        return dict(json.load(file))


def _lives(record: dict[str, Any], who: str) -> bool:
    """Return whether a process goes on, as ``process_tree.is_alive`` does."""
    pid, birth = int(record[who]), record[f"{who}_born"]
    if birth is None:
        os.kill(pid, 0)
        return True
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0] != "Z" and f"{boot}:{fields[19]}" == birth


def _answers(port: int) -> bool:
    """Return whether the server greets, which it does at once, however much it works."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS_TO_ANSWER) as client:
            client.sendall(_PREFACE)
            head = client.recv(9)
    except OSError:
        return False
    return len(head) == 9 and head[3] == 4


class _Silent(logging.Logger):
    """Takes what PySpark logs with more than a message, which no logger of Python's does."""

    def exception(self, *arguments: object, **context: object) -> None:
        """Do nothing: the error itself is raised as well."""


def _silence_pyspark() -> None:
    # It offers the server's own settings to the session, and each failed statement as JSON.
    warnings.filterwarnings("ignore", message="Failed to set spark")
    usual = logging.getLoggerClass()
    logging.setLoggerClass(_Silent)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name)
    logging.setLoggerClass(usual)


def _release_session() -> None:
    """Let the server forget the session at once, which it would keep for hours."""
    connect = sys.modules.get("pyspark.sql.connect.session")
    session = connect and connect.SparkSession._default_session
    if session:
        with contextlib.suppress(Exception):
            session.stop()
