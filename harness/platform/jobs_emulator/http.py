"""Carries requests over a loopback socket to the local Jobs API, and its answers back."""

import json
import logging
import os
import signal
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, cast
from urllib.parse import parse_qsl, urlsplit

from harness.platform.jobs_emulator.faults import Fault, FaultKind, When

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_LARGEST_BODY = 10 * 1024 * 1024
_IDLE_CONNECTION_SECONDS = 60.0
#: Where a client is sent that is to log in first; it finds a web page there.
LOGIN_PATH = "/login.html"
_PAGE = b"<html><head><title>Sign in</title></head><body>Please sign in.</body></html>"


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

    def fault_for(self, call: Call) -> Fault | None:
        """Return what is to go wrong with a request, if anything."""
        ...

    def answer(self, call: Call, fault: Fault | None) -> Reply:
        """Do what a request asks for."""
        ...


class LoopbackServer(ThreadingHTTPServer):
    """A threaded server that only this machine reaches.

    Args:
        application: What answers.
        port: The port; any free one when 0.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, application: Application, port: int = 0) -> None:
        self.application = application
        #: Set when the server closes; what hangs on purpose then hangs no longer.
        self.closing = threading.Event()
        super().__init__((LOOPBACK, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Note a connection that broke; the client's end of it is the client's business."""
        logger.debug("the connection to %s broke", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_CONNECTION_SECONDS
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        logger.debug(format, *args)

    @property
    def _loopback(self) -> LoopbackServer:
        return cast(LoopbackServer, self.server)

    def _serve(self) -> None:
        call = self._read()
        if call.path == LOGIN_PATH:
            self._send(_LOGIN_PAGE)
            return
        application = self._loopback.application
        fault = application.fault_for(call)
        if fault is not None and fault.when is When.BEFORE and fault.kind is not FaultKind.SLOW:
            self._misbehave(fault, Reply(status=200, body=b"{}", headers={}))
            return
        reply = application.answer(call, fault)
        if fault is None:
            self._send(reply)
        else:
            self._misbehave(fault, reply)

    def _read(self) -> Call:
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

    def _send(self, reply: Reply, *, sent_share: float = 1.0) -> None:
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

    def _misbehave(self, fault: Fault, reply: Reply) -> None:
        match fault.kind:
            case FaultKind.STATUS:
                self._send(_failure(fault))
            case FaultKind.HTML:
                self._send(_LOGIN_PAGE)
            case FaultKind.REDIRECT:
                self._send(_elsewhere(fault))
            case FaultKind.SLOW:
                self._loopback.closing.wait(fault.delay)
                self._send(reply)
            case FaultKind.TRUNCATE:
                self._send(reply, sent_share=0.5)
                self.close_connection = True
            case FaultKind.RESET:
                self._reset()
            case FaultKind.HANG | FaultKind.EOF | FaultKind.KILL_CLIENT:
                self._go_silent(fault)

    def _go_silent(self, fault: Fault) -> None:
        if fault.kind is FaultKind.HANG:
            self._loopback.closing.wait(fault.delay)
        if fault.kind is FaultKind.KILL_CLIENT and fault.pid is not None:
            os.kill(fault.pid, signal.SIGKILL)
        self.close_connection = True

    def _reset(self) -> None:
        self.close_connection = True
        lingers_not = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers_not)
        # Closing the descriptor itself sends the reset now; the socket object would say goodbye.
        os.close(self.connection.detach())


_LOGIN_PAGE = Reply(status=200, body=_PAGE, headers={}, content_type="text/html")


def _elsewhere(fault: Fault) -> Reply:
    status = fault.status if 300 <= fault.status < 400 else 302
    return Reply(status=status, body=b"", headers={"Location": LOGIN_PATH, **fault.headers})


def _failure(fault: Fault) -> Reply:
    told = {"error_code": _CODES.get(fault.status, "INTERNAL_ERROR"), "message": "Made to fail."}
    body = fault.body if fault.body is not None else json.dumps(told)
    return Reply(status=fault.status, body=body.encode(), headers=fault.headers)


_CODES = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    409: "ABORTED",
    429: "REQUEST_LIMIT_EXCEEDED",
    503: "TEMPORARILY_UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
