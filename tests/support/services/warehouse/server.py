"""A SQL warehouse of a workspace, over a real socket, in front of the Spark of the tests.

The connector and dbt-databricks reach it as they reach a workspace: by TLS at `https://workspace.test`, port 443. No
test can listen there and the name does not exist, so this server is also the proxy of the environment (`HTTPS_PROXY`):
a client connects through it to the workspace, and finds its certificate signed by an authority that the environment
names, too. No option of the connector or of the profile is one of these tests alone.

What it proves is the adapter, the connector, their login and their retries, and our own SQL. What it does not prove is
what Databricks makes of a statement: Spark and Delta are those of the open source. The words of errors are those that
Databricks documents; those of a warehouse that is starting or stopped, and of a refused feature, are guesses.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from databricks.sql.thrift_api.TCLIService import TCLIService
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from harness.platform.clock import Clock, RealClock
from harness.platform.jobs_emulator.api.responses import ApiError
from tests.support.jobs_emulator.logins import SERVER_PATH, TOKEN_PATH, Logins
from tests.support.services.warehouse.sessions import Denied, Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "workspace.test"
TOKEN = "dapi-of-the-tests"
CLIENT, SECRET = "heartbeat-of-the-tests", "dose-secret-of-the-tests"
WAREHOUSE_PATH = "/sql/1.0/warehouses/feed0001"
CLUSTER_PATH = "/sql/protocolv1/o/1/0001-cluster"


class When(StrEnum):
    """When a connection is lost: before the statement runs, or before its answer arrives."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True)
