"""Runs dbt in this process: seeds the controls, builds the decision, publishes what came of it.

It runs operations in the projects of others, too.

It has the names of selectors, not what they select. A selector that selects nothing is a
failure, because dbt itself would report a success.
"""

import contextlib
import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import DecideError
from harness.platform.files import write_atomically
from harness.platform.sql.refusals import without_grpc
from harness.platform.stopping import Activity

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunner, dbtRunnerResult
    from dbt.contracts.graph.manifest import Manifest
    from dbt.contracts.graph.nodes import ModelNode, SeedNode
    from dbt_common.events.base_types import EventMsg

log = logging.getLogger(__name__)

#: Selectors of tables alone; every view stays as it is.
_FILLS_TABLES = frozenset({"fold", "trigger_terms"})
_BESIDE_TICKS = "fold"
#: The names of dbt's events that show why an operation failed.
_OPERATION_FAILED = frozenset({"RunningOperationCaughtError", "RunningOperationUncaughtError"})
#: Below ``sys.prefix``: the project of the package as the set-up has parsed it, kept by dbt.
PARSED = Path("share", "heartbeat", "partial_parse.msgpack")
#: Neither a manifest nor results are written.
_WITHOUT_FILES = "--no-write-json"
_HEADLINE = re.compile(r"(\w+ Error( in \w+ \S+ \(.*\))?$)")


