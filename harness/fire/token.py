"""Derives the idempotency token of one attempt; it makes no call and keeps no state."""

import hashlib
import json

#: What the Jobs API allows.
LONGEST_TOKEN = 64
#: The job parameter by which a run names its start: an intent's name would not do, since
#: every attempt has it, and so may the same intent of another state directory.
TOKEN_PARAMETER = "heartbeat_token"
_PREFIX = "hb-"


def token_for(workspace: str, job_id: int, intent_id: str, attempt: int) -> str:
    """Derive the token under which one attempt of one intent is sent, however often it is sent.

    Independent processes derive the same token for the same attempt. The API returns the old run
    for as long as it keeps a token, so a wanted new run is a new attempt. It is undocumented
    whether a token counts per job or per workspace, so both are in it.

    Args:
        workspace: The workspace's name, as ``JobsApi.workspace`` gives it.
        job_id: The job to start.
        intent_id: What is to happen once.
        attempt: 1 for the first attempt, one more for each wanted repetition.

    Raises:
        ValueError: The attempt is not a positive number.
    """
    if attempt < 1:
        raise ValueError(f"attempt {attempt} of intent {intent_id}: attempts count from 1")
    parts = json.dumps([workspace, str(job_id), intent_id, attempt], ensure_ascii=True)
    digest = hashlib.sha256(parts.encode()).hexdigest()
    return (_PREFIX + digest)[:LONGEST_TOKEN]
