"""Prepares the virtual environment for Spark, once: a Java, the jars, and where they are.

The command ``setup`` runs it, and so does ``make setup``. It writes only below ``sys.prefix``. With
the jars of Delta in place Spark need not resolve its packages at each start, so that plain
``dbt seed`` starts sooner, prints none of the resolver's lines and needs no network. Those of
Iceberg lie beside them, for the rows of Iceberg tables. A jar of two empty files keeps settings out
of Spark that it never reads. An engine that works a little leaves an archive of the classes that it
has loaded, with which every Java that runs Spark starts in half the time. Meanwhile dbt parses the
project, which a new state directory then need not do.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlparse

from harness.errors import ConfigurationError, DecideError, StateError
from harness.platform.clock import RealClock
from harness.platform.dbt import PARSED, Dbt
from harness.platform.process_tree import is_alive
from harness.platform.spark.engine import (
    THROUGH_KERNEL,
    LocalEngine,
    Wanted,
    engine_folder,
    forget_session,
    session_beside,
)
from harness.platform.spark.jars import ICEBERG_PACKAGE, SHA256
from harness.platform.spark.java import (
    JavaHome,
    find_java,
    java_variables,
    require_pyspark,
    use_java,
)
from harness.platform.spark.session import engine_settings, message_of, session_settings

PINNED = "harness/platform/spark/jars.py"

#: Below ``sys.prefix``.
JARS = Path("share", "heartbeat", "jars")
#: Beside them: the classes of a session, as Java keeps them.
ARCHIVE = JARS.with_name("classes.jsa")
#: First on Java's class path: what Hadoop takes for the defaults of YARN and MapReduce. It loads
#: 714 of them, and each scan and each write of Spark would compress and serialize them all.
DEFAULTS = JARS.with_name("hadoop-defaults.jar")
_EMPTY = ("yarn-default.xml", "mapred-default.xml")
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
    "describe history trained limit 1",
)
_TRAINING_TO_READ = "select place, max_by(id, content) as id from ranked group by place"

#: A program that needs no Spark.
_VERSION_INFO = "org.apache.hadoop.util.VersionInfo"
#: What Spark's launcher prints of the jars that it has resolved.
_LISTED = re.compile(r"^\(spark\.jars,(.+)\)$", re.MULTILINE)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
#: In less time than the owner takes for a server that has frozen.
_SECONDS_TO_WRITE = 70.0
_VERSION = re.compile(r"-\d[^/]*\.jar$")


def prepare(project: Path, environ: dict[str, str]) -> list[str]:
    """Do what is left to do, and return in one line each what is there now."""
    require_pyspark()
    java = _java(project, environ)
    use_java(java, os.environ)
    jars, archive = Path(sys.prefix) / JARS, Path(sys.prefix) / ARCHIVE
    copied = fetch_jars(project, jars)
    write_defaults(jars.with_name(DEFAULTS.name))
    with ThreadPoolExecutor(max_workers=1) as pool:
        parsing = pool.submit(parse_project, project, Path(sys.prefix) / PARSED)
        size = archive.stat().st_size if archive_classes(project, jars, archive) else 0
        parsed = parsing.result()
    packages = Path(sysconfig.get_path("purelib"))
    shutil.copyfile(_PLAIN_DBT, packages / f"{PLAIN_DBT}.py")
    (packages / "heartbeat.pth").write_text(startup_line(java, archive_size=size))
    return [
        f"Java {java.version}: {java.home} ({java.source})",
        f"Delta and Iceberg: {copied} jars in {jars}",
        f"Classes: {size >> 20} MiB in {archive}" if size else "Classes: Java has left no archive",
        f"Models: {parsed}",
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


def fetch_jars(project: Path, target: Path) -> int:
    """Let Spark resolve the packages, and keep the jars that Spark does not ship itself.

    Args:
        project: The folder with ``profiles.yml``, which names Delta's packages.
        target: The folder to fill; what it held before is replaced.

    Raises:
        StateError: The packages cannot be fetched, or a jar is not the one whose checksum is
            pinned.
    """
    settings = session_settings(project, {})
    del settings["spark.jars"]
    settings["spark.jars.packages"] += f",{ICEBERG_PACKAGE}"
    resolved = resolved_jars(_submit(project, settings, "--verbose").stderr)
    wanted = missing_jars(resolved, (_spark_home() / "jars").glob("*.jar"))
    check_jars(wanted)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        for jar in wanted:
            shutil.copy2(jar, temporary)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(temporary, target)
    return len(wanted)


def resolved_jars(said: str) -> list[Path]:
    """Read from the output of Spark's launcher which jars it has resolved.

    Raises:
        StateError: It has resolved none.
    """
    listed = _LISTED.search(said)
    if listed is None:
        raise StateError(
            f"Spark cannot fetch the jars of Delta and Iceberg: {_reason(said)}; check that the"
            " package repository can be reached"
        )
    return [Path(unquote(urlparse(address).path)) for address in listed[1].split(",")]


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


def write_defaults(jar: Path) -> None:
    """Write the jar that replaces Hadoop's defaults of YARN and MapReduce by none."""
    with zipfile.ZipFile(jar, "w") as content:
        for name in _EMPTY:
            content.writestr(name, "<configuration/>\n")