class Dbt:
    """The one wrapper around ``dbtRunner``; never two invocations at once.

    Args:
        project: The folder with ``dbt_project.yml``, and with ``profiles.yml`` unless ``profiles``
            is set; read-only.
        home: The state directory, which gets dbt's target folder and logs.
        target: The output of ``profiles.yml``; without it the one that the profile names.
        before: Called before every invocation: starts the session that dbt is to use.
        before_views: Called before an invocation that may make views again.
    """

    def __init__(
        self,
        project: Path,
        home: Path,
        *,
        target: str | None,
        before: Callable[[], object],
        before_views: Callable[[], object] = lambda: None,
    ) -> None:
        self._project = project
        self._home = home
        self._target = target
        self._before = before
        self._before_views = before_views
        #: Gets how many nodes of an invocation are done.
        self.activity = Activity()
        #: So many tables are filled at a time, maybe beside a decision; 0: as the profile sets it.
        self.threads_beside_ticks = 0
        #: Has the seeds that are in force; those that it lacks are the project's.
        self.accepted: Path | None = None
        #: Returns the variables that the profile finds during an invocation: a login.
        self.login: Callable[[], Mapping[str, str]] = dict
        #: The folder with ``profiles.yml``.
        self.profiles = project
        #: What the set-up has parsed, for a state directory where nothing has been parsed.
        self.parsed: Path | None = None
        #: The result of parsing; a caller that has it for this state directory may set it.
        self.manifest: Manifest | None = None

    def parse(self) -> "Manifest":
        """Read the project; dbt parses what has changed since it last did, here or at the set-up.

        Raises:
            DecideError: The project cannot be parsed.
        """
        with _quiet_warnings():
            from dbt.cli.main import dbtRunner
        target = self._home / "target"
        if self.parsed is not None and not (kept := target / PARSED.name).exists():
            # Where it is missing, torn or of another dbt, dbt parses everything.
            with contextlib.suppress(OSError):
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.parsed, kept)
        parsed = dbtRunner().invoke(["parse", *self._globals()])
        if isinstance(parsed.exception, KeyboardInterrupt):
            raise parsed.exception
        if not parsed.success:
            raise unparsed(parsed.exception, target)
        manifest = cast("Manifest", parsed.result)
        for node in manifest.nodes.values():
            if node.package_name == manifest.metadata.project_name and hasattr(node, "root_path"):
                # Of a seed that has not changed, dbt keeps where it was: maybe in another copy.
                node.root_path = str(self._project.absolute())
        return manifest

    def build(self, selector: str, variables: Mapping[str, object] | None = None) -> None:
        """Build what a selector names: models and their gate tests, no unit tests.

        Raises:
            DecideError: A model or a test failed, or the selector selects nothing.
        """
        arguments = ["build", "--selector", selector, "--exclude-resource-type", "unit_test"]
        if selector in _FILLS_TABLES:
            if selector == _BESIDE_TICKS and self.threads_beside_ticks:
                arguments += ["--threads", str(self.threads_beside_ticks)]
            self._invoke(arguments, variables)
        else:
            self._make_views(arguments, variables)

    def load_seeds(self, names: Sequence[str]) -> None:
        """Load seeds into their tables.

        Args:
            names: The seeds, and the tables that are made of them.

        Raises:
            DecideError: One of them failed.
        """
        arguments = ["build", "--select", *names, "--exclude-resource-type", "unit_test", "test"]
        self._make_views(arguments, None)

    def build_everything(self, *, with_triggers: bool) -> None:
        """Create or update every table and view, seeds included; ledgers keep their rows.

        Args:
            with_triggers: Also what only an installation with triggers needs.

        Raises:
            DecideError: A model failed.
        """
        selector = "everything" if with_triggers else "without_triggers"
        arguments = ["build", "--selector", selector, "--exclude-resource-type"]
        self._make_views([*arguments, "unit_test", "test"], None)

    def operate(self, operation: str, arguments: Mapping[str, object]) -> list[str]:
        """Run an operation; return the lines that it prints.

        Raises:
            DecideError: The operation failed, or refused.
        """
        text: list[str] = []
        refused: list[str] = []

        def listen(event: "EventMsg") -> None:
            if event.info.name == "JinjaLogInfo":
                text.append(str(event.data.msg))
            elif event.info.name in _OPERATION_FAILED:
                # The result does not have it.
                refused.append(str(event.data.exc))

        runner = self._ready()
        runner.callbacks.append(listen)
        given = ["run-operation", operation, "--args", json.dumps(dict(arguments))]
        result = self._run(runner, given, None)
        if result.exception is not None or not result.success:
            raise DecideError(_first_line(next(iter(refused), result.exception)))
        return text

    def document(self, *, with_types: bool = True) -> Path:
        """Write the documentation of the project as one page, and return its path.

        Args:
            with_types: Compile the models, and read the columns of the tables; else neither tables
                nor an engine are needed.

        Raises:
            DecideError: dbt failed.
        """
        generate = ["docs", "generate", "--static"]
        if with_types:
            self._before()
            invocations = [generate]
        else:
            # Without compiling, nothing but parsing writes the manifest.
            invocations = [["parse"], [*generate, "--empty-catalog", "--no-compile"]]
        with _quiet_warnings():
            from dbt.cli.main import dbtRunner
        runner = dbtRunner(callbacks=[_Count(self.activity)])
        options = [each for each in self._globals() if each != _WITHOUT_FILES]
        for arguments in invocations:
            with _variables(self.login()):
                result = runner.invoke([*arguments, *options])
            if isinstance(result.exception, KeyboardInterrupt):
                raise result.exception
            if not result.success:
                raise DecideError(f"dbt {arguments[0]}: {_first_line(result.exception)}")
        return self._home / "target" / "static_index.html"

    def _make_views(self, arguments: Sequence[str], variables: Mapping[str, object] | None) -> None:
        """Run dbt, and leave a mark while it runs: killed, it may leave some views unmade."""
        runner = self._ready()
        self._load_accepted_seeds()
        mark = unfinished_views(self._home)
        write_atomically(mark, " ".join(arguments))
        self._before_views()
        result = self._run(runner, arguments, variables)
        if not _may_lack_views(result):
            mark.unlink(missing_ok=True)
        _check(arguments, result)

    def _load_accepted_seeds(self) -> None:
        """Let dbt load the seeds that are in force from where they are kept."""
        accepted = self.accepted
        if accepted is None or self.manifest is None:
            return
        for node in self.manifest.nodes.values():
            if str(node.resource_type) == "seed" and (accepted / node.original_file_path).is_file():
                # The project has no file of this name, so dbt reads the one below `root_path`. An
                # absolute path would also be where dbt writes the SQL that it runs.
                node.original_file_path = str(Path(accepted.name, node.original_file_path))
                cast("SeedNode", node).root_path = str(accepted.parent.absolute())

    def _invoke(self, arguments: Sequence[str], variables: Mapping[str, object] | None) -> None:
        _check(arguments, self._run(self._ready(), arguments, variables))

    def _run(
        self,
        runner: "dbtRunner",
        arguments: Sequence[str],
        variables: Mapping[str, object] | None,
    ) -> "dbtRunnerResult":
        with _variables(self.login()):
            result = runner.invoke([*arguments, *self._globals(), *_vars(variables)])
        if isinstance(result.exception, KeyboardInterrupt):
            # dbt catches it, cleans up and returns it.
            raise result.exception
        return result

    def _ready(self) -> "dbtRunner":
        """Make a runner, parsing the project while the session starts."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="parse") as pool:
            parsing = pool.submit(self._runner)
            self._before()
            shown = self._shown()
            before = shown.words
            if not parsing.done():
                shown.begin("reading the dbt project")
            runner = parsing.result()
            runner.callbacks.append(_Count(shown))
            shown.begin(before)
            return runner

    def _shown(self) -> Activity:
        """Return where progress is shown: what runs beside the ticks is no phase of theirs."""
        is_main = threading.current_thread() is threading.main_thread()
        return self.activity if is_main else Activity()

    def _runner(self) -> "dbtRunner":
        """Make a runner with the manifest of this process; parse the project once."""
        if self.manifest is None:
            self.manifest = self.parse()
        from dbt.cli.main import dbtRunner

        forget_inlined(self.manifest)
        return dbtRunner(manifest=self.manifest)

    def _globals(self) -> list[str]:
        folders = {"--target-path": self._home / "target", "--log-path": self._home / "logs"}
        paths = [part for name, path in folders.items() for part in (name, str(path))]
        place = ["--project-dir", str(self._project)]
        if (self.profiles / "profiles.yml").is_file():
            place += ["--profiles-dir", str(self.profiles)]
        quiet = ["--quiet", "--no-use-colors", "--log-level", "none", _WITHOUT_FILES]
        target = ["--target", self._target] if self._target else []
        return [*quiet, "--no-send-anonymous-usage-stats", *paths, *place, *target]


def forget_inlined(manifest: "Manifest") -> None:
    """Let dbt inline ephemeral models again: it does so once for each node of a manifest."""
    for node in manifest.nodes.values():
        if getattr(node, "extra_ctes_injected", False):
            compiled = cast("ModelNode", node)
            compiled.extra_ctes_injected, compiled.extra_ctes = False, []


class _Count:
    """Counts the nodes that an invocation has done, beside the words of its phase."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._words = ""
        self._done = self._all = 0

    def __call__(self, event: "EventMsg") -> None:
        """Process an event of dbt."""
        if event.info.name == "ConcurrencyLine":
            # The phase at work now, without how far an earlier invocation came.
            self._words = self._activity.words.partition(" (")[0]
            self._all = int(event.data.node_count)
        elif event.info.name == "NodeFinished":
            # dbt counts no inlined model among the nodes, and reports its end all the same.
            self._done += event.data.node_info.materialized != "ephemeral"
        else:
            return
        if self._all:
            self._activity.begin(f"{self._words} ({self._done} of {self._all})")


