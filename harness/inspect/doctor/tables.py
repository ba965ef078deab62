"""Checks the ledgers and tables of the state directory: whole, as long as they were, and small."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.config.model import Maintenance
from harness.inspect.doctor.findings import Finding, attention, broken, ok
from harness.inspect.doctor.installation import Patient
from harness.platform.format import count, size
from harness.store.health import RESTORE, Damage, TableHealth, examine_table
from harness.store.integrity import known_fingerprints, lost_commits
from harness.store.rows import Ledger

#: Past so many times what `run` would let come together, compacting is worth it.
_FACTOR = 2
_MOST_NAMED = 3


def tables(patient: Patient) -> Iterator[Finding]:
    """Every table can be read, and has what it had."""
    if not patient.is_local:
        yield ok("tables", "are in the workspace, and are not checked from here")
        return
    if not patient.is_set_up:
        return
    folders = sorted(log.parent for log in patient.tables.glob("*/_delta_log"))
    health = [_examined(folder) for folder in folders]
    damages = [*_damages(health)]
    reported = {each.about for each in damages}
    damages += [each for each in _shorter(patient) if each.about not in reported]
    damages += _missing(patient, folders)
    yield from damages
    if not damages:
        bytes_ = sum(each.size for each in health)
        files = sum(each.files for each in health)
        message = (
            f"{count(len(health), 'table')} can be read: {count(files, 'file')}, {size(bytes_)}"
        )
        yield ok("tables", message, where=patient.tables)
    maintenance = patient.settings.maintenance if patient.settings else Maintenance()
    yield from _crowded(health, _FACTOR * maintenance.compact_after_commits, patient.tables)


def _examined(folder: Path) -> TableHealth:
    try:
        return examine_table(folder)
    except OSError as error:
        what = f"cannot be read ({(error.strerror or str(error)).lower()})"
        todo = f"make it readable for this user, or {RESTORE}"
        damage = Damage(what=what, where=folder, todo=todo)
        return TableHealth(name=folder.name, damages=(damage,))


def _damages(health: Iterable[TableHealth]) -> Iterator[Finding]:
    for table in health:
        for each in table.damages:
            yield broken(table.name, each.what, where=each.where, todo=each.todo)


def _shorter(patient: Patient) -> Iterator[Finding]:
    """Ledgers that end before the commit at which the last tick left them."""
    for name, fingerprint in known_fingerprints(patient.home.state).items():
        lost = lost_commits(patient.tables / name, fingerprint)
        if lost:
            yield broken(
                name,
                lost,
                where=patient.tables / name,
                todo=f"{RESTORE}, all of it; if the ledger is meant to be so, remove state.json",
            )


def _missing(patient: Patient, folders: Iterable[Path]) -> Iterator[Finding]:
    """Ledgers that are not there although everything was built once."""
    there = {folder.name for folder in folders} | {*known_fingerprints(patient.home.state)}
    for ledger in Ledger:
        if ledger not in there and (patient.home.folder / "version.json").exists():
            yield broken(ledger, "is gone", where=patient.tables / ledger, todo=RESTORE)


def _crowded(health: Iterable[TableHealth], limit: int, folder: Path) -> Iterator[Finding]:
    crowded = [
        each for each in health if max(each.small_files, each.commits_since_checkpoint) > limit
    ]
    if not crowded:
        return
    crowded.sort(key=lambda each: -each.small_files)
    reported = ", ".join(
        f"{each.name} ({each.small_files:,} small files, "
        f"{each.commits_since_checkpoint:,} commits since its checkpoint)"
        for each in crowded[:_MOST_NAMED]
    )
    more = f", and {len(crowded) - _MOST_NAMED} more" if len(crowded) > _MOST_NAMED else ""
    yield attention(
        "small files",
        f"slow ticks down: {reported}{more}",
        where=folder,
        todo="run `python -m harness maintain`, once a day where ticks come from a scheduler",
    )
