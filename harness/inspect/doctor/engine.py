"""Checks the engine of the state directory, if there is one."""

from collections.abc import Iterator
from pathlib import Path

from harness.inspect.doctor.findings import Finding, attention, broken, ok
from harness.inspect.doctor.installation import Patient
from harness.inspect.engine import SECONDS_TO_GREET, Condition, EngineState, read_engine
from harness.platform.format import size
from harness.platform.spark.engine import EngineFolder, engine_folder

_ABOUT = "engine"


def engine(patient: Patient) -> Iterator[Finding]:
    """The engine, if there is one, can be used, and by the owner of the folder alone."""
    if not patient.is_local:
        return
    folder = engine_folder(patient.home.folder)
    yield from _open_to_others(folder)
    state = read_engine(patient.home.folder, patient.settings)
    match state.condition:
        case Condition.RUNNING:
            yield _running(state)
        case Condition.FROZEN:
            yield attention(
                _ABOUT,
                f"does not answer within {SECONDS_TO_GREET:g} s",
                where=_place(state),
                todo="nothing: the next command that needs Spark replaces it; or run "
                "`python -m harness engine restart --force`",
            )
        case Condition.ENDED:
            what = "has ended without removing its record; the next command replaces it"
            yield ok(_ABOUT, what, where=folder.record_file)
        case Condition.NONE:
            yield ok(_ABOUT, "does not run; a command that needs Spark starts it")


def _running(state: EngineState) -> Finding:
    if state.is_wanted is not False:
        memory = "" if state.memory is None else f", with {size(state.memory)} of memory"
        return ok(_ABOUT, f"answers{memory}", where=_place(state))
    what = "has other settings, or is of another version"
    if state.is_used:
        return attention(
            _ABOUT,
            f"{what}, and a process uses it",
            where=_place(state),
            todo="wait for that process or end it: until then every other command that needs "
            "Spark ends with 3",
        )
    return ok(_ABOUT, f"{what}; the next command that needs Spark replaces it")


def _place(state: EngineState) -> str:
    return f"pid {state.record.server}" if state.record else ""


def _open_to_others(folder: EngineFolder) -> Iterator[Finding]:
    if mode := _rights_of_others(folder.record_file):
        yield broken(
            _ABOUT,
            f"its token can be read by other users (mode {mode:o}), who can run code as this user "
            "with it",
            where=folder.record_file,
            todo=f"run `chmod 600 {folder.record_file}` and `python -m harness engine stop`: the "
            "next engine has another token",
        )
    if mode := _rights_of_others(folder.path):
        yield attention(
            _ABOUT,
            f"its folder is open to other users of this machine (mode {mode:o})",
            where=folder.path,
            todo=f"run `chmod 700 {folder.path}`",
        )


def _rights_of_others(path: Path) -> int:
    """Return the mode of what other users may read or enter; 0 if they may not."""
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0
    return mode if mode & 0o077 else 0
