"""What goes wrong with requests on their way, and on the way back."""

import json
import random
import re
from dataclasses import dataclass

import requests

from tests.simulation.fate import Fate

RUN_NOW = "POST run-now"
_GET_RUN = "GET runs/get"

#: These leave in doubt whether the request had its effect.
_LOST = (
    *("reset", "hang", "chunks", "half", "page", "nothing", "float"),
    *("408", "409", "429", "429", "500", "500", "502", "503", "504"),
)
_CODES = {
    "400": "INVALID_PARAMETER_VALUE",
    "401": "UNAUTHENTICATED",
    "403": "PERMISSION_DENIED",
    "404": "RESOURCE_DOES_NOT_EXIST",
    "409": "ABORTED",
    "429": "REQUEST_LIMIT_EXCEEDED",
    "503": "TEMPORARILY_UNAVAILABLE",
    "504": "DEADLINE_EXCEEDED",
}
_RAISED: dict[str, requests.RequestException] = {
    "reset": requests.ConnectionError("the connection was reset"),
    "hang": requests.ReadTimeout("nothing came"),
    "chunks": requests.exceptions.ChunkedEncodingError("the answer broke off"),
}
_RETRY_AFTER = (None, "0", "2", "3600", "Wed, 21 Oct 2026 07:28:00 GMT")
_NO_SUCH_RUN = {"error_code": "INVALID_PARAMETER_VALUE", "message": "Run 1 does not exist."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What goes wrong with requests at the moment."""

    #: How many of a hundred requests go wrong in some way.
    faults: int = 0
    #: Nothing is answered at all.
    is_down: bool = False
    #: Every request is refused as not permitted.
    is_forbidden: bool = False
    #: A request may be refused although nothing is wrong with it.
    refuses: bool = False


def draw(name: str, problem: Problem, fate: Fate) -> tuple[str | None, bool]:
    """Return what goes wrong with a request, and whether it has its effect all the same."""
    chance = fate.chance
    if not fate.is_calm and problem.is_down:
        return chance.choice(("reset", "hang", "503")), False
    if not fate.is_calm and problem.is_forbidden:
        return chance.choice(("401", "403")), False
    if not fate.falls(problem.faults / 100):
        return None, True
    if problem.refuses and name == RUN_NOW and chance.random() < 0.3:
        return chance.choice(("400", "404")), False
    if name == _GET_RUN and chance.random() < 0.1:
        return "unknown run", False
    return chance.choice(_LOST), chance.random() < 0.6


def misbehave(fault: str, body: str, chance: random.Random) -> requests.Response:
    """Answer wrongly a request whose right answer is the body; or raise, as its transport would."""
    if fault in _RAISED:
        raise _RAISED[fault]
    bodies = {
        "half": body[: len(body) // 2] or '{"run_',
        "page": "<html><title>Sign in</title></html>",
        "nothing": "{}",
        # No id is exact in this form, so that it must not be taken for one.
        "float": re.sub(r'("run_id": \d+)', r"\1.0", body) or "{}",
    }
    if fault in bodies:
        return response(200, bodies[fault])
    if fault == "unknown run":
        return response(400, json.dumps(_NO_SUCH_RUN))
    reported = {"error_code": _CODES.get(fault, "INTERNAL_ERROR"), "message": "Made to fail."}
    return response(int(fault), json.dumps(reported), retry_after=chance.choice(_RETRY_AFTER))


def response(status: int, body: str, *, retry_after: str | None = None) -> requests.Response:
    """Return an answer as the transport gives it to the SDK."""
    answer = requests.Response()
    answer.status_code = status
    answer._content = body.encode()
    answer.headers["Content-Type"] = "text/html" if body.startswith("<") else "application/json"
    if retry_after is not None:
        answer.headers["Retry-After"] = retry_after
    return answer
