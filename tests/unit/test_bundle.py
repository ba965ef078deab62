"""What the asset bundle deploys to a workspace keeps what the manual promises of it.

The CLI's own check cannot be had here: these are the keys that the public documentation of bundles and of the Jobs API
names, so a key that is misspelt, or of a place where it means nothing, is refused.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from jinja2 import Environment
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML

from harness.cli.app import app
from harness.config.load import load_settings
from harness.config.model import JobsTarget
from harness.context import Context
from harness.errors import ConfigurationError, StateError

PROJECT = Path(__file__).parents[2]
BUNDLE = PROJECT / "bundle"
RESOURCES = BUNDLE / "resources"
JOBS = ("heartbeat", "heartbeat_init")
_VARIABLE = re.compile(r"\$\{var\.(\w+)\}")

Text = Annotated[str, Field(min_length=1)]


class Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Variable(Keys):
    description: Text
    default: str | None = None


class Artifact(Keys):
    type: Literal["whl"]
    path: Text
    build: Text


class Named(Keys):
    name: Text


class Sync(Keys):
    paths: list[Text]


class Workspace(Keys):
    root_path: Text


class Target(Keys):
    mode: Literal["development", "production"]
    default: bool = False
    variables: dict[str, str] = {}
    workspace: Workspace | None = None


class Spec(Keys):
    environment_version: Text
    dependencies: list[Text]


class JobEnvironment(Keys):
    environment_key: Text
    spec: Spec


class Queue(Keys):
    enabled: bool


class RunAs(Keys):
    service_principal_name: Text


class Permission(Keys):
    level: Literal["CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE"]
    group_name: Text


class Schedule(Keys):
    quartz_cron_expression: Text
    timezone_id: Text
    pause_status: Literal["PAUSED", "UNPAUSED"]


class Continuous(Keys):
    pause_status: Literal["PAUSED", "UNPAUSED"]


class Cluster(Keys):
    spark_version: Text
    node_type_id: Text
    num_workers: int
    spark_conf: dict[str, str]
    custom_tags: dict[str, str]
    data_security_mode: Literal["SINGLE_USER", "USER_ISOLATION"]
    single_user_name: Text


class JobCluster(Keys):
    job_cluster_key: Text
    new_cluster: Cluster


class Library(Keys):
    requirements: str | None = None
    whl: str | None = None


class WheelTask(Keys):
    package_name: Text
    entry_point: Text
    parameters: list[Text]


class Task(Keys):
    task_key: Text
    python_wheel_task: WheelTask
    environment_key: str | None = None
    job_cluster_key: str | None = None
    timeout_seconds: int | None = None
    libraries: list[Library] = []


class Job(Keys):
    name: Text
    description: Text
    max_concurrent_runs: int
    queue: Queue
    run_as: RunAs
    permissions: list[Permission]
    tasks: list[Task]
    environments: list[JobEnvironment] = []
    job_clusters: list[JobCluster] = []
    schedule: Schedule | None = None
    continuous: Continuous | None = None


class Resources(Keys):
    jobs: dict[str, Job]


class ResourceFile(Keys):
    resources: Resources
    variables: dict[str, Variable] = {}


class BundleFile(Keys):
    bundle: Named
    sync: Sync
    artifacts: dict[str, Artifact]
    variables: dict[str, Variable]
    include: list[Text]
    targets: dict[str, Target]


def loaded(path: Path) -> Mapping[str, Any]:
    content = YAML(typ="safe").load(path.read_text())
    assert isinstance(content, dict)
    return content


MAIN = BundleFile.model_validate(loaded(BUNDLE / "databricks.yml"))


@pytest.fixture(params=["serverless", "dedicated"])
def deployed(request: pytest.FixtureRequest) -> ResourceFile:
    found = ResourceFile.model_validate(loaded(RESOURCES / f"{request.param}.yml"))
    assert sorted(found.resources.jobs) == sorted(JOBS)
    return found


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest, deployed: ResourceFile) -> Job:
    return deployed.resources.jobs[request.param]


def rendered(deployed: ResourceFile, value: str) -> str:
    """Insert the value that every variable has on the production target."""
    variables = {**MAIN.variables, **deployed.variables}
    return _VARIABLE.sub(lambda found: variables[found[1]].default or f"given-{found[1]}", value)


def command_of(deployed: ResourceFile, job: Job) -> tuple[dict[str, str], str, list[str]]:
    """Return the options before the command, the command, and what follows it."""
    (task,) = job.tasks
    words = [rendered(deployed, each) for each in task.python_wheel_task.parameters]
    place = next(number for number, each in enumerate(words) if not each.startswith("--"))
    before = dict(each.removeprefix("--").split("=", 1) for each in words[:place])
    return before, words[place], words[place + 1 :]


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
    else:
        yield str(value)


def test_a_key_that_no_documentation_names_is_refused() -> None:
    content = {**loaded(RESOURCES / "serverless.yml")}
    content["resources"]["jobs"]["heartbeat"]["max_concurent_runs"] = 1
    with pytest.raises(ValidationError, match="max_concurent_runs"):
        ResourceFile.model_validate(content)


def test_serverless_compute_is_the_default() -> None:
    assert MAIN.include == ["resources/serverless.yml"]
    assert all((BUNDLE / each).is_file() for each in MAIN.include)


def test_a_job_runs_once_at_a_time_and_none_of_its_runs_is_queued(job: Job) -> None:
    # Set explicitly: a development target lets jobs without it run four times at once.
    assert job.max_concurrent_runs == 1
    assert job.queue.enabled is False


def test_a_job_runs_as_a_service_principal(deployed: ResourceFile, job: Job) -> None:
    assert job.run_as.service_principal_name == "${var.service_principal}"
    for cluster in job.job_clusters:
        assert cluster.new_cluster.single_user_name == job.run_as.service_principal_name


def test_a_task_has_compute_of_its_own(job: Job) -> None:
    (task,) = job.tasks
    if job.environments:
        assert [each.environment_key for each in job.environments] == [task.environment_key]
        assert not task.libraries
        return
    (cluster,) = job.job_clusters
    assert cluster.job_cluster_key == task.job_cluster_key
    assert cluster.new_cluster.num_workers == 0
    assert cluster.new_cluster.spark_conf["spark.databricks.cluster.profile"] == "singleNode"
    assert cluster.new_cluster.spark_conf["spark.sql.session.timeZone"] == "UTC"


def test_only_the_job_that_ticks_runs_by_itself(deployed: ResourceFile) -> None:
    ticks, init = (deployed.resources.jobs[name] for name in JOBS)
    assert bool(ticks.schedule) is not bool(ticks.continuous)
    assert init.schedule is init.continuous is None


def test_a_job_runs_a_command_that_there_is(deployed: ResourceFile, job: Job) -> None:
    before, name, after = command_of(deployed, job)
    group = typer.main.get_command(app)
    group.make_context("heartbeat", [f"--{key}={value}" for key, value in before.items()] + [name])
    group.commands[name].make_context(name, after)  # type: ignore[attr-defined]
    assert before["project"] == "${workspace.file_path}"


def test_the_wheel_has_the_entry_point_that_a_task_runs(job: Job) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    (task,) = job.tasks
    assert task.python_wheel_task.package_name == project["name"]
    assert project["scripts"][task.python_wheel_task.entry_point] == "harness.__main__:task"


def test_what_a_job_installs_is_there(job: Job) -> None:
    (task,) = job.tasks
    named = [text for each in task.libraries for text in (each.requirements, each.whl) if text]
    for environment in job.environments:
        named += environment.spec.dependencies
    assert "../../dist/*.whl" in named
    (requirements,) = (each for each in named if "requirements" in each)
    path = requirements.removeprefix("-r ").replace("${workspace.file_path}", str(PROJECT))
    assert (RESOURCES / path).resolve() == BUNDLE / "requirements.txt"
    assert {each.path for each in MAIN.artifacts.values()} == {".."}


def test_the_project_is_its_seeds_and_its_configuration() -> None:
    # The rest comes in the wheel, and so not over a file system of the workspace.
    assert MAIN.sync.paths == ["../seeds", "."]


def test_every_variable_is_declared_and_used(deployed: ResourceFile) -> None:
    content = deployed.model_dump()
    used = {name for text in texts_of(content) for name in _VARIABLE.findall(text)}
    declared = {*MAIN.variables, *deployed.variables}
    assert used <= declared
    assert declared - used <= {"cron"}


def test_no_secret_stands_in_the_bundle_nor_any_variable_of_the_environment() -> None:
    for path in BUNDLE.rglob("*.yml"):
        assert not re.search(r"dapi[0-9a-f]{8}|password|secret|token|env_vars", path.read_text())


def test_the_configuration_of_the_bundle_calls_the_workspace(deployed: ResourceFile) -> None:
    before, _, _ = command_of(deployed, deployed.resources.jobs["heartbeat"])
    environment = {f"HEARTBEAT_{name.upper()}": value for name, value in before.items()}
    settings = load_settings(PROJECT, environment)
    assert settings.jobs.target is JobsTarget.DATABRICKS
    assert settings.trigger_root == Path("/Volumes/my_catalog/heartbeat/trigger_files")
    assert Context(settings, environment).schema == "given-catalog.heartbeat"


@pytest.mark.parametrize("target", ["local", "databricks"])
@pytest.mark.parametrize(
    "given",
    [{"HEARTBEAT_CATALOG": "lake"}, {"HEARTBEAT_CATALOG": "lake", "HEARTBEAT_SCHEMA": "ours"}],
)
def test_the_harness_and_dbt_mean_the_same_schema(target: str, given: dict[str, str]) -> None:
    profile = loaded(PROJECT / "profiles.yml")["heartbeat"]["outputs"][target]
    parts = [
        Environment(autoescape=False).from_string(profile[part]).render(env_var=given.get)
        for part in ("catalog", "schema")
        if part in profile
    ]
    settings = load_settings(PROJECT, {})
    assert Context(settings, {**given, "HEARTBEAT_TARGET": target}).schema == ".".join(parts)


def test_a_temporary_folder_that_another_user_has_made_first_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"HEARTBEAT_TARGET": "databricks", "HEARTBEAT_CATALOG": "lake"}
    settings = replace(load_settings(PROJECT, given), home=tmp_path)
    context = Context(settings, given)
    monkeypatch.setattr(context.files, "read", list)
    context.use_own_state()
    monkeypatch.setattr("os.getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(StateError, match="belongs to another user of this machine: set HEARTBEAT"):
        context.use_own_state()


def test_no_catalog_is_assumed_in_a_workspace() -> None:
    context = Context(load_settings(PROJECT, {}), {"HEARTBEAT_TARGET": "databricks"})
    with pytest.raises(ConfigurationError, match="HEARTBEAT_CATALOG is not set: name the"):
        _ = context.schema


def test_the_compute_gets_what_the_lock_has_and_keeps_its_own_spark() -> None:
    lines = (BUNDLE / "requirements.txt").read_text().splitlines()
    wanted = {line for line in lines if not line.startswith("#")}
    locked = (PROJECT / "requirements.lock").read_text().splitlines()
    assert wanted <= {line.removesuffix(" \\") for line in locked}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[\[=<>]", each, maxsplit=1)[0] for each in project["dependencies"]}
    installed = {re.split(r"[\[=]", line, maxsplit=1)[0] for line in wanted}
    assert {name.replace(".", "-") for name in names} == installed
    assert not names & {"pyspark", "delta-spark", "dbt-spark", "py4j"}


def test_a_task_that_did_its_command_ends_without_an_exception(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.__main__ import task

    monkeypatch.setattr("sys.argv", ["heartbeat-task", "tick", "--help"])
    task()
    assert "Probe the upstreams, decide" in capsys.readouterr().out


def test_a_task_whose_command_ended_with_another_code_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from harness.__main__ import task

    monkeypatch.setattr("sys.argv", ["heartbeat-task", "no-such-command"])
    with pytest.raises(SystemExit) as stop:
        task()
    assert stop.value.code == 2
