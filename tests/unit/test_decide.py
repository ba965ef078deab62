"""What dbt's wrapper says of a project that cannot be read, and leaves while it makes views."""

import json
from pathlib import Path

import pytest

from harness.decide import Dbt, unfinished_views, unparsed
from harness.errors import DecideError
from harness.installation import Installation, models_checksum
from tests.unit.small_world import NOON, SmallWorld

TARGET = Path("/srv/home/target")


def test_a_damaged_target_folder_is_told_with_the_way_out() -> None:
    error = IsADirectoryError(21, "Is a directory", f"{TARGET}/partial_parse.msgpack")
    assert str(unparsed(error, TARGET)) == (
        f"dbt parse: [Errno 21] Is a directory: '{TARGET}/partial_parse.msgpack'; "
        f"remove {TARGET}, which dbt makes anew, and tick again"
    )


def test_a_mistake_in_the_project_is_told_as_dbt_tells_it() -> None:
    assert str(unparsed(ValueError("no such ref"), TARGET)) == "dbt parse: no such ref"


class _Interrupted(BaseException):
    """The process ends here."""


class _FakeRuns(Dbt):
    """Runs nothing: fails as it is told, and looks for the mark meanwhile."""

    def __init__(self, home: Path, error: BaseException | None = None) -> None:
        super().__init__(home, home, target="local", before=lambda: None)
        self._error = error
        self.mark = unfinished_views(home)
        self.saw_mark: list[bool] = []

    def _invoke(self, arguments: object, variables: object) -> None:
        self.saw_mark.append(self.mark.exists())
        if self._error is not None:
            raise self._error


def test_while_views_are_made_a_mark_says_so_and_one_who_only_fills_tables_leaves_none(
    tmp_path: Path,
) -> None:
    dbt = _FakeRuns(tmp_path)
    dbt.build("decide")
    dbt.build_everything(with_triggers=True)
    dbt.build("publish")
    dbt.build("look")
    assert dbt.saw_mark == [True, True, False, False]
    assert not dbt.mark.exists()


@pytest.mark.parametrize(
    ("error", "is_left"), [(DecideError("a model failed"), False), (_Interrupted(), True)]
)
def test_the_mark_stays_when_dbt_did_not_come_to_its_end(
    tmp_path: Path, error: BaseException, is_left: bool
) -> None:
    dbt = _FakeRuns(tmp_path, error)
    with pytest.raises(type(error)):
        dbt.build("fold")
    assert dbt.mark.exists() is is_left


def test_views_that_a_killed_process_has_left_unfinished_are_made_anew(tmp_path: Path) -> None:
    world = SmallWorld(tmp_path)
    home = world.home.folder
    installed = {"state_version": 1, "models": models_checksum(tmp_path)}
    home.mkdir(parents=True, exist_ok=True)
    (home / "version.json").write_text(json.dumps(installed))
    built = []
    for is_unfinished in (False, True):
        if is_unfinished:
            unfinished_views(home).write_text("build")
        built.append(Installation(world.context()).ensure(NOON))
    assert built == [False, True]
