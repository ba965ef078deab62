"""Prepares the virtual environment for Spark, once: a Java, the jars, and where they are.

``make setup`` runs it as ``python -m harness.prepare``. It writes only below ``sys.prefix``. With
the jars of Delta in place Spark need not resolve its packages at each start, so that plain
``dbt seed`` starts sooner, prints none of the resolver's lines and needs no network. Those of
Iceberg lie in a folder beside them, for a session that asks for rows of an Iceberg table.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from harness.errors import ConfigurationError, HeartbeatError, StateError
from harness.jars import ICEBERG_JARS, ICEBERG_PACKAGE, SHA256
from harness.java import JavaHome, find_java, java_variables, use_java
from harness.spark import session_settings

PROJECT = Path(__file__).resolve().parent.parent

#: Below ``sys.prefix``.
JARS = Path("share", "heartbeat", "jars")
#: Below that: what no session loads at its start.
ICEBERG = "iceberg"

_VERSION = re.compile(r"-\d[^/]*\.jar$")


def prepare(project: Path, environ: dict[str, str]) -> list[str]:
    """Do what is left to do, and say in one line each what is there now."""
    java = _java(project, environ)
    use_java(java, os.environ)
    jars = Path(sys.prefix) / JARS
    copied = fetch_jars(f"{_packages(project, environ)},{ICEBERG_PACKAGE}", jars)
    startup = Path(sysconfig.get_path("purelib")) / "heartbeat.pth"
    startup.write_text(startup_line(java))
    return [
        f"Java {java.version}: {java.home} ({java.source})",
        f"Delta and Iceberg: {copied} jars in {jars}",
    ]


def _java(project: Path, environ: Mapping[str, str]) -> JavaHome:
    try:
        return find_java(environ)
    except ConfigurationError:
        lock = str(project / "requirements-java.lock")
        options = ("--quiet", "--require-hashes", "--requirement", lock)
        command = [sys.executable, "-m", "pip", "install", *options]
        subprocess.run(command, check=True)
        return find_java(environ)


def _packages(project: Path, environ: dict[str, str]) -> str:
    """Read which packages Spark would resolve if there were no jars yet."""
    environ.pop("HEARTBEAT_DELTA_JARS", None)
    os.environ.pop("HEARTBEAT_DELTA_JARS", None)
    return session_settings(project)["spark.jars.packages"]


def fetch_jars(packages: str, target: Path) -> int:
    """Let Spark resolve the packages, and keep the jars that Spark does not ship itself.

    Args:
        packages: Maven coordinates, as ``spark.jars.packages`` wants them.
        target: The folder to fill; what it held before is replaced.

    Raises:
        StateError: Spark does not start, the packages cannot be fetched, or a jar is not the one
            whose checksum is pinned.
    """
    resolved = _resolved_by_spark(packages)
    import pyspark

    shipped = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    wanted = missing_jars(resolved, shipped)
    check_jars(wanted)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        for jar in wanted:
            folder = folder_of(jar, Path(temporary))
            folder.mkdir(exist_ok=True)
            shutil.copy2(jar, folder)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(temporary, target)
    return len(wanted)


def folder_of(jar: Path, jars: Path) -> Path:
    """Return the folder of a resolved jar: Iceberg's lie apart."""
    group = ICEBERG_PACKAGE.partition(":")[0]
    return jars / ICEBERG if jar.name.startswith(f"{group}_") else jars


def missing_jars(resolved: Iterable[Path], shipped: Iterable[Path]) -> list[Path]:
    """Return the resolved jars whose artifact is not shipped, in whatever version.

    Spark loads its own jars first, so another version of one of them would never be used.
    """
    present = {_VERSION.sub("", jar.name) for jar in shipped}
    return sorted(
        jar for jar in resolved if _VERSION.sub("", jar.name.partition("_")[2]) not in present
    )


def check_jars(jars: Iterable[Path], pinned: Mapping[str, str] = SHA256) -> None:
    """Refuse a jar that is not the one that was pinned.

    Raises:
        StateError: A jar has another checksum, or none is pinned for its name.
    """
    for jar in jars:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if jar.name not in pinned:
            raise StateError(
                f"{jar.name} has no checksum in harness/jars.py; if this version is meant, add its"
                f" SHA-256: {found}"
            )
        if found != pinned[jar.name]:
            raise StateError(
                f"{jar} has the SHA-256 {found}, but harness/jars.py pins {pinned[jar.name]};"
                " remove the file, check the repository that served it, and run `make setup` again"
            )


def _resolved_by_spark(packages: str) -> list[Path]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.jars.packages", packages)
    with _captured_stderr() as said:
        try:
            session = builder.config("spark.ui.enabled", "false").getOrCreate()
        except Exception as error:
            reason = _reason(said.read_text(errors="replace")) or str(error)
            raise StateError(f"Spark cannot fetch {packages}: {reason}") from error
        listed = session.sparkContext.getConf().get("spark.jars") or ""
        session.stop()
    return [Path(unquote(urlparse(address).path)) for address in listed.split(",") if address]


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if "Exception" in line or "unresolved" in line.lower()]
    return telling[0] if telling else ""


@contextlib.contextmanager
def _captured_stderr() -> Iterator[Path]:
    """Send what this process and the JVM write to the error stream to a file."""
    with tempfile.NamedTemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield Path(file.name)
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def startup_line(java: JavaHome) -> str:
    """Return the line that each Python of this environment runs when it starts.

    It tells plain ``dbt`` where the jars are and, where the machine has no Java, which one to use.
    What a person has set already stays as it is.
    """
    statements = ["import os, sys"]
    for name, jars in (("HEARTBEAT_DELTA_JARS", JARS), (ICEBERG_JARS, JARS / ICEBERG)):
        pattern = f"os.path.join(sys.prefix, {str(jars / '*.jar')!r})"
        statements.append(f"os.environ.setdefault({name!r}, {pattern})")
    if java.packaged:
        statements += [
            f"os.environ.setdefault({name!r}, {value!r})"
            for name, value in java_variables(java).items()
        ]
    return "; ".join(statements) + "\n"


def main() -> int:
    """Prepare the environment of the running Python."""
    try:
        lines = prepare(PROJECT, dict(os.environ))
    except (HeartbeatError, subprocess.CalledProcessError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
