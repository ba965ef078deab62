"""Turns what an engine reports into one sentence: what is wrong, where, and what to do."""

import re
from collections.abc import Callable

from harness.platform.masking import masked
from harness.platform.sql.port import SqlError, SqlSetupError
from harness.platform.text import storable

#: Returns who is logged in, for an engine that does not name who lacks a grant.
WHO = "select current_user() as name"
#: What gRPC reports where no server of Spark Connect answers.
_UNREACHABLE = "StatusCode.UNAVAILABLE"
_NOBODY_ANSWERS = "Spark does not answer: its engine has ended, or the network is away"
_LONGEST_REASON = 300
_LONGEST_READ = 4_000
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w{5}\b.*", re.DOTALL)
_TRACE = re.compile(r"\n\s*at [\w.$]+.*", re.DOTALL)
_GRANT = re.compile(
    r"(?:`?(?P<name>[^\s`']+@[^\s`']+|[0-9a-f-]{36})`?\s+)?does not have (?:permission )?"
    r"(?P<privilege>[A-Z][A-Z_ ]*[A-Z]) on (?P<kind>[A-Za-z ]+?)\s*"
    r"[`'](?P<object>.+?)[`']\.?(?:\s|$)"
)
_CATALOG = re.compile(r"catalog [`']?([^`'\s]+)[`']?", re.IGNORECASE)
_NO_CATALOG = ("NO_SUCH_CATALOG_EXCEPTION", "CATALOG_NOT_FOUND")
_NO_GRANT = ("INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED")


def refused(
    message: str, condition: str | None = None, principal: Callable[[], str | None] = lambda: None
) -> SqlError:
    """Return the error for what an engine reports on a statement.

    Args:
        message: Its words, of any length.
        condition: The name of the error, if the engine gives it apart from its words.
        principal: Returns who is logged in; called only when the words do not name one.
    """
    # An engine may repeat the statement, which may have megabytes without a space.
    message = message[:_LONGEST_READ]
    if _UNREACHABLE in message:
        return SqlError(_NOBODY_ANSWERS, remedy="try again")
    found = _CONDITION.search(message)
    name = condition or (found[1] if found else None)
    if grant := _GRANT.search(message):
        return _missing_grant(grant, grant["name"] or principal(), name)
    if name in _NO_CATALOG:
        catalog = _CATALOG.search(message)
        return SqlSetupError(
            f"There is no catalog '{catalog[1] if catalog else '?'}', or it is not shown to this"
            " principal",
            remedy="set HEARTBEAT_CATALOG to the catalog of the tables, or have USE CATALOG on it"
            " granted",
            condition=name,
        )
    if name is not None and name.startswith(_NO_GRANT):
        remedy = "have the privilege granted by the owner of the object"
        return SqlError(_short(message), remedy=remedy, condition=name)
    if name is not None and name.startswith("CONFIG_NOT_AVAILABLE"):
        return SqlError(
            _short(message),
            remedy="this compute lets few settings be set: use dedicated compute",
            condition=name,
        )
    return SqlError(_short(message), condition=name)


def without_grpc(message: str) -> str:
    """Return a message of Spark's client; what gRPC makes of a lost engine becomes a sentence."""
    return _NOBODY_ANSWERS if _UNREACHABLE in message else message


def _missing_grant(grant: re.Match[str], who: str | None, condition: str | None) -> SqlError:
    privilege, kind = grant["privilege"], grant["kind"].strip()
    name = ".".join(f"`{part}`" for part in grant["object"].replace("`", "").split("."))
    to = f"`{who}`" if who else "the principal that this process logs in as"
    return SqlError(
        f"{who or 'The principal that this process logs in as'} lacks {privilege} on the"
        f" {kind.lower()} {name}",
        remedy=f"its owner can run: grant {privilege.lower()} on {kind.lower()} {name} to {to}",
        condition=condition,
    )


def _short(message: str) -> str:
    """Return the first sentence or two, without the plan, the place and the trace."""
    text = _TRACE.sub("", _SQL_STATE.sub("", message.partition(";\n")[0])).strip()
    words = " ".join(text.split()).rstrip(".")
    # Masked before it is cut off: half a secret would not be recognized.
    return storable(masked(words))[:_LONGEST_REASON] or "the engine gave no reason"
