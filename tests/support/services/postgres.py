"""A PostgreSQL of its own for the tests: a private cluster on a free port, gone afterwards."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.support.services.processes import is_stopped

_BINARIES = Path("/usr/lib/postgresql")
_OPTIONS = (
    "-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    " -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"
    " -c max_connections=500"
)


class NoPostgresError(Exception):
    """PostgreSQL cannot be had here."""


class Postgres:
    """One server with one superuser, ``test``."""

    def __init__(self) -> None:
        self._bin = _newest_binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="heartbeat-postgres-"))
        # The server refuses to run as root.
        self._as: dict[str, object] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._port = _free_port()
        self._run(
            "initdb", "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"
        )

    @property
    def url(self) -> str:
        """The JDBC address of its database."""
        return f"jdbc:postgresql://127.0.0.1:{self._port}/postgres?user=test"

    def start(self) -> None:
        """Start, on the same port as before."""
        options = f"-p {self._port} {_OPTIONS}"
        self._run(
            "pg_ctl", "-w", "-t", "30", "-l", str(self._folder / "log"), "-o", options, "start"
        )

    def stop(self) -> None:
        """Stop without waiting for anybody; what was committed stays."""
        self._run("pg_ctl", "-m", "fast", "-w", "stop")

    def freeze(self) -> None:
        """Let every process of it stand still: it takes connections, and never answers."""
        self._signal(signal.SIGSTOP)

    @property
    def is_frozen(self) -> bool:
        """Whether every process of it stands still now."""
        return all(map(is_stopped, self._processes))

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """Stop it, whatever state it is in, and take its files away."""
        if (self._folder / "data" / "postmaster.pid").exists():
            self.thaw()
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        for each in self._processes:
            os.kill(each, number)

    @property
    def _processes(self) -> list[int]:
        first = int((self._folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, "-D", self._folder / "data", *arguments],
            cwd=self._folder,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL,
            stdout=(out := (self._folder / "out").open("w")),
            stderr=out,
            check=False,
            **self._as,  # type: ignore[call-overload]
        )
        out.close()
        if done.returncode:
            raise NoPostgresError(f"{program}: {(self._folder / 'out').read_text().strip()}")


def run_script(url: str, text: str) -> None:
    """Run statements with the server's own client, which needs no JVM; one transaction each."""
    subprocess.run(
        [
            _newest_binaries() / "psql",
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            url.removeprefix("jdbc:"),
        ],
        input=text,
        text=True,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def postgres_driver() -> Path:
    """Return the driver's jar, fetched by Maven into its own cache where it is not there yet."""
    name = "postgresql-42.7.14.jar"
    jar = Path.home() / ".m2/repository/org/postgresql/postgresql/42.7.14" / name
    if not jar.exists():
        if shutil.which("mvn") is None:
            raise NoPostgresError("there is no Maven to fetch PostgreSQL's driver with")
        artifact = "-Dartifact=org.postgresql:postgresql:42.7.14"
        command = ["mvn", "-q", "-B", "dependency:get", artifact, "-Dtransitive=false"]
        subprocess.run(command, check=False, capture_output=True, timeout=240)
    if not jar.exists():
        raise NoPostgresError("Maven cannot fetch PostgreSQL's driver")
    return jar


def _newest_binaries() -> Path:
    found = sorted(_BINARIES.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found:
        raise NoPostgresError(f"no PostgreSQL is installed under {_BINARIES}")
    return found[-1].parent


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
