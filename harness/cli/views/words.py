"""Words that several screens share: outcomes of runs, ids and paths in the room of one line."""

import re
import shlex
from collections.abc import Mapping, Sequence

from harness.events.event import ChangeEvent, EventRow
from harness.inspect.tick_summary import STYLES
from harness.store.rows import Run, RunStatus

#: The word of the Jobs API, where it has one.
_OUTCOMES = {
    RunStatus.STARTED: "RUNNING",
    RunStatus.INTENDED: "IN DOUBT",
    RunStatus.RETRY_REQUESTED: "REQUEUED",
}
_LAST_RUN = re.compile(r"^its last run \d+ ended (?=[A-Z_]+\b)")
#: A path with more than its last two parts, or a URI with a path.
_LONG_PATH = re.compile(r"(?<![\w.])(?:\w+:/)?/[^\s,;'\"]*/([^\s/,;'\"]+/[^\s/,;'\"]+)")
#: Ids of runs have up to 19 digits; so many distinguish those of one installation.
_DIGITS = 6
_RUN_ID = re.compile(rf"\b(run )\d{{2,}}(\d{{{_DIGITS}}})\b")


def outcome_of(run: Run) -> tuple[str, str]:
    """Return how a run ended or goes on, and its style."""
    word = _OUTCOMES.get(run.run_status, run.run_status.value.replace("_", " "))
    return word, STYLES.get(run.run_status, "red")


def change_of(event: EventRow | ChangeEvent) -> str:
    """Return what an event did to its table."""
    return change_in_words(event.operation_type, event.tags)


def change_in_words(operation: str, tags: object) -> str:
    """Return what an event did to its table, by its operation and tags."""
    is_new_table = isinstance(tags, Mapping) and "recreated" in tags
    return f"{operation} (re-created)" if is_new_table else operation


def short_run_id(run_id: int | None) -> str:
    """Return the end of a run's id, by which `logs` finds it; a dash for none."""
    if run_id is None:
        return "-"
    text = str(run_id)
    return text if len(text) <= _DIGITS + 1 else f"…{text[-_DIGITS:]}"


def short_paths(sentence: str) -> str:
    """Return a sentence with only the end of each long path in it: ``…/data/orders``."""
    return _LONG_PATH.sub(r"…/\1", sentence)


def short_reason(sentence: str) -> str:
    """Return a reason in the room of one line: the ends of paths and of the ids of runs.

    A held job is listed with its last run, so that the reason need not name it.
    """
    sentence = _LAST_RUN.sub("", sentence)
    return short_paths(_RUN_ID.sub(r"\1…\2", sentence))


def remedy_of_held(names: Sequence[str]) -> str:
    """Return the commands that let held jobs go on."""
    name = shlex.quote(names[0]) if len(names) == 1 else "JOB"
    return f"→ remove the cause, then: python -m harness retry {name}"
