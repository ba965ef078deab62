"""What the asset bundle deploys to a workspace keeps what the manual promises of it."""

import re
import runpy
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from jinja2 import Environment
from ruamel.yaml import YAML

from harness.cli.app import app
from harness.config.load import load_settings
from harness.config.model import JobsTarget
from harness.context import Context
from harness.errors import ConfigurationError

PROJECT = Path(__file__).parents[2]
BUNDLE = PROJECT / "bundle"
JOBS = ("heartbeat", "heartbeat_init")
#: Of what the project depends on, a cluster brings its own.
OF_THE_CLUSTER = {"pyspark", "delta-spark", "dbt-spark"}
#: What the engine needs, which is of the local target alone.
OF_THE_CLUSTER |= {"grpcio", "grpcio-status", "googleapis-common-protos", "zstandard"}
_REFERENCE = re.compile(r"\{\{secrets/[\w.-]+/[\w.-]+\}\}")
_VARIABLE = re.compile(r"\$\{var\.(\w+)\}")


def loaded(path: Path) -> Mapping[str, Any]:
    content = YAML(typ="safe").load(path.read_text())
    assert isinstance(content, dict)
    return content


def variables() -> dict[str, str]:
    """What every variable is on the target that is for earnest; some are named at the deployment."""
    declared = loaded(BUNDLE / "databricks.yml")["variables"]
    return {name: str(each.get("default", f"given-{name}")) for name, each in declared.items()}


def rendered(value: object) -> str:
    return _VARIABLE.sub(lambda found: variables()[found[1]], str(value))


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    jobs: Mapping[str, Mapping[str, Any]] = loaded(BUNDLE / "resources" / "jobs.yml")["resources"][
        "jobs"
    ]
    assert sorted(jobs) == sorted(JOBS)
    return jobs[request.param]


@pytest.fixture
def cluster(job: Mapping[str, Any]) -> Mapping[str, Any]:
    (only,) = job["job_clusters"]
    new: Mapping[str, Any] = only["new_cluster"]
    return new


@pytest.fixture
def environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    return {name: rendered(value) for name, value in cluster["spark_env_vars"].items()}


def command_of(job: Mapping[str, Any]) -> list[str]:
    (task,) = job["tasks"]
    return [rendered(each) for each in task["spark_python_task"]["parameters"]]


def names_of_variables(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from names_of_variables(each)
    elif isinstance(value, list):
        for each in value:
            yield from names_of_variables(each)
    else:
        yield from _VARIABLE.findall(str(value))


def test_a_job_runs_once_at_a_time_and_none_of_its_runs_is_queued(job: Mapping[str, Any]) -> None:
    # Said outright: a development target lets jobs that do not say it run four times at once.
    assert job["max_concurrent_runs"] == 1
    assert job["queue"] == {"enabled": False}


def test_a_job_has_a_single_node_of_its_own(
    job: Mapping[str, Any], cluster: Mapping[str, Any]
) -> None:
    assert cluster["num_workers"] == 0
    assert cluster["spark_conf"]["spark.databricks.cluster.profile"] == "singleNode"
    assert [task["job_cluster_key"] for task in job["tasks"]] == ["single_node"]


def test_the_job_that_ticks_is_always_followed_by_its_next_run() -> None:
    jobs = loaded(BUNDLE / "resources" / "jobs.yml")["resources"]["jobs"]
    assert jobs["heartbeat"]["continuous"] == {"pause_status": "UNPAUSED"}
    assert not {"continuous", "schedule", "trigger"} & {*jobs["heartbeat_init"]}


def test_a_job_runs_a_command_that_there_is(job: Mapping[str, Any]) -> None:
    project, name, *options = command_of(job)
    assert project == "${workspace.file_path}"
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    commands[name].make_context(name, options)


def test_what_a_job_names_is_there(job: Mapping[str, Any]) -> None:
    (task,) = job["tasks"]
    (library,) = task["libraries"]
    for name in (task["spark_python_task"]["python_file"], library["requirements"]):
        assert (BUNDLE / "resources" / name).is_file()
    assert loaded(BUNDLE / "databricks.yml")["include"] == ["resources/*.yml"]


def test_the_whole_project_is_deployed() -> None:
    # What is left out by hand is soon something that is needed, such as the tests that dbt reads.
    assert loaded(BUNDLE / "databricks.yml")["sync"] == {"paths": [".."]}


def test_every_variable_is_declared_and_used() -> None:
    used = {*names_of_variables(loaded(BUNDLE / "resources" / "jobs.yml"))}
    assert used == {*variables()}


def test_no_secret_stands_in_the_bundle(environment: dict[str, str]) -> None:
    secret = {
        name: value
        for name, value in environment.items()
        if re.search("TOKEN|SECRET|PASSWORD|KEY", name)
    }
    assert [*secret] == ["DATABRICKS_TOKEN"]
    assert all(_REFERENCE.fullmatch(value) for value in secret.values())
    for path in BUNDLE.rglob("*.yml"):
        assert not re.search(r"dapi[0-9a-f]{8}|password\s*:", path.read_text())


def test_everything_that_the_workspace_profile_asks_of_the_environment_is_given(
    environment: dict[str, str],
) -> None:
    profile = loaded(PROJECT / "profiles.yml")["heartbeat"]["outputs"]["databricks"]
    requests = {*re.findall(r"env_var\('(\w+)'", " ".join(map(str, profile.values())))}
    assert requests <= {*environment}
    assert environment["HEARTBEAT_TARGET"] == "databricks"


def test_the_configuration_of_the_bundle_calls_the_workspace_and_keeps_its_state_in_a_volume(
    environment: dict[str, str],
) -> None:
    settings = load_settings(PROJECT, environment)
    assert settings.jobs.target is JobsTarget.DATABRICKS
    assert settings.home == Path("/Volumes/given-catalog/heartbeat/state")
    assert settings.trigger_root == Path("/Volumes/my_catalog/heartbeat/state/trigger_files")
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


def test_no_catalog_is_assumed_in_a_workspace() -> None:
    context = Context(load_settings(PROJECT, {}), {"HEARTBEAT_TARGET": "databricks"})
    with pytest.raises(ConfigurationError, match="HEARTBEAT_CATALOG is not set: name the"):
        _ = context.schema


def test_a_cluster_gets_what_the_lock_has_and_keeps_its_own_spark() -> None:
    lines = (BUNDLE / "requirements.txt").read_text().splitlines()
    wanted = {line for line in lines if not line.startswith("#")}
    locked = (PROJECT / "requirements.lock").read_text().splitlines()
    assert wanted <= {line.removesuffix(" \\") for line in locked}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[\[=<>]", each, maxsplit=1)[0] for each in project["dependencies"]}
    installed = {re.split(r"[\[=]", line, maxsplit=1)[0] for line in wanted}
    assert {name.replace(".", "-") for name in names - OF_THE_CLUSTER} == installed


def run_task(*arguments: str) -> None:
    runpy.run_path(str(BUNDLE / "task.py"))["main"](arguments)


def test_a_task_that_did_its_command_ends_without_an_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_task(str(PROJECT), "tick", "--help")
    assert "Probe the upstreams once, decide" in capsys.readouterr().out


def test_a_task_whose_command_ended_with_another_code_fails() -> None:
    with pytest.raises(SystemExit) as stop:
        run_task(str(PROJECT), "no-such-command")
    assert stop.value.code == 2
