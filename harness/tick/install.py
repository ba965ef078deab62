"""Creates the tables and views of a state directory, and brings them up to date with the models.

A directory that a newer version has written is left alone.
"""

import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from harness.config.load import LOCAL_TARGET
from harness.config.project import dbt_project_of, link_package
from harness.context import Context
from harness.controls.accept import SEEDS, Desk
from harness.controls.edits import PublishedTable
from harness.errors import DecideError, StateError
from harness.platform.dbt import unfinished_views
from harness.platform.json_file import UNREADABLE, save
from harness.store.integrity import require_intact

log = logging.getLogger(__name__)

#: Raised when what a state directory holds changes its meaning.
STATE_VERSION = 1
#: The tables that are made of a seed, which every decision reads.
_MADE_OF = {
    "heartbeat_controls": ("int_dependencies",),
    "event_triggers": ("int_dependencies",),
    "retry_policies": ("stg_retry_policies",),
}


def desk_of(context: Context) -> Desk:
    """Return what accepts the seeds of an installation."""
    return Desk(
        context.settings.project,
        context.home.accepted,
        context.store,
        may_read=context.settings.sensing.queries_may_read,
        configured=context.settings,
    )


def published_of(context: Context) -> PublishedTable:
    """Return the control table of an installation, as it was published."""
    return PublishedTable(context.home.published, context.store, context.settings.project)


