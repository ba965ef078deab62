"""The folder of the demo: a copy of the project with its own controls, its lake and its state.

The checkout itself is never written to.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigurationError

CHECKOUT = Path(__file__).resolve().parents[2]
DEFAULT_FOLDER = CHECKOUT / ".heartbeat" / "demo"

_PARTS = (
    "dbt_project.yml",
    "profiles.yml",
    "selectors.yml",
    "log4j2.properties",
    "macros",
    "models",
    "seeds",
    # What this project offers to those who take it as a package, as one job of the demo does.
    "tests/dbt/generic",
)
_EXAMPLE = Path(__file__).resolve().parent
#: Marks the folder as ours, so that it may be emptied.
_MARK = "this is a demo"
#: Variables that would lead the demo elsewhere.
_UNSET = ("HEARTBEAT_TARGET", "HEARTBEAT_SCHEMA", "HEARTBEAT_CRASH_AT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder of the demo, part by part."""

    folder: Path

    @property
    def project(self) -> Path:
        """The copy of the project."""
        return self.folder / "project"

    @property
    def controls(self) -> Path:
        """The controls CSV of the copy."""
        return self.project / "seeds" / "heartbeat_controls.csv"

    @property
    def tables(self) -> Path:
        """The dbt project of the tables that one of the jobs keeps."""
        return self.folder / "tables"

    @property
    def lake(self) -> Path:
        """What arrives, and what the jobs make of it."""
        return self.folder / "lake"

    @property
    def home(self) -> Path:
        """The state directory of the harness."""
        return self.folder / "state"

    @property
    def variables(self) -> dict[str, str]:
        """The environment that makes every command of the harness use this place."""
        config = self.project / "heartbeat.yml"
        return {"HEARTBEAT_HOME": str(self.home), "HEARTBEAT_CONFIG": str(config)}

    def claim(self) -> None:
        """Make the folder, or take one that an earlier demo has left.

        Raises:
            ConfigurationError: Something else is in it.
        """
        mark = self.folder / _MARK
        if self.folder.exists() and not mark.exists() and _holds_anything(self.folder):
            raise ConfigurationError(
                f"The folder {self.folder} holds something that is not of the demo: "
                "name one that is empty or not there yet"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def clear(self) -> None:
        """Remove what an earlier demo has left; the lock stays, because we hold it."""
        for folder in (self.project, self.tables, self.lake):
            shutil.rmtree(folder, ignore_errors=True)
        for left in self.home.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            elif left.name != "lock":
                left.unlink()

    def build(self) -> None:
        """Copy the project, with the controls and the configuration of the demo."""
        self.project.mkdir()
        for part in _PARTS:
            source = CHECKOUT / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.project / part)
        shutil.copytree(_EXAMPLE / "tables", self.tables)
        shutil.copy(_EXAMPLE / "heartbeat.yml", self.project)
        shutil.copy(_EXAMPLE / "heartbeat_controls.csv", self.controls)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Work in the copy of the project, with the variables of the demo.

        The jobs are ``python -m examples...``: they get this Python and this checkout.
        """
        before = dict(os.environ)
        search = [str(CHECKOUT), before.get("PYTHONPATH", "")]
        programs = [str(Path(sys.executable).parent), before.get("PATH", os.defpath)]
        for name in _UNSET:
            os.environ.pop(name, None)
        os.environ.update(
            self.variables,
            PYTHONPATH=os.pathsep.join(filter(None, search)),
            PATH=os.pathsep.join(programs),
        )
        try:
            with chdir(self.project):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _holds_anything(folder: Path) -> bool:
    return not folder.is_dir() or any(folder.iterdir())
