"""What dbt's wrapper reports of a project that cannot be read, and leaves while it makes views."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import DecideError, StateError
from harness.platform.dbt import Dbt, unfinished_views, unparsed
from harness.tick.install import Installation, models_checksum
from tests.support.small_world import NOON, SmallWorld

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunner, dbtRunnerResult
    from dbt.contracts.graph.manifest import Manifest

TARGET = Path("/srv/home/target")


def test_a_damaged_target_folder_is_reported_with_the_way_out() -> None:
    error = IsADirectoryError(21, "Is a directory", f"{TARGET}/partial_parse.msgpack")
    assert str(unparsed(error, TARGET)) == (
        f"dbt parse: [Errno 21] Is a directory: '{TARGET}/partial_parse.msgpack'; "
        f"remove {TARGET}, which dbt recreates, and tick again"
    )


def test_a_mistake_in_the_project_is_reported_as_dbt_reports_it() -> None:
    assert str(unparsed(ValueError("no such ref"), TARGET)) == "dbt parse: no such ref"


def test_an_engine_that_ends_under_dbt_is_reported_in_a_sentence() -> None:
    error = RuntimeError(
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n>"
    )
    assert str(unparsed(error, TARGET)) == (
        "dbt parse: Spark does not answer: its engine has ended, or the network is away"
    )


class _Interrupted(BaseException):
    """The process ends here."""


class _FakeRuns(Dbt):
    """Runs nothing: ends as a test specifies, and checks for the mark meanwhile."""

    def __init__(self, home: Path, ends: "dbtRunnerResult | BaseException") -> None:
        super().__init__(home, home, target="local", before=self._start_session)
        self.accepted = home / "accepted"
        self._ends = ends
        self.mark = unfinished_views(home)
        self.saw_mark: list[bool] = []
        self.arguments: list[list[str]] = []
        self.session_error: Exception | None = None

    def _start_session(self) -> None:
        if self.session_error is not None:
            raise self.session_error

    def _runner(self) -> "dbtRunner":
        return cast("dbtRunner", SimpleNamespace(callbacks=[]))

    def _run(
        self, runner: object, arguments: Sequence[str], variables: object
    ) -> "dbtRunnerResult":
        self.arguments.append(list(arguments))
        self.saw_mark.append(self.mark.exists())
        if isinstance(self._ends, BaseException):
            raise self._ends
        return self._ends


def _ended(status: str, materialized: str) -> "dbtRunnerResult":
    node = SimpleNamespace(name="a_model", config=SimpleNamespace(materialized=materialized))
    done = SimpleNamespace(status=status, message=status, node=node)
    return _result(success=status == "success", results=[done])


def _result(
    *, success: bool, results: list[object], error: BaseException | None = None
) -> "dbtRunnerResult":
    ended = SimpleNamespace(
        success=success, exception=error, result=SimpleNamespace(results=results)
    )
    return cast("dbtRunnerResult", ended)


def test_while_views_are_made_a_mark_shows_it_and_a_build_that_only_fills_tables_leaves_none(
    tmp_path: Path,
) -> None:
    dbt = _FakeRuns(tmp_path, _ended("success", "view"))
    dbt.build("decide")
    dbt.build_everything(with_triggers=True)
    dbt.build("trigger_terms")
    assert dbt.saw_mark == [True, True, False]
    assert not dbt.mark.exists()


def test_tables_that_are_filled_beside_decisions_are_filled_one_at_a_time(tmp_path: Path) -> None:
    dbt = _FakeRuns(tmp_path, _ended("success", "table"))
    dbt.build("fold")
    (tmp_path / "heartbeat.yml").touch()
    context = Context(load_settings(tmp_path, {}), {})
    dbt.threads_beside_ticks = context.dbt.threads_beside_ticks
    context.close()
    dbt.build("fold")
    for selector in ("trigger_terms", "tail"):
        dbt.build(selector)
    is_single = [each[-2:] == ["--threads", "1"] for each in dbt.arguments]
    assert is_single == [False, True, False, False]


def test_the_seeds_that_are_in_force_are_loaded_and_the_others_from_the_project(
    tmp_path: Path,
) -> None:
    file = tmp_path / "accepted" / "seeds" / "a.csv"
    file.parent.mkdir(parents=True)
    file.touch()
    nodes = {
        name: SimpleNamespace(resource_type=kind, original_file_path=f"seeds/{name}.csv")
        for name, kind in (("a", "seed"), ("b", "seed"))
    }
    dbt = _FakeRuns(tmp_path, _ended("success", "seed"))
    dbt.manifest = cast("Manifest", SimpleNamespace(nodes=nodes))
    for _ in range(2):
        dbt.load_seeds(["a", "b"])
        accepted = nodes["a"]
        assert Path(accepted.root_path, accepted.original_file_path) == file
        # dbt writes the SQL of a seed below its target folder, at this path.
        assert not Path(accepted.original_file_path).is_absolute()
        assert nodes["b"].original_file_path == "seeds/b.csv"


@pytest.mark.parametrize(
    ("ends", "is_left"),
    [
        pytest.param(_ended("error", "table"), False, id="a table failed"),
        pytest.param(_ended("fail", "test"), False, id="a gate failed"),
        pytest.param(_ended("error", "view"), True, id="a view failed: Spark may have died"),
        pytest.param(
            _result(success=False, results=[], error=ConnectionError("the JVM is gone")),
            True,
            id="dbt broke off",
        ),
        pytest.param(_Interrupted(), True, id="the process ended"),
    ],
)
def test_the_mark_stays_when_views_may_be_missing(
    tmp_path: Path, ends: "dbtRunnerResult | BaseException", is_left: bool
) -> None:
    dbt = _FakeRuns(tmp_path, ends)
    with pytest.raises((DecideError, _Interrupted)):
        dbt.build("tail")
    assert dbt.saw_mark == [True]
    assert dbt.mark.exists() is is_left


def test_a_session_that_does_not_start_leaves_no_mark(tmp_path: Path) -> None:
    dbt = _FakeRuns(tmp_path, _ended("success", "view"))
    dbt.session_error = StateError("the lease is another's")
    with pytest.raises(StateError, match="another's"):
        dbt.build("tail")
    assert dbt.saw_mark == []
    assert not dbt.mark.exists()


def test_views_that_a_killed_process_has_left_unfinished_are_made_again(tmp_path: Path) -> None:
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


def test_what_runs_beside_the_ticks_is_no_phase_of_theirs(tmp_path: Path) -> None:
    dbt = _FakeRuns(tmp_path, _ended("success", "table"))
    dbt.activity.begin("sensing")
    with ThreadPoolExecutor() as pool:
        beside = pool.submit(dbt._ready).result()
    own = dbt._ready()
    for runner in (beside, own):
        (count,) = runner.callbacks
        count(_event("ConcurrencyLine", node_count=2))
        count(_event("NodeFinished", node_info=SimpleNamespace(materialized="table")))
        words = "sensing" if runner is beside else "sensing (1 of 2)"
        assert dbt.activity.words == words


def _event(name: str, **data: object) -> Any:
    return SimpleNamespace(info=SimpleNamespace(name=name), data=SimpleNamespace(**data))
