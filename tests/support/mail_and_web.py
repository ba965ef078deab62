"""Real servers on loopback that keep what they receive: one for mail, one for HTTP."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class Mails:
    """Takes every mail, or refuses it with the answer that is set."""

    def __init__(self) -> None:
        self.received: list[EmailMessage] = []
        self.answer = "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Keep a mail, unless it is to be refused."""
        if self.answer.startswith("250"):
            content = envelope.original_content or b""
            self.received.append(message_from_bytes(content, policy=policy.default))  # type: ignore[arg-type]
        return self.answer


@dataclass
class MailServer:
    """An SMTP server, its address, and what it has received."""

    port: int
    mails: Mails

    @property
    def url(self) -> str:
        """The address as Apprise has it, with a password that no log may have."""
        return f"mailto://127.0.0.1:{self.port}?from=heartbeat@example.com&to=team@example.com"


def free_port() -> int:
    """Return a port on loopback at which nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Serve mail until the block ends."""
    mails = Mails()
    port = free_port()
    controller = Controller(mails, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield MailServer(port=port, mails=mails)
    finally:
        controller.stop()


@dataclass
class Web:
    """An HTTP server, and what was posted to it."""

    port: int = 0
    posts: list[dict[str, object]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    #: How it answers.
    status: int = 200
    #: An answer waits for it; it is set but where a server is to hang.
    may_answer: threading.Event = field(default_factory=threading.Event)

    def url(self, scheme: str = "json", path: str = "hook") -> str:
        """The address of a path."""
        return f"{scheme}://127.0.0.1:{self.port}/{path}"


@contextmanager
def web_server() -> Iterator[Web]:
    """Serve HTTP until the block ends."""
    web = Web()
    web.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            web.may_answer.wait(60)
            if web.status < 400:
                web.paths.append(self.path)
                web.headers.append(dict(self.headers))
                web.posts.append(json.loads(body))
            self.send_response(web.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.may_answer.set()
        server.shutdown()
        server.server_close()