@contextlib.contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    """Let dbt find variables in the environment during its run."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def unfinished_views(home: Path) -> Path:
    """Return the file that is there as long as views may be missing: a killed process leaves it."""
    return home / "views.unfinished"


def _may_lack_views(result: "dbtRunnerResult") -> bool:
    """Return whether dbt broke off, or failed at a view: its session may have died in between."""
    failed = (getattr(each, "node", None) for each in _nodes(result) if _has_failed(each))
    return result.exception is not None or any(
        str(getattr(getattr(node, "config", None), "materialized", "")) == "view" for node in failed
    )


def _check(arguments: Sequence[str], result: "dbtRunnerResult") -> None:
    """Raise what went wrong.

    Raises:
        DecideError: dbt failed, or nothing was selected.
    """
    if result.exception is not None:
        raise DecideError(f"dbt {arguments[0]}: {_first_line(result.exception)}")
    done = _nodes(result)
    if not result.success:
        raise DecideError(f"dbt {arguments[0]}: {_failures(done)}")
    # Hooks run even when nothing is selected.
    nodes = [each for each in done if not _is_hook(each)]
    if not nodes:
        raise DecideError(f"dbt {' '.join(arguments[:3])} selected nothing")
    log.info("dbt %s: %s nodes", " ".join(arguments[:3]), len(nodes))


def _nodes(result: "dbtRunnerResult") -> Sequence[object]:
    return cast("Sequence[object]", getattr(result.result, "results", ()))


def unparsed(error: BaseException | None, target: Path) -> DecideError:
    """Return the error for a project that cannot be parsed, or a target folder that is damaged."""
    text = f"dbt parse: {_first_line(error)}"
    if isinstance(error, OSError):
        return DecideError(f"{text}; remove {target}, which dbt recreates, and tick again")
    return DecideError(text)


@contextlib.contextmanager
def _quiet_warnings() -> Iterator[None]:
    """Keep the warnings of dbt's own imports off the terminal."""
    import warnings

    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _vars(variables: Mapping[str, object] | None) -> list[str]:
    return ["--vars", json.dumps(dict(variables))] if variables else []


def _failures(nodes: Sequence[object]) -> str:
    failed = [node for node in nodes if _has_failed(node)]
    reported = [
        f"{getattr(getattr(node, 'node', None), 'name', '?')}: "
        f"{_first_line(getattr(node, 'message', ''))}"
        for node in failed
    ]
    return "; ".join(reported) or "it did not succeed"


def _has_failed(result: object) -> bool:
    return str(getattr(result, "status", "")) in {"error", "fail"}


def _is_hook(result: object) -> bool:
    return str(getattr(getattr(result, "node", None), "resource_type", "")) == "operation"


def _first_line(text: object) -> str:
    """Return the first line of dbt's message past headlines that only repeat the model's name."""
    lines = [line.strip() for line in without_grpc(str(text)).splitlines() if line.strip()]
    informative = (line for line in lines if not _HEADLINE.match(line))
    return next(informative, str(text).strip()[:200])
