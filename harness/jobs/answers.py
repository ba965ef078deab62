"""Reads what came of one ``run_now`` call: did a run start, surely not, or can nobody tell?"""

from databricks.sdk.errors import (
    Aborted,
    BadRequest,
    NotFound,
    PermissionDenied,
    ResourceConflict,
    Unauthenticated,
)
from databricks.sdk.errors.base import DatabricksError

from harness.jobs.types import NotAllowed, Refused, RunNowAnswer, Unknown
from harness.workspace import told, words_of

#: Codes that come with a refusing status but ask to try again.
_TRY_AGAIN_CODES = frozenset(
    {
        "COULD_NOT_ACQUIRE_LOCK",
        "TEMPORARILY_UNAVAILABLE",
        "DEADLINE_EXCEEDED",
        "REQUEST_LIMIT_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "INTERNAL_ERROR",
    }
)
#: What the SDK calls a 404 page that is no answer of the API, such as a proxy's.
_PAGE_CODES = frozenset({"NOT_FOUND"})


def answer_of_error(error: Exception) -> RunNowAnswer:
    """Say what an exception of ``run_now`` means; whatever is not understood is unknown."""
    if isinstance(error, TimeoutError) and error.__cause__ is not None:
        # The SDK wanted to retry: a lost connection, a throttled or a passing error.
        return Unknown(
            message=told(error.__cause__), retry_after_seconds=_retry_after(error.__cause__)
        )
    if isinstance(error, Unauthenticated | PermissionDenied):
        return NotAllowed(message=told(error))
    if isinstance(error, DatabricksError) and _is_refusal(error):
        return Refused(error_code=str(error.error_code), message=words_of(error))
    return Unknown(message=told(error), retry_after_seconds=_retry_after(error))


def _is_refusal(error: DatabricksError) -> bool:
    if error.error_code is None or error.error_code in _TRY_AGAIN_CODES:
        return False
    if isinstance(error, Aborted | ResourceConflict):
        return False
    if isinstance(error, NotFound):
        return error.error_code not in _PAGE_CODES
    return isinstance(error, BadRequest)


def _retry_after(error: BaseException) -> float | None:
    seconds = getattr(error, "retry_after_secs", None)
    return float(seconds) if seconds is not None else None
