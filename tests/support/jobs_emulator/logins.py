"""Lets clients log in to the local Jobs API as they do to a workspace: by OAuth, for a while."""

import base64
import binascii
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import parse_qs

import jwt

from harness.platform.clock import Clock
from harness.platform.jobs_emulator.api.responses import ApiError

SERVER_PATH = "/oidc/.well-known/oauth-authorization-server"
TOKEN_PATH = "/oidc/v1/token"


class Logins:
    """The clients that may log in, and the tokens that they were given.

    Args:
        clients: The secret of each client, by its id.
        clock: Determines when a token ends.
        seconds: How long a token lasts.
        issuer: The address that issues the tokens, which then contain it and their end (JWT).
    """

    def __init__(
        self, clients: Mapping[str, str], clock: Clock, seconds: float, *, issuer: str = ""
    ) -> None:
        self._clients = clients
        self._issuer = issuer
        #: How many tokens were given.
        self.count = 0
        self._clock = clock
        self._lasts = timedelta(seconds=seconds)
        self._ends: dict[str, datetime] = {}
        self._owners: dict[str, str] = {}

    def server(self, host: str) -> Mapping[str, object]:
        """Report where a client logs in."""
        endpoints = {"authorization_endpoint": "/oidc/v1/authorize", "token_endpoint": TOKEN_PATH}
        return {name: host + path for name, path in endpoints.items()}

    def token(self, body: bytes, basic: str | None) -> Mapping[str, object]:
        """Give a client a token that lasts for a while.

        Raises:
            ApiError: The client is not known, or its secret is wrong.
        """
        fields = {name: each[0] for name, each in parse_qs(body.decode(errors="replace")).items()}
        name, secret = _credentials(basic) or (
            fields.get("client_id", ""),
            fields.get("client_secret", ""),
        )
        known = self._clients.get(name)
        if known is None or not secrets.compare_digest(known.encode(), secret.encode()):
            raise ApiError(401, "invalid_client", "Client authentication failed.")
        ends = self._clock.now() + self._lasts
        token = self._token(ends) if self._issuer else secrets.token_urlsafe(24)
        self._ends[token] = ends
        self._owners[token] = name
        self.count += 1
        seconds = int(self._lasts.total_seconds())
        return {"access_token": token, "token_type": "Bearer", "expires_in": seconds}

    def _token(self, ends: datetime) -> str:
        claims = {"iss": self._issuer, "exp": int(ends.timestamp()), "jti": secrets.token_hex(8)}
        return jwt.encode(claims, secrets.token_bytes(32), algorithm="HS256")

    def revoke_all(self) -> None:
        """Let every token end now, before its time."""
        self._ends.clear()

    def owner(self, token: str) -> str:
        """Name the client to which a token was given; empty for any other token."""
        return self._owners.get(token, "")

    def admits(self, token: str) -> bool:
        """Return whether a token was given here and has not ended."""
        ends = self._ends.get(token)
        return ends is not None and self._clock.now() < ends


def _credentials(basic: str | None) -> tuple[str, str] | None:
    if basic is None:
        return None
    try:
        name, _, secret = base64.b64decode(basic).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return name, secret