class Installation:
    """The tables of one state directory.

    Args:
        context: The services.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._file = context.home.folder / "version.json"

    def check(self) -> None:
        """Check that the state directory may be read and written.

        Raises:
            StateError: It belongs to a newer version, or a table has lost its newest commit.
        """
        if self._context.target == LOCAL_TARGET:
            # Before anything is built: a commit on top of an empty one would hide it.
            schema = self._context.home.warehouse / f"{self._context.schema}.db"
            require_intact(schema, self._context.home.state)
        self._installed()

    def ensure(
        self, at: datetime, *, allow_mass_removal: bool = False, rebuild: bool = False
    ) -> bool:
        """Build every table and view if some are missing or older than the models.

        Some may be missing when a process was killed while dbt recreated them. The caller has
        checked that the state directory may be written.

        Args:
            at: The instant, for the file that records it.
            allow_mass_removal: Accept the removal of many control rows.
            rebuild: Build in any case.

        Returns:
            Whether anything was built.

        Raises:
            ControlsError: Many control rows are gone, or the controls CSV cannot be read and none
                was ever accepted; nothing was built.
            StateError: The folder belongs to a newer version, or cannot be written.
        """
        project = self._context.settings.project
        models = models_checksum(dbt_project_of(project))
        installed = self._installed()
        is_complete = not unfinished_views(self._context.home.folder).exists()
        if installed is not None and installed.models == models and is_complete and not rebuild:
            return False
        self.link()
        self._context.inbox.create()
        desk = desk_of(self._context)
        accepted = desk.accept(at, allow_mass_removal=allow_mass_removal)
        log.info("building every table and view")
        self._context.stop.activity.begin("building every table and view, once")
        with_triggers = accepted.has_triggers and self._build_with_triggers()
        if not with_triggers:
            self._context.dbt.build_everything(with_triggers=False)
        seeds = self._seeds()
        self._write(_Installed(models=models, with_triggers=with_triggers, seeds=seeds), at)
        return True

    def link(self) -> None:
        """Link a project outside of the package to the models that it is ticked by."""
        project = self._context.settings.project
        if dbt_project_of(project) != project and self._context.target == LOCAL_TARGET:
            link_package(project)

    def load_seeds(self, at: datetime) -> bool:
        """Load the seeds that are in force into their tables, those that are not there yet.

        Args:
            at: The instant, for the file that records it.

        Returns:
            Whether any was loaded.

        Raises:
            DecideError: dbt cannot load them.
            StateError: The folder belongs to a newer version, or cannot be written.
        """
        installed = self._installed()
        known = installed.seeds if installed else {}
        stale = [name for name, loaded in self._seeds().items() if known.get(name) != loaded]
        if stale:
            tables = {table for name in stale for table in _MADE_OF.get(name, ())}
            self._context.dbt.load_seeds([*stale, *sorted(tables)])
            if installed is not None:
                self._write(replace(installed, seeds=self._seeds()), at)
        return bool(stale)

    def _seeds(self) -> dict[str, object]:
        """Return what shows whether a seed is loaded: its file's checksum, its table's contents."""
        accepted, project = self._context.home.accepted, self._context.settings.project
        tables = self._context.store.fingerprints([seed.stem for seed in SEEDS])
        return {
            seed.stem: [_checksum([accepted / seed, project / seed]), tables[seed.stem]]
            for seed in SEEDS
        }

    def _build_with_triggers(self) -> bool:
        """Build everything; return whether that succeeded.

        What only the triggers need must not keep the rest from being built: the tick builds it
        again, and reports why it cannot.
        """
        try:
            self._context.dbt.build_everything(with_triggers=True)
        except DecideError as error:
            log.warning("building with the triggers failed (%s); building without them", error)
            return False
        return True

    def ensure_triggers(self, at: datetime) -> None:
        """Build what only the triggers need; when that is there, only what follows their CSV.

        Most installations have none, and it takes as long as all the rest.

        Args:
            at: The instant, for the file that records it.

        Raises:
            DecideError: A model failed.
            StateError: The folder belongs to a newer version, or cannot be written.
        """
        installed = self._installed()
        if installed is not None and installed.with_triggers:
            self._context.dbt.build("trigger_terms")
            return
        log.info("building the views of the triggers")
        self._context.stop.activity.begin("building the views of the triggers, once")
        self._context.dbt.build("triggers")
        if installed is not None:
            self._write(replace(installed, with_triggers=True), at)

    def _installed(self) -> "_Installed | None":
        """Return what is built; nothing when nothing is."""
        found = _read(self._file)
        if found is None:
            return None
        if found.version > STATE_VERSION:
            raise _too_new(self._context, found.version)
        return found

    def _write(self, installed: "_Installed", at: datetime) -> None:
        content = {
            "state_version": STATE_VERSION,
            "models": installed.models,
            "with_triggers": installed.with_triggers,
            "seeds": installed.seeds,
            "built_at": at.isoformat(),
        }
        save(self._file, content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installed:
    """What ``version.json`` contains."""

    version: int = STATE_VERSION
    #: The checksum of the models that are built.
    models: str
    with_triggers: bool
    #: Each seed that was loaded: the checksum of its file, and its table's contents after it.
    seeds: Mapping[str, object] = field(default_factory=dict)


def state_version(file: Path) -> int | None:
    """Return the version of a state directory; nothing when it is not set up.

    Raises:
        StateError: The file cannot be read.
    """
    found = _read(file)
    return None if found is None else found.version


def _read(file: Path) -> _Installed | None:
    try:
        content = json.loads(file.read_text())
        return _Installed(
            version=int(content["state_version"]),
            models=str(content["models"]),
            with_triggers=bool(content.get("with_triggers")),
            seeds=dict(content.get("seeds") or {}),
        )
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        message = f"{file} cannot be read ({error}); remove it, and `init` rewrites it"
        raise StateError(message) from error


def _place(context: Context) -> str:
    if context.target == LOCAL_TARGET:
        return f"The state directory {context.home.folder}"
    return f"The schema {context.schema}"


def _too_new(context: Context, version: int) -> StateError:
    another = "HEARTBEAT_HOME to another folder"
    if context.target != LOCAL_TARGET:
        another = "HEARTBEAT_SCHEMA to another schema"
    return StateError(
        f"{_place(context)} was written by a newer Heartbeat (state version {version}, this one "
        f"supports {STATE_VERSION}): use that version, or set {another}"
    )


def _checksum(candidates: Sequence[Path]) -> str | None:
    """Return the checksum of the first of these files that is there."""
    for file in candidates:
        with contextlib.suppress(FileNotFoundError):
            return sha256(file.read_bytes()).hexdigest()
    return None


def models_checksum(project: Path) -> str:
    """Return one checksum of everything that dbt builds tables and views from."""
    digest = sha256()
    files = [project / "dbt_project.yml", project / "selectors.yml"]
    for folder in ("models", "macros"):
        files += sorted(path for path in (project / folder).rglob("*") if path.is_file())
    for file in files:
        if file.exists():
            digest.update(str(file.relative_to(project)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def require_state(context: Context) -> None:
    """Check that there is something to read.

    Raises:
        StateError: The folder is not set up, or belongs to a newer version.
    """
    version = state_version(context.home.folder / "version.json")
    is_local = context.target == LOCAL_TARGET
    # In a workspace this was read from beside the tables.
    if version is None or (is_local and not context.store.exists("heartbeat_control")):
        raise StateError(f"{_place(context)} is not set up yet: run `python -m harness init` first")
    if version > STATE_VERSION:
        raise _too_new(context, version)
