"""A real Kafka broker for tests, in one JVM: fetched once by Maven, started on free ports."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from confluent_kafka.admin import AdminClient

from harness.errors import ConfigurationError
from harness.platform.spark.java import find_java
from tests.support.services.processes import is_stopped

POM = Path(__file__).with_name("pom.xml")
USER, PASSWORD = "heartbeat", "not-a-secret"

_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
_START_SECONDS = 60
_JVM = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = """
status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
"""
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAIN
listeners=PLAIN://127.0.0.1:{plain},LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAIN://127.0.0.1:{plain},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=PLAIN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config={jaas}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
log.dirs={folder}/data
auto.create.topics.enable=true
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=300
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.dedupe.buffer.size=4194304
"""
_JAAS = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
)


class NoBrokerError(Exception):
    """A broker cannot be had here; its message is the reason in one sentence."""


def broker_jars() -> Path:
    """Return the folder with the broker's jars; fetch them the first time.

    Raises:
        NoBrokerError: They are not there, and Maven is not, or cannot fetch them.
    """
    digest = sha256(POM.read_bytes()).hexdigest()[:12]
    jars = Path(sys.prefix, "share", "heartbeat", "services", f"kafka-{digest}")
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBrokerError("Kafka's broker is fetched by Maven, and there is no mvn here.")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as part:
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
             f"-DoutputDirectory={part}/jars", "-DincludeScope=runtime"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NoBrokerError("Maven cannot fetch Kafka's broker from its repository.")
        with contextlib.suppress(OSError):  # another process was quicker
            Path(part, "jars").rename(jars)
    return jars


class Broker:
    """One broker that can be killed, frozen and started again, with its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jars = broker_jars()
        try:
            self._java = Path(find_java(os.environ).home, "bin", "java")
        except ConfigurationError as error:
            raise NoBrokerError(f"A broker needs a Java: {error}") from error
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}

    @property
    def address(self) -> str:
        """The address for clients without a login."""
        return f"127.0.0.1:{self._ports['plain']}"

    @property
    def login_address(self) -> str:
        """The address for clients that log in as ``USER`` with ``PASSWORD``."""
        return f"127.0.0.1:{self._ports['login']}"

    def create(self) -> "Broker":
        """Start for the first time; once more if somebody else has taken a port meanwhile."""
        self._prepare()
        try:
            self.start()
        except NoBrokerError:
            self._prepare()
            self.start()
        return self

    def start(self) -> None:
        """Start, and wait until it answers."""
        log = (self._folder / "log").open("ab")
        command = [
            *_JVM,
            f"-Dlog4j2.configurationFile=file:{self._folder}/log4j2.properties",
            "-cp", f"{self._jars}/*", "kafka.Kafka", f"{self._folder}/server.properties",
        ]  # fmt: skip
        with log:
            self._process = subprocess.Popen(
                [self._java, *command],
                cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        _until(self._is_ready, "Kafka's broker does not start; see its log")

    def kill(self) -> None:
        """End at once, as a machine does that loses its power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def start_again(self) -> None:
        """Start unless it runs."""
        if self._process is None:
            self.start()

    def freeze(self) -> None:
        """Go on accepting connections, and answer none."""
        self._signal(signal.SIGSTOP)

    @property
    def is_frozen(self) -> bool:
        """Whether it answers nobody now."""
        return self._process is not None and is_stopped(self._process.pid)

    def thaw(self) -> None:
        """Answer again, and wait until it does."""
        self._signal(signal.SIGCONT)
        _until(self._is_ready, "Kafka's broker does not go on; see its log")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _prepare(self) -> None:
        self.kill()
        shutil.rmtree(self._folder / "data", ignore_errors=True)
        names = ("plain", "login", "controller")
        self._ports = dict(zip(names, _free_ports(len(names)), strict=True))
        properties = _PROPERTIES.format(folder=self._folder, jaas=_JAAS, **self._ports)
        (self._folder / "server.properties").write_text(properties)
        (self._folder / "log4j2.properties").write_text(_LOGGING)
        subprocess.run(
            [self._java, *_JVM, "-cp", f"{self._jars}/*", "kafka.tools.StorageTool", "format",
             "-t", _CLUSTER_ID, "-c", f"{self._folder}/server.properties"],
            stdin=subprocess.DEVNULL, capture_output=True, check=True,
        )  # fmt: skip

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise NoBrokerError("Kafka's broker has ended; see its log.")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self._ports["plain"]), timeout=1).close()
            admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
            with contextlib.suppress(Exception):
                known = admin.list_topics(timeout=5)
                partitions = [p for t in known.topics.values() for p in t.partitions.values()]
                return bool(known.brokers) and all(each.leader >= 0 for each in partitions)
        return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise NoBrokerError(f"{what}.")
        time.sleep(0.1)
