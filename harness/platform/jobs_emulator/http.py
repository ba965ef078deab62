"""Carries requests over a loopback socket to the local Jobs API, and its answers back."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, cast
from urllib.parse import parse_qsl, urlsplit

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_LARGEST_BODY = 10 * 1024 * 1024
_IDLE_CONNECTION_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as it came over the wire."""

    method: str
    path: str
    query: Mapping[str, object]
    body: bytes
    token: str | None
    #: What a client logs in with, as it was sent.
    basic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer as it goes over the wire."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    content_type: str = "application/json"


class Application(Protocol):
    """What stands behind the socket."""

    def answer(self, call: Call) -> Reply:
        """Answer a request."""
        ...


class LoopbackServer(ThreadingHTTPServer):
    """A threaded server that only this machine reaches.

    Args:
        application: What answers.
        port: The port; any free one when 0.
        handler: Serves one client.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, application: Application, port: int, handler: "type[Handler]") -> None:
        self.application = application
        super().__init__((LOOPBACK, port), handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Record a connection that broke; the client's end of it is left to the client."""
        logger.debug("the connection to %s broke", client_address, exc_info=True)


class Handler(BaseHTTPRequestHandler):
    """Reads the requests of one connection, and sends the replies."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_CONNECTION_SECONDS
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Serve a request to read."""
        self.serve()

    def do_POST(self) -> None:
        """Serve a request to change something."""
        self.serve()

    def log_message(self, format: str, *args: object) -> None:
        """Note a request."""
        logger.debug(format, *args)

    def serve(self) -> None:
        """Serve one request."""
        self.send(cast(LoopbackServer, self.server).application.answer(self.read()))

    def read(self) -> Call:
        """Read one request."""
        parts = urlsplit(self.path)
        length = min(int(self.headers.get("Content-Length") or 0), _LARGEST_BODY)
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        return Call(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            body=self.rfile.read(length) if length else b"",
            token=token if scheme == "Bearer" and token else None,
            basic=token if scheme == "Basic" and token else None,
        )

    def send(self, reply: Reply, *, sent_share: float = 1.0) -> None:
        """Write head and body at once: two writes would wait for the client's acknowledgement."""
        head = [
            f"HTTP/1.1 {reply.status} {self.responses.get(reply.status, ('Status',))[0]}",
            f"Content-Type: {reply.content_type}",
            f"Content-Length: {len(reply.body)}",
            *(f"{name}: {value}" for name, value in reply.headers.items()),
        ]
        sent = reply.body[: int(len(reply.body) * sent_share)]
        self.wfile.write("\r\n".join([*head, "", ""]).encode("latin-1") + sent)
        self.wfile.flush()
