"""Lets chosen requests over the loopback socket go wrong."""

import json
import os
import signal
import socket
import struct
import threading
from typing import Protocol, cast

from harness.platform.jobs_emulator.http import Application, Call, Handler, LoopbackServer, Reply
from tests.support.jobs_emulator.faults import Fault, FaultKind, When

#: Where a client is sent that is to log in first; it finds a web page there.
LOGIN_PATH = "/login.html"
_PAGE = b"<html><head><title>Sign in</title></head><body>Please sign in.</body></html>"


class FaultyApplication(Application, Protocol):
    """What stands behind the socket."""

    #: Set when the server closes; what hangs on purpose then hangs no longer.
    closing: threading.Event

    def fault_for(self, call: Call) -> Fault | None:
        """Return what is to go wrong with a request, if anything."""
        ...

    def note(self, call: Call, status: int, fault: Fault | None) -> None:
        """Receive how a request was answered; with 0 if it was not."""
        ...


class FaultyHandler(Handler):
    """Sends replies, or what a fault makes of them."""

    @property
    def _application(self) -> FaultyApplication:
        return cast(FaultyApplication, cast(LoopbackServer, self.server).application)

    def serve(self) -> None:
        """Serve one request."""
        call = self.read()
        if call.path == LOGIN_PATH:
            self.send(_LOGIN_PAGE)
            return
        fault = self._application.fault_for(call)
        if fault is not None and fault.when is When.BEFORE:
            self._application.note(call, 0, fault)
            if fault.kind is not FaultKind.SLOW:
                self._misbehave(fault, Reply(status=200, body=b"{}", headers={}))
                return
        reply = self._application.answer(call)
        self._application.note(call, reply.status, fault)
        if fault is None:
            self.send(reply)
        else:
            self._misbehave(fault, reply)

    def _misbehave(self, fault: Fault, reply: Reply) -> None:
        match fault.kind:
            case FaultKind.STATUS:
                self.send(_failure(fault))
            case FaultKind.HTML:
                self.send(_LOGIN_PAGE)
            case FaultKind.REDIRECT:
                self.send(_elsewhere(fault))
            case FaultKind.SLOW:
                self._application.closing.wait(fault.delay)
                self.send(reply)
            case FaultKind.TRUNCATE:
                self.send(reply, sent_share=0.5)
                self.close_connection = True
            case FaultKind.RESET:
                self._reset()
            case FaultKind.HANG | FaultKind.EOF | FaultKind.KILL_CLIENT:
                self._go_silent(fault)

    def _go_silent(self, fault: Fault) -> None:
        if fault.kind is FaultKind.HANG:
            self._application.closing.wait(fault.delay)
        if fault.kind is FaultKind.KILL_CLIENT and fault.pid is not None:
            os.kill(fault.pid, signal.SIGKILL)
        self.close_connection = True

    def _reset(self) -> None:
        self.close_connection = True
        lingers_not = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers_not)
        # Closing the descriptor itself sends the reset now; the socket object would close cleanly.
        os.close(self.connection.detach())


_LOGIN_PAGE = Reply(status=200, body=_PAGE, headers={}, content_type="text/html")


def _elsewhere(fault: Fault) -> Reply:
    status = fault.status if 300 <= fault.status < 400 else 302
    return Reply(status=status, body=b"", headers={"Location": LOGIN_PATH, **fault.headers})


def _failure(fault: Fault) -> Reply:
    reported = {
        "error_code": _CODES.get(fault.status, "INTERNAL_ERROR"),
        "message": "Made to fail.",
    }
    body = fault.body if fault.body is not None else json.dumps(reported)
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
