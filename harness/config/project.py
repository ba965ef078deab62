"""Finds the project that a process works on, and the dbt project that comes with this package.

In a checkout the two are one folder. Elsewhere the project holds what its users edit (seeds,
``heartbeat.yml``, ``profiles.yml``), and links to the packaged models, so that plain ``dbt`` works
in it; the harness reads the package itself and needs no link.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from harness.errors import ConfigurationError

log = logging.getLogger(__name__)

#: Names the project for a process that runs elsewhere.
PROJECT_VARIABLE = "HEARTBEAT_PROJECT"

_HARNESS = Path(__file__).resolve().parents[1]
_CHECKOUT = _HARNESS.parent
_INSTALLED = _HARNESS / "_project"
_IS_CHECKOUT = not _INSTALLED.is_dir()

#: The folder with the dbt project of this version: the checkout, or its place in the wheel.
PACKAGE = _CHECKOUT if _IS_CHECKOUT else _INSTALLED

#: Users edit the other CSV files of ``seeds``; without the first there is no project.
STATUS_TRANSITIONS = "status_transitions.csv"
_CONTROLS = "heartbeat_controls.csv"
#: What plain ``dbt`` needs of the package, besides files of ``seeds``.
_LINKED = (
    "dbt_project.yml",
    "selectors.yml",
    "log4j2.properties",
    "macros",
    "models",
    "tests/dbt",
)


def project_folder(environment: Mapping[str, str]) -> Path:
    """Return the project: HEARTBEAT_PROJECT, the current folder or one above it, or the checkout.

    Args:
        environment: The variables of the process.

    Raises:
        ConfigurationError: There is none.
    """
    named = environment.get(PROJECT_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "heartbeat.yml").is_file() and (folder / "seeds").is_dir():
            return folder
    if _IS_CHECKOUT:
        return _CHECKOUT
    raise ConfigurationError(
        f"There is no project in {here} or above it (heartbeat.yml and seeds/): change to its "
        f"folder, set {PROJECT_VARIABLE}, or create one with `heartbeat new DIR`"
    )


def dbt_project_of(project: Path) -> Path:
    """Return the folder with the models of a project: its own, or the package.

    A project may lack the links: they are not in version control.
    """
    own = project / "dbt_project.yml"
    is_packaged = own.is_symlink() or not (own.exists() or _IS_CHECKOUT)
    return PACKAGE if is_packaged else project


def link_package(project: Path) -> None:
    """Let plain ``dbt`` find the packaged models in a project; what the user put there stays.

    An optional seed that is missing is created without rows.
    """
    try:
        seeds = sorted((PACKAGE / "seeds").iterdir())
        edited = [
            file for file in seeds if file.suffix == ".csv" and file.name != STATUS_TRANSITIONS
        ]
        linked = [file for file in seeds if file not in edited]
        for target in (*(PACKAGE / name for name in _LINKED), *linked):
            _link(project / target.relative_to(PACKAGE), target)
        for file in edited:
            own = project / "seeds" / file.name
            if file.name != _CONTROLS and not own.exists():
                header, _, _ = file.read_text(encoding="utf-8").partition("\n")
                own.write_text(f"{header}\n", encoding="utf-8")
    except OSError as error:
        # The harness works without them.
        log.warning("plain dbt cannot be used in %s: %s", project, error)


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        if link.readlink() == target:
            return
        link.unlink()
    elif link.exists():
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
