"""Prepares the virtual environment for Spark, once: a Java, the jars, and where they are.

The command ``setup`` runs it, and so does ``make setup``. It writes only below ``sys.prefix``. With
the jars of Delta in place Spark need not resolve its packages at each start, so that plain
``dbt seed`` starts sooner, prints none of the resolver's lines and needs no network. Those of
Iceberg lie in a folder beside them, for a session that asks for rows of an Iceberg table. The
session that resolves them leaves an archive of the classes that it has loaded, with which Java
starts in half the time.
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
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from harness.errors import ConfigurationError, StateError
from harness.platform.spark.jars import ICEBERG_JARS, ICEBERG_PACKAGE, SHA256
from harness.platform.spark.java import JavaHome, find_java, java_variables, use_java
from harness.platform.spark.session import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PINNED = "harness/platform/spark/jars.py"

#: Below ``sys.prefix``.
JARS = Path("share", "heartbeat", "jars")
#: Below that: what no session loads at its start.
ICEBERG = "iceberg"
#: Beside them: the classes of a session, as Java keeps them.
ARCHIVE = JARS.with_name("classes.jsa")
#: The module that lets plain dbt use an engine, as the environment has it: the package may lie in
#: a checkout, where not every Python of the environment finds it.
PLAIN_DBT = "heartbeat_plain_dbt"
_PLAIN_DBT = Path(__file__).with_name("plain_dbt.py")
#: Work that loads most of the classes that a tick loads.
_TRAINING = (
    "create table trained using delta as select 1 as id, current_timestamp() as seen_at",
    "insert into trained select 2, null",
    "merge into trained using (select 2 as id) as new on trained.id = new.id "
    "when matched then update set seen_at = current_timestamp() when not matched then insert (id) "
    "values (new.id)",
    "create view ranked as select id, row_number() over (partition by seen_at order by id) as "
    "place, to_json(named_struct('id', id)) as content from trained",
    "select place, max_by(id, content) as id from ranked group by place",
    "describe history trained limit 1",
)

_VERSION = re.compile(r"-\d[^/]*\.jar$")


def prepare(project: Path, environ: dict[str, str]) -> list[str]:
    """Do what is left to do, and say in one line each what is there now."""
    java = _java(project, environ)
    use_java(java, os.environ)
    jars, archive = Path(sys.prefix) / JARS, Path(sys.prefix) / ARCHIVE
    copied = fetch_jars(project, jars, archive)
    size = archive.stat().st_size if archive.exists() else 0
    packages = Path(sysconfig.get_path("purelib"))
    shutil.copyfile(_PLAIN_DBT, packages / f"{PLAIN_DBT}.py")
    (packages / "heartbeat.pth").write_text(startup_line(java, archive_size=size))
    return [
        f"Java {java.version}: {java.home} ({java.source})",
        f"Delta and Iceberg: {copied} jars in {jars}",
        f"Classes: {size >> 20} MiB in {archive}" if size else "Classes: Java has left no archive",
    ]


def _java(project: Path, environ: Mapping[str, str]) -> JavaHome:
    try:
        return find_java(environ)
    except ConfigurationError:
        lock = project / "requirements-java.lock"
        if not lock.is_file():
            raise
        options = ("--quiet", "--require-hashes", "--requirement", str(lock))
        command = [sys.executable, "-m", "pip", "install", *options]
        subprocess.run(command, check=True)
        return find_java(environ)


def fetch_jars(project: Path, target: Path, archive: Path) -> int:
    """Let Spark resolve the packages, and keep the jars that Spark does not ship itself.

    Args:
        project: The folder with ``profiles.yml``, which names Delta's packages.
        target: The folder to fill; what it held before is replaced.
        archive: Where the archive of classes goes; without one sessions start more slowly.

    Raises:
        StateError: Spark does not start, the packages cannot be fetched, or a jar is not the one
            whose checksum is pinned.
    """
    resolved = _resolved_by_spark(project, archive)
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
                f"{jar.name} has no checksum in {PINNED}; if this version is meant, add its"
                f" SHA-256: {found}"
            )
        if found != pinned[jar.name]:
            raise StateError(
                f"{jar} has the SHA-256 {found}, but {PINNED} pins {pinned[jar.name]};"
                " remove the file, check the repository that served it, and run `make setup` again"
            )


def _resolved_by_spark(project: Path, archive: Path) -> list[Path]:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with _captured_stderr() as text, tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        fresh = Path(folder) / archive.name
        try:
            session, java = _training_session(project, Path(folder), fresh)
            listed = session.sparkContext.getConf().get("spark.jars") or ""
            for statement in _TRAINING:
                session.sql(statement).collect()
        except Exception as error:
            reason = _reason(text.read_text(errors="replace")) or str(error)
            raise StateError(f"Spark cannot fetch and use the jars of Delta: {reason}") from error
        session.stop()
        archive.unlink(missing_ok=True)
        # Java writes the archive when it ends, which it does once its input is closed.
        java.communicate()
        if java.returncode == 0 and fresh.exists():
            # Half of one would crash Java: it has its name when it is complete.
            fresh.replace(archive)
    return [Path(unquote(urlparse(address).path)) for address in listed.split(",") if address]


def _training_session(
    project: Path, home: Path, archive: Path
) -> "tuple[SparkSession, subprocess.Popen[bytes]]":
    """Start a session with the settings of every other one, which fetches its jars."""
    from pyspark.sql import SparkSession

    for name in ("HEARTBEAT_DELTA_JARS", "HEARTBEAT_MORE_JARS", "HEARTBEAT_CLASS_ARCHIVE"):
        os.environ.pop(name, None)
    os.environ["HEARTBEAT_HOME"] = str(home)
    settings = session_settings(project)
    del settings["spark.jars"]
    settings["spark.jars.packages"] += f",{ICEBERG_PACKAGE}"
    settings["spark.driver.extraJavaOptions"] += f' "-XX:ArchiveClassesAtExit={archive}"'
    builder = SparkSession.builder.enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    return session, gateway.proc


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    informative = [line for line in lines if "Exception" in line or "unresolved" in line.lower()]
    return informative[0] if informative else ""


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


def startup_line(java: JavaHome, *, archive_size: int = 0) -> str:
    """Return the line that each Python of this environment runs when it starts.

    It sets where plain ``dbt`` finds the jars, the archive of classes and, where the machine has no
    Java, which one to use. What a person has set already stays as it is. For dbt alone it looks
    for an engine.

    Args:
        java: The Java that sessions run on.
        archive_size: The bytes of the archive; one of another size is damaged, and is not used.
    """
    statements = ["import os, sys"]
    for name, jars in (("HEARTBEAT_DELTA_JARS", JARS), (ICEBERG_JARS, JARS / ICEBERG)):
        pattern = f"os.path.join(sys.prefix, {str(jars / '*.jar')!r})"
        statements.append(f"os.environ.setdefault({name!r}, {pattern})")
    if archive_size:
        path = f"os.path.join(sys.prefix, {str(ARCHIVE)!r})"
        is_complete = f"os.path.isfile({path}) and os.path.getsize({path}) == {archive_size}"
        variable = f"os.environ.setdefault('HEARTBEAT_CLASS_ARCHIVE', {path})"
        statements.append(f"{is_complete} and {variable}")
    if java.packaged:
        statements += [
            f"os.environ.setdefault({name!r}, {value!r})"
            for name, value in java_variables(java).items()
        ]
    is_dbt = "{'dbt', 'dbt.cli.main'} & set(map(os.path.basename, sys.orig_argv))"
    statements.append(f"{is_dbt} and __import__({PLAIN_DBT!r}).use_engine()")
    return "; ".join(statements) + "\n"
