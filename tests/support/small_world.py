"""An installation in memory, for tests of whole ticks: no Spark, no dbt, no Jobs API."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime
from pathlib import Path

from harness.config.load import load_settings
from harness.context import Context
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.errors import DecideError, StateError
from harness.sense.probe import ProbeResult
from harness.store.public_tables import PublicTable
from harness.store.state_dir import StateDir
from harness.store.work_lists import Upstream
from harness.tick.checkpoint import save_state
from harness.tick.engine import Engine
from harness.tick.install import desk_of
from harness.tick.state import TickState
from tests.support.background import Background
from tests.support.fake_clock import FakeClock
from tests.support.memory_store import MemoryStore

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Killed(BaseException):
    """The process died here."""


class NoDbt:
    """Builds nothing, and records what it was to build."""

    def __init__(self) -> None:
        #: The selectors that were requested.
        self.built: list[str] = []
        #: The variables of each.
        self.variables: list[object] = []
        #: The seeds that were loaded on their own, at each time.
        self.seeded: list[Sequence[str]] = []
        #: The selector that cannot be built.
        self.broken = ""

    def load_seeds(self, names: Sequence[str]) -> None:
        self.seeded.append(names)

    def build_everything(self, *, with_triggers: bool) -> None: ...

    def build(self, selector: str, variables: object = None) -> None:
        self.built.append(selector)
        self.variables.append(variables)
        if selector == self.broken:
            raise DecideError(f"there is no {selector}")


class SmallLooker:
    """Finds nothing new, or fails, for the reason that is set."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.looked_at: list[Upstream] = []

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        self.looked_at += upstreams
        if self.reason is not None:
            return [
                ProbeResult(upstream_id=each.upstream_id, failure=self.reason) for each in upstreams
            ]
        return [
            ProbeResult(upstream_id=each.upstream_id, position=each.position) for each in upstreams
        ]


class SmallContext(Context):
    """Reads the models from the world, and dies at the crash point that it names."""

    def __init__(self, world: "SmallWorld") -> None:
        super().__init__(load_settings(world.project, {}), {}, world.clock)
        self._world = world
        self.publishes_aside = world.background is not None

    def rows(self, relation: str) -> list[dict[str, object]]:
        """Read the rows that the test gives to a model."""
        self._world.read.append(relation)
        if relation == "trigger_set" and relation not in self._world.models:
            raise DecideError("there is no decision here")
        return [dict(row) for row in self._world.models[relation]()]

    def show(self, tables: Sequence[PublicTable]) -> None:
        """Have them published."""
        self._world.published += [table.name for table in tables]

    def fill(self, table: str, model: str) -> None:
        """Have it filled, or fail where the test sets it."""
        if table == self._world.dbt.broken:
            raise StateError(f"there is no {model}")

    def publishing(self) -> Executor:
        """Publish in the background of the world, if it has one."""
        return self._world.background or super().publishing()

    def crash_point(self, name: str) -> None:
        """Die here, if it is here."""
        if name == self._world.dies_at:
            raise Killed(name)


class SmallWorld:
    """A project, its ledgers in memory, and a scheduler that ticks in processes of their own.

    Args:
        project: An empty folder.
        controls: The lines of the controls CSV below its header.
    """

    def __init__(self, project: Path, controls: str = "") -> None:
        self.project = project
        self.clock = FakeClock(NOON)
        self.store = MemoryStore()
        self.probe_pool = SmallLooker()
        self.dbt = NoDbt()
        #: What each model returns when it is read.
        self.models: dict[str, Callable[[], Sequence[Mapping[str, object]]]] = {}
        #: The models that were read.
        self.read: list[str] = []
        #: The public tables that were brought up to date.
        self.published: list[str] = []
        self.dies_at = ""
        #: What publishes while the next ticks go on, if ticks do not wait for it.
        self.background: Background | None = None
        (project / "seeds").mkdir()
        (project / "heartbeat.yml").write_text("")
        self.edit(controls)

    @property
    def home(self) -> StateDir:
        """The places of the state directory."""
        return self.context().home

    def edit(self, controls: str) -> None:
        """Write the lines of the controls CSV."""
        (self.project / CONTROLS).write_text(",".join(COLUMNS) + "\n" + controls)

    def remember(self, **known: object) -> None:
        """Let the next process find what a tick at noon has left, with these changes."""
        checksum = desk_of(self.context()).checksum()
        usual = {"tick_number": 1, "folded_through": 1, "ended_tick_number": 1}
        unmoved = {"tick_at": NOON, "upstreams": (), "runs": (), "must_decide": False}
        fields = {**usual, **unmoved, "controls_checksum": checksum, **known}
        save_state(self.home.state, TickState(**fields), self.store)  # type: ignore[arg-type]

    def context(self) -> SmallContext:
        """Wire a process; each service is made at its first use, and these are here."""
        context = SmallContext(self)
        vars(context).update(
            store=self.store, probe_pool=self.probe_pool, dbt=self.dbt, session=None
        )
        return context

    def engine(self) -> Engine:
        """Return what ticks in one process."""
        return Engine(self.context())