class Drop:
    """Loses the connection of requests.

    Attributes:
        when: Before or after the request is served.
        method: The thrift method, such as ``ExecuteStatement``.
        containing: Only of statements with this text.
        times: How many requests; each one counts down.
    """

    when: When
    method: str = "ExecuteStatement"
    containing: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is no answer of the thrift service."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Warehouse:
    """The workspace and its one warehouse; a cluster is there as well, at its own path.

    Args:
        spark: The Spark behind it.
        folder: For its certificates.
        catalog: The name of the one catalog.
        version: The runtime that the cluster's path reports, such as ``15.4.x-scala2.12``.
        clock: For the end of logins.
        login_seconds: How long a login by OAuth lasts.
    """

    def __init__(
        self,
        spark: "SparkSession",
        folder: Path,
        *,
        catalog: str = "prod-eu",
        version: str | None = None,
        clock: Clock | None = None,
        login_seconds: float = 3600.0,
    ) -> None:
        self.catalog = catalog
        self.drops: list[Drop] = []
        self.denied: list[Denied] = []
        self.tokens = {TOKEN}
        self.logins = Logins(
            {CLIENT: SECRET},
            clock or RealClock(),
            login_seconds,
            issuer=f"https://{HOST}/oidc",
        )
        self.sessions = Sessions(spark, catalog, version=version, denied=self.denied)
        #: The thrift methods that were called, in their order.
        self.calls: list[str] = []
        self._refusals: Callable[[], Refusal | None] = lambda: None
        self._processor = TCLIService.Processor(self.sessions)
        self._authority, certificate = _certificates(folder)
        self._server = _Server(self, certificate)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def statements(self) -> list[str]:
        """The statements that came."""
        return self.sessions.statements

    def variables(self, *, path: str = WAREHOUSE_PATH, by_oauth: bool = False) -> dict[str, str]:
        """Return the environment of a process that uses the warehouse."""
        proxy = f"http://127.0.0.1:{self._server.server_address[1]}"
        login = (
            {"DATABRICKS_CLIENT_ID": CLIENT, "DATABRICKS_CLIENT_SECRET": SECRET}
            if by_oauth
            else {"DATABRICKS_TOKEN": TOKEN}
        )
        return {
            "HEARTBEAT_TARGET": "databricks",
            "HEARTBEAT_CATALOG": self.catalog,
            "DATABRICKS_HOST": f"https://{HOST}",
            "DATABRICKS_HTTP_PATH": path,
            "HTTPS_PROXY": proxy,
            "https_proxy": proxy,
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
            "SSL_CERT_FILE": str(self._authority),
            "REQUESTS_CA_BUNDLE": str(self._authority),
            **login,
        }

    def start_in(self, seconds: float, *, retry_after: int = 1) -> None:
        """Be a warehouse that is starting, from now on and for a while."""
        ready = time.monotonic() + seconds
        starting = Refusal(
            status=503,
            reason="TEMPORARILY_UNAVAILABLE",
            headers={
                "Retry-After": str(retry_after),
                "x-thriftserver-error-message": "TEMPORARILY_UNAVAILABLE: The warehouse is starting.",
            },
        )
        self._refusals = lambda: starting if time.monotonic() < ready else None

    def stop(self) -> None:
        """Be a stopped warehouse that this principal may not start."""
        message = "BAD_REQUEST: Cannot execute the statement: the SQL warehouse is stopped."
        refusal = Refusal(
            status=400, reason="Bad Request", headers={"x-thriftserver-error-message": message}
        )
        self._refusals = lambda: refusal

    def delete(self) -> None:
        """Be no warehouse any more."""
        message = "RESOURCE_DOES_NOT_EXIST: SQL warehouse feed0001 does not exist."
        refusal = Refusal(
            status=404, reason="Not Found", headers={"x-thriftserver-error-message": message}
        )
        self._refusals = lambda: refusal

    def recover(self) -> None:
        """Run again, with every grant, and lose no connection."""
        self._refusals = lambda: None
        self.drops.clear()
        self.denied.clear()
        self.tokens.add(TOKEN)

    def expire_logins(self) -> None:
        """Let every token be over; a client that logs in again gets another one."""
        self.tokens.clear()
        self.logins.revoke_all()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self.sessions.close()

    def refusal(self, token: str | None) -> Refusal | None:
        """Return why a request is not served, if it is not."""
        if token is None:
            message = "Credential was not sent or was of an unsupported type for this API."
            return Refusal(
                status=401, reason="Unauthorized", headers={"x-databricks-reason-phrase": message}
            )
        if token not in self.tokens and not self.logins.admits(token):
            return Refusal(
                status=403,
                reason="Forbidden",
                headers={"x-databricks-reason-phrase": "Invalid access token."},
            )
        return self._refusals()

    def serve(self, body: bytes) -> bytes | None:
        """Serve one thrift request; nothing when the connection is to be lost."""
        method, _, _ = TBinaryProtocol(TMemoryBuffer(body)).readMessageBegin()
        self.calls.append(method)
        drop = self._drop_for(method, body)
        if drop is not None and drop.when is When.BEFORE:
            return None
        answer = TMemoryBuffer()
        self._processor.process(TBinaryProtocol(TMemoryBuffer(body)), TBinaryProtocol(answer))
        return None if drop is not None else cast(bytes, answer.getvalue())

    def _drop_for(self, method: str, body: bytes) -> Drop | None:
        for each in self.drops:
            if each.times and each.method == method and each.containing.encode() in body:
                each.times -= 1
                return each
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, warehouse: Warehouse, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.warehouse = warehouse
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that hangs up is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def do_CONNECT(self) -> None:
        if self.path != f"{HOST}:443":
            self.send_error(502, "no such host")
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        self.request = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.setup()
        self.close_connection = False

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.request.close()

    def do_GET(self) -> None:
        if self.path == SERVER_PATH:
            self._give(200, dumps(self.server.warehouse.logins.server(f"https://{HOST}")).encode())
        elif self.path == "/.well-known/databricks-config":
            self._give(200, dumps({"oidc_endpoint": f"https://{HOST}/oidc"}).encode())
        else:
            self._give(404, b'{"error_code": "ENDPOINT_NOT_FOUND", "message": "No API found."}')

    def do_POST(self) -> None:
        body = self._body()
        if self.path == TOKEN_PATH:
            self._log_in(body)
        elif self.path.partition("?")[0] in (WAREHOUSE_PATH, CLUSTER_PATH):
            self._thrift(body)
        else:
            self._give(404, b'{"error_code": "ENDPOINT_NOT_FOUND", "message": "No API found."}')

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _log_in(self, body: bytes) -> None:
        kind, _, basic = self.headers.get("Authorization", "").partition(" ")
        try:
            token = self.server.warehouse.logins.token(body, basic if kind == "Basic" else None)
        except ApiError as error:
            self._give(error.status, dumps({"error": "invalid_client"}).encode())
            return
        self._give(200, dumps(token).encode())

    def _thrift(self, body: bytes) -> None:
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        refusal = self.server.warehouse.refusal(token if kind == "Bearer" else None)
        if refusal is not None:
            self._give(refusal.status, b"", refusal.headers)
            return
        answer = self.server.warehouse.serve(body)
        if answer is None:
            self.close_connection = True
            return
        self._give(200, answer, {"Content-Type": "application/x-thrift"})

    def _give(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """Write an authority, and the certificate and key of the workspace that it has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def signed(subject: str, key: Any, *extensions: tuple[x509.ExtensionType, bool]) -> Any:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=name("authority of the tests"),
            subject_name=name(subject),
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(days=1),
            not_valid_after=now + timedelta(days=2),
        )
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(authority_key, hashes.SHA256())

    authority_key, key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    authority = signed(
        "authority of the tests",
        authority_key,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (identifier, False),
        (usage, True),
    )
    certificate = signed(
        HOST,
        key,
        (x509.SubjectAlternativeName([x509.DNSName(HOST)]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    )
    pem = serialization.Encoding.PEM
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "workspace.pem").write_bytes(
        certificate.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "authority.pem", folder / "workspace.pem"


def served(spark: "SparkSession", folder: Path, **options: Any) -> Iterator[Warehouse]:
    """Serve for as long as a fixture lives."""
    warehouse = Warehouse(spark, folder, **options)
    try:
        yield warehouse
    finally:
        warehouse.close()


__all__: Sequence[str] = ["Denied", "Drop", "Warehouse", "When", "served"]