def archive_classes(project: Path, jars: Path, archive: Path) -> bool:
    """Let an engine work, and keep the classes that it has loaded, if Java can use them.

    Args:
        project: The folder with ``profiles.yml``.
        jars: The folder of the jars, beside which Hadoop's empty defaults lie.
        archive: Where the archive goes; what was there before is removed.

    Raises:
        StateError: The engine does not start or fails.
    """
    archive.unlink(missing_ok=True)
    defaults = jars.with_name(DEFAULTS.name)
    own = {"HEARTBEAT_DELTA_JARS": str(jars / "*.jar"), "HEARTBEAT_HADOOP_DEFAULTS": str(defaults)}
    environ = {**os.environ, **own}
    for name in ("HEARTBEAT_MORE_JARS", "HEARTBEAT_CLASS_ARCHIVE"):
        environ.pop(name, None)
    with tempfile.TemporaryDirectory(dir=archive.parent) as temporary:
        home, fresh = Path(temporary), Path(temporary) / archive.name
        settings = engine_settings(project, home, environ=environ)
        settings[_JAVA_OPTIONS] += f' "-XX:ArchiveClassesAtExit={fresh}"'
        _train(
            LocalEngine(home, Wanted(project=project, settings=settings, idle_seconds=None)), home
        )
        # Half of one would crash Java: it gets its name once it is verified to be complete.
        if not can_use(project, fresh, defaults):
            return False
        fresh.replace(archive)
    return True


def parse_project(project: Path, kept: Path) -> str:
    """Let dbt parse the project for the local target; return where the result is, or why not.

    Args:
        project: The folder with ``dbt_project.yml``.
        kept: Where what dbt keeps of it goes; what was there before is removed.
    """
    kept.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        home = Path(temporary)
        try:
            Dbt(project, home, target="local", before=lambda: None).parse()
        except DecideError as error:
            return f"not parsed: {error}"
        (home / "target" / kept.name).replace(kept)
    return f"parsed, in {kept}"


def can_use(project: Path, archive: Path, defaults: Path) -> bool:
    """Return whether Java starts Spark from an archive, which must be there and complete.

    Args:
        project: The folder with ``profiles.yml``.
        archive: The file.
        defaults: The jar of Hadoop's empty defaults that was on the class path.
    """
    options = f'-Xshare:on -XX:+VerifySharedSpaces "-XX:SharedArchiveFile={archive}"'
    # Where it crashes, it leaves a report.
    options += " -XX:ErrorFile=/dev/null -XX:-CreateCoredumpOnCrash"
    settings = {_JAVA_OPTIONS: options, _CLASS_PATH: str(defaults)}
    return archive.exists() and not _submit(project, settings).returncode


def _train(engine: LocalEngine, home: Path) -> None:
    """Let an engine work, and wait until its server has ended by itself."""
    session = engine.session()
    try:
        for statement in _TRAINING:
            session.sql(statement).collect()
        reader = session_beside(session, THROUGH_KERNEL)
        reader.sql(_TRAINING_TO_READ).collect()
        forget_session(reader)
    except Exception as error:
        raise StateError(
            f"Spark cannot use the jars of Delta: {message_of(error)}; run the set-up again"
        ) from error
    else:
        session.stop()
        record, clock = engine_folder(home).record(), RealClock()
        assert record is not None
        # Java writes the archive when it ends, for which the owner would not wait.
        os.kill(record.server, signal.SIGTERM)
        until = clock.now().timestamp() + _SECONDS_TO_WRITE
        while is_alive(record.server, record.server_born) and clock.now().timestamp() < until:
            clock.sleep(0.1)
    finally:
        engine.leave()


def _submit(
    project: Path, settings: Mapping[str, str], *options: str
) -> "subprocess.CompletedProcess[str]":
    """Let Spark's launcher do its work for a program that only prints a version."""
    arguments = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    program = [str(_spark_home() / "bin" / "spark-submit"), *options, *arguments]
    return subprocess.run(
        [*program, "--class", _VERSION_INFO, "spark-internal"],
        cwd=project,
        env={**os.environ, "SPARK_HOME": str(_spark_home())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    informative = [line for line in lines if "Exception" in line]
    return (informative or lines or ["its launcher ended without a message"])[0]


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
    pattern = f"os.path.join(sys.prefix, {str(JARS / '*.jar')!r})"
    statements.append(f"os.environ.setdefault('HEARTBEAT_DELTA_JARS', {pattern})")
    defaults = f"os.path.join(sys.prefix, {str(DEFAULTS)!r})"
    statements.append(f"os.environ.setdefault('HEARTBEAT_HADOOP_DEFAULTS', {defaults})")
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
