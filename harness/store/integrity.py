"""Checks, before a process starts from them, that no table has lost what it held.

A commit that a power cut took would be decided, and its jobs started, once more.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import StateError
from harness.platform.json_file import load
from harness.store.delta_commits import has_checkpoint, newest_commit, version_in
from harness.store.rows import Ledger


def require_intact(schema: Path, state_file: Path) -> None:
    """Check that every table has the commits that it had when the last tick ended.

    Args:
        schema: The folder of the tables.
        state_file: What the last tick left; it names the commits of the ledgers.

    Raises:
        StateError: A table has lost some.
    """
    for log in sorted(schema.glob("*/_delta_log")):
        newest = newest_commit(log.parent)
        if newest is not None and newest.size == 0 and not has_checkpoint(newest):
            raise StateError(
                f"The newest commit of {log.parent.name} is empty ({newest.path}), so rows are "
                "lost, and nothing was started: `python -m harness doctor` shows what to do"
            )
    for name, fingerprint in known_fingerprints(state_file).items():
        lost = lost_commits(schema / name, fingerprint)
        if lost:
            raise StateError(
                f"{name} in {schema} {lost}, so nothing was started: "
                "`python -m harness doctor` shows what to do"
            )


def known_fingerprints(state_file: Path) -> Mapping[str, str]:
    """Return what the ledgers were when the last tick ended; nothing when no file records it."""
    return load(state_file, _fingerprints_in) or {}


def _fingerprints_in(content: Any) -> Mapping[str, str]:
    found = content["fingerprints"]
    return {each: str(found[each]) for each in Ledger if found.get(each)}


def lost_commits(table: Path, fingerprint: str) -> str | None:
    """Report what a table has lost since a fingerprint was taken; nothing when it only grew."""
    try:
        known = version_in(fingerprint)
    except ValueError:
        return None
    newest = newest_commit(table)
    if newest is None:
        return f"is gone, and the last tick left it at commit {known}"
    if newest.version < known:
        return f"ends with commit {newest.version}, and the last tick left it at commit {known}"
    return None
