"""The configuration: its defaults, its bounds, its sentences, and its secrets."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from harness.config.errors import SettingsError
from harness.config.load import Settings, load_settings
from harness.config.model import JobsTarget, PartialSuccess
from harness.config.reference import settings_keys
from harness.config.secrets import EnvironmentSecrets, SecretReference, SecretStore
from harness.config.sources import FirstSight
from harness.errors import ConfigurationError, ExitCode

PROJECT = Path(__file__).parents[3]
Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load_text(text: str, **environment: str) -> Settings:
        (tmp_path / "heartbeat.yml").write_text(text, encoding="utf-8")
        return load_settings(tmp_path, environment)

    return load_text


@pytest.fixture
def problems(load: Load) -> Callable[[str], tuple[str, ...]]:
    def problems_in(text: str) -> tuple[str, ...]:
        with pytest.raises(SettingsError) as caught:
            load(text)
        return caught.value.problems

    return problems_in


Problems = Callable[[str], tuple[str, ...]]


def test_an_empty_file_means_the_defaults(load: Load) -> None:
    settings = load("# nothing here\n")
    assert (settings.jobs.target, settings.jobs.starts_per_tick) == (JobsTarget.LOCAL, 50)
    assert (settings.sensing.threads, settings.sensing.look_timeout_seconds) == (32, 60)
    assert settings.jobs.success_with_failures is PartialSuccess.SUCCEEDED


def test_tables_that_queries_may_read_are_named_with_their_schema(load: Load) -> None:
    names = ["sales.seen", "main.sales.seen", "`my schema`.`a table`"]
    settings = load(f"sensing: {{queries_may_read: {json.dumps(names)}}}")
    assert settings.sensing.queries_may_read == tuple(names)


@pytest.mark.parametrize(
    "name", ["seen", "a.b.c.d", "/lake/seen", "parquet.`/lake/seen`", "delta.`s3:x`", "a.b; drop"]
)
def test_what_queries_may_read_is_no_folder_and_no_bare_name(name: str, problems: Problems) -> None:
    (reported,) = problems(f"sensing: {{queries_may_read: [{json.dumps(name)}]}}")
    assert "allowed is schema.table or catalog.schema.table" in reported


def test_the_shipped_file_states_the_defaults() -> None:
    shipped = load_settings(PROJECT, {})
    assert (shipped.jobs.starts_per_tick, shipped.sensing.first_sight) == (50, FirstSight.EVENT)


def test_a_local_job_runs_only_what_somebody_has_named(load: Load) -> None:
    own = "jobs: {local: {commands: {5: {command: make}}}}"
    assert [load(own).lacks_command(job_id) for job_id in (5, 6)] == [False, True]
    assert not load("jobs: {local: {default_command: make}}").lacks_command(6)
    assert not load("jobs: {target: databricks}").lacks_command(6)


CONNECTIONS = """
connections:
  kafka: {shop: {bootstrap_servers: "broker:9092"}}
  jdbc: {crm: {url: "jdbc:postgresql://db/crm"}}
  sap: {sap_bw: {url: "jdbc:sap://bw:30015"}}
  iceberg: {lake: {warehouse: /lake}}
"""


@pytest.mark.parametrize(
    ("source", "sensor_id", "missing"),
    [
        ("kafka", "shop: orders", None),
        ("kafka", "web: clicks", "connections.kafka.web"),
        ("kafka", "no topic", None),
        ("jdbc", "crm: public.customers", None),
        ("jdbc", "erp: (select 1)", "connections.jdbc.erp"),
        ("sap_bw", "CHAIN", None),
        ("sap_b4", "CHAIN", "connections.sap.sap_b4"),
        ("iceberg_table", "lake.sales.orders", None),
        ("iceberg_table", "pond.sales.orders", "connections.iceberg.pond"),
        ("iceberg_table", "/lake/sales/orders", None),
        ("iceberg_table", "s3://lake/sales/orders", None),
        ("delta_table", "pond.sales.orders", None),
    ],
)
def test_an_upstream_lacks_the_connection_that_heartbeat_yml_does_not_have(
    load: Load, source: str, sensor_id: str, missing: str | None
) -> None:
    assert load(CONNECTIONS).lacks_connection(source, sensor_id) == missing


@pytest.mark.parametrize(
    ("catalog", "source", "sensor_id", "found"),
    [
        ("prod-eu", "hive_table", "sales.orders", "prod-eu"),
        ("prod-eu", "hive_table", "hive_metastore.sales.orders", None),
        ("prod-eu", "delta_table", "sales.orders", None),
        ("hive_metastore", "hive_table", "sales.orders", None),
        (None, "hive_table", "sales.orders", None),
    ],
)
def test_a_hive_table_of_a_catalog_of_the_workspace_has_no_files(
    load: Load, catalog: str | None, source: str, sensor_id: str, found: str | None
) -> None:
    workspace = {"HEARTBEAT_TARGET": "databricks", "HEARTBEAT_CATALOG": catalog or ""}
    settings = load("", **(workspace if catalog else {}))
    assert settings.catalog_without_files(source, sensor_id) == found


def test_a_section_whose_keys_are_all_commented_out_is_empty(load: Load) -> None:
    text = "logs:\n  # keep: 3\njobs:\n  local:\n    commands:\nsensing:\n  upstreams:\n"
    assert load(text).logs.keep == 5


def test_state_lies_in_the_project_wherever_the_command_is_run(load: Load, tmp_path: Path) -> None:
    assert load("").home == (tmp_path / ".heartbeat").resolve()
    assert load("", HEARTBEAT_HOME="state").home == (tmp_path / "state").resolve()
    assert load("", HEARTBEAT_HOME="/var/heartbeat").home == Path("/var/heartbeat")


def test_the_environment_names_another_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text("logs: {keep: 7}\n")
    assert load("", HEARTBEAT_CONFIG="other.yml").logs.keep == 7


def test_trigger_files_lie_under_an_absolute_root(load: Load, tmp_path: Path) -> None:
    assert load("trigger_files: {root: in}").trigger_root == (tmp_path / "in").resolve()


def test_a_uri_is_no_trigger_file_root(problems: Problems) -> None:
    (reported,) = problems("trigger_files: {root: 'dbfs:/Volumes/in'}")
    assert "a folder is allowed, no URI" in reported


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"heartbeat\.yml: No such file") as caught:
        load_settings(tmp_path, {})
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_that_is_no_yaml_names_the_line(load: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"heartbeat\.yml:2: this is not valid YAML"):
        load("logs:\n  keep: 3: 4\n")


def test_a_key_twice_names_the_second_line_and_never_the_value(load: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"heartbeat\.yml:2: the key password") as caught:
        load("password: hunter1\npassword: hunter2\n")
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "5\n"])
def test_a_file_that_is_no_mapping_is_reported_as_such(load: Load, text: str) -> None:
    with pytest.raises(ConfigurationError, match="has to be a mapping"):
        load(text)


def test_an_unknown_key_names_file_line_and_key_and_what_is_meant(problems: Problems) -> None:
    assert problems("sensing:\n  thread: 5\n") == (
        "heartbeat.yml:2: sensing.thread: unknown key; did you mean threads?",
    )


def test_an_unknown_key_like_no_other_gets_the_list(problems: Problems) -> None:
    (reported,) = problems("logs: {colour: red}\n")
    assert reported.endswith("logs.colour: unknown key; allowed are format, max_megabytes, keep.")


def test_a_value_out_of_bounds_names_them(problems: Problems) -> None:
    assert problems("sensing:\n  threads: 0\n") == (
        "heartbeat.yml:2: sensing.threads: the number is out of bounds; allowed: integer,"
        " 1 to 256.",
    )


@pytest.mark.parametrize("value", ["'5'", "true", "5.5", "[5]", ".nan", "five"])
def test_only_a_whole_number_is_a_whole_number(problems: Problems, value: str) -> None:
    (reported,) = problems(f"sensing: {{threads: {value}}}")
    assert "sensing.threads: the value has the wrong form" in reported


@pytest.mark.parametrize("value", ["0", "-1", ".inf", ".nan", "3601"])
def test_a_time_limit_is_positive_and_bounded(problems: Problems, value: str) -> None:
    (reported,) = problems(f"sensing: {{look_timeout_seconds: {value}}}")
    assert "over 0 to 3,600" in reported


def test_a_word_that_is_none_of_the_allowed_names_them(problems: Problems) -> None:
    (reported,) = problems("jobs:\n  target: databrick\n")
    assert (
        reported
        == "heartbeat.yml:2: jobs.target: the value is not allowed; allowed: local or databricks."
    )


def test_all_problems_come_at_once_in_the_order_of_the_lines(problems: Problems) -> None:
    reported = problems("logs:\n  keep: 0\n  kep: 1\njobs:\n  target: x\nextra: 1\n")
    assert [line.split(":")[1] for line in reported] == ["2", "3", "5", "6"]


def test_jobs_are_read_from_the_mapping(load: Load) -> None:
    text = (
        "jobs:\n  local:\n    commands:\n"
        "      9007199254740993: {command: [python, a.py], timeout_seconds: 5}\n"
        "      '12': {command: ./b.sh, env: {A: b}}\n"
    )
    jobs = load(text).local_jobs
    assert jobs[9007199254740993].command == ("python", "a.py")
    assert (jobs[12].command, jobs[12].env) == ("./b.sh", {"A": "b"})


def test_jobs_are_read_from_a_file_of_their_own(load: Load, tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text("12: {command: 'true'}\n")
    assert load("jobs: {local: {commands: jobs.yml}}").local_jobs[12].command == "true"


def test_a_problem_in_the_file_of_jobs_names_that_file(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text("12:\n  comand: x\n")
    assert problems("jobs: {local: {commands: jobs.yml}}") == (
        "jobs.yml:1: 12.command: the key is missing; allowed: text or list.",
        "jobs.yml:2: 12.comand: unknown key; did you mean command?",
    )


@pytest.mark.parametrize("job_id", ["abc", "0", "-1", "9223372036854775808"])
def test_a_job_id_is_a_bigint_from_one(problems: Problems, job_id: str) -> None:
    (reported,) = problems(f"jobs: {{local: {{commands: {{{job_id}: {{command: x}}}}}}}}")
    assert "this is not a job id" in reported


def test_a_command_of_numbers_is_one_problem(problems: Problems) -> None:
    (reported,) = problems("jobs: {local: {commands: {1: {command: [1, 2]}}}}")
    assert "commands.1.command: the value has the wrong form; allowed: text or list." in reported


def test_a_secret_in_the_environment_of_a_job_is_refused(problems: Problems) -> None:
    (reported,) = problems(
        "jobs: {local: {commands: {1: {command: x, env: {DB_PASSWORD: hunter2}}}}}"
    )
    assert ("env.DB_PASSWORD must not stand in the file" in reported, "hunter2" in reported) == (
        True,
        False,
    )


def test_first_sight_is_set_for_single_upstreams(load: Load) -> None:
    text = (
        "sensing:\n  upstreams:\n"
        "    - {sensor_source: DELTA_TABLE, sensor_id: a.b, first_sight: baseline}\n"
    )
    sensing = load(text).sensing
    assert sensing.first_sight_of(" Delta_Table ", "a.b ") is FirstSight.BASELINE
    assert sensing.first_sight_of("delta_table", "a.c") is FirstSight.EVENT


def test_one_upstream_twice_is_a_problem(problems: Problems) -> None:
    entry = "{sensor_source: delta_table, sensor_id: a.b, first_sight: event}"
    (reported,) = problems(f"sensing: {{upstreams: [{entry}, {entry}]}}")
    assert "names delta_table 'a.b' twice" in reported


def test_a_problem_in_a_list_names_the_line_of_its_entry(problems: Problems) -> None:
    reported = problems(
        "sensing:\n  upstreams:\n    - sensor_source: delta\n      sensor_id: a.b\n      first_sight: event\n"
    )
    assert reported[0].startswith("heartbeat.yml:3: sensing.upstreams.0.sensor_source: ")


@pytest.mark.parametrize("keys", ["{}", "{warehouse: /lake, url: 'jdbc:postgresql://h/lake'}"])
def test_an_iceberg_catalog_is_a_folder_or_a_database(problems: Problems, keys: str) -> None:
    (reported,) = problems(f"connections: {{iceberg: {{lake: {keys}}}}}")
    assert "connections.iceberg.lake: it needs either warehouse, a folder, or url" in reported


def test_a_warehouse_is_absolute(problems: Problems) -> None:
    (reported,) = problems("connections: {iceberg: {lake: {warehouse: lake}}}")
    assert "connections.iceberg.lake.warehouse: allowed is an absolute path or a URI" in reported


KAFKA = (
    "connections:\n  kafka:\n    my_product:\n      bootstrap_servers: {servers}\n      {more}\n"
)


@pytest.mark.parametrize("servers", ["'a:1, b:2'", "[a:1, b:2]"])
def test_brokers_are_a_list_or_separated_by_commas(load: Load, servers: str) -> None:
    kafka = load(KAFKA.format(servers=servers, more="")).connections.kafka
    assert kafka["my_product"].bootstrap_servers == ("a:1", "b:2")


def test_a_sasl_protocol_needs_user_and_password(problems: Problems) -> None:
    (reported,) = problems(KAFKA.format(servers="a:1", more="security_protocol: SASL_SSL"))
    assert "SASL_SSL needs sasl_mechanism, user and password as well" in reported


def test_a_password_is_a_reference(load: Load) -> None:
    kafka = load(KAFKA.format(servers="a:1", more="password: env:KAFKA")).connections.kafka
    assert kafka["my_product"].password == SecretReference(SecretStore.ENVIRONMENT, "KAFKA")


@pytest.mark.parametrize("literal", ["hunter2", "'env:'", "env:a b", "secret:x", "12345", "[a]"])
def test_a_literal_password_is_refused_and_never_repeated(problems: Problems, literal: str) -> None:
    (reported,) = problems(KAFKA.format(servers="a:1", more=f"password: {literal}"))
    assert "allowed is a reference, env:NAME or secret:scope/key" in reported
    assert "hunter2" not in reported


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://u:hunter2@h/d",
        "jdbc:sqlserver://h;password=hunter2;a=b",
        "jdbc:sqlserver://h;encrypt=true;trustStorePassword = hunter2",
        "jdbc:db2://h:50000/d:user=u;PASSWORD=hunter2;",
        "jdbc:oracle:thin:u/hunter2@//h:1521/s",
        "jdbc:postgresql://h/d?user=u&sslpassword=hunter2",
        "jdbc:mysql://(host=h,user=u,password=hunter2)/d",
        "jdbc:snowflake://h/?private_key_pwd=hunter2",
        "jdbc:databricks://h:443;PWD=hunter2",
        "jdbc:databricks://h:443;Auth_AccessToken=hunter2",
        "jdbc:athena://h;AwsSecretAccessKey=hunter2",
    ],
)
def test_a_password_in_an_address_is_refused_and_never_repeated(load: Load, url: str) -> None:
    with pytest.raises(SettingsError, match="must not stand in the address") as caught:
        load(f"connections: {{jdbc: {{shop: {{url: '{url}'}}}}}}")
    chain = (caught.value, caught.value.__cause__, caught.value.__context__)
    assert caught.value.__suppress_context__
    assert not any("hunter2" in str(each) for each in chain)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://h:5432/d?ssl=true&applicationName=heartbeat",
        "jdbc:oracle:thin:@//h:1521/service",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=h)(PORT=1521)))",
        "jdbc:sqlserver://h:1433;databaseName=d;encrypt=true",
        "jdbc:sap://h:30015/?databaseName=d&validateCertificate=true",
        "jdbc:derby:/data/a:b/c@d",
        "jdbc:sqlserver://h;tokenExpiryCheck=true",
    ],
)
def test_an_address_without_a_password_is_taken(load: Load, url: str) -> None:
    settings = load(f"connections: {{jdbc: {{shop: {{url: '{url}'}}}}}}")
    assert settings.connections.jdbc["shop"].url == url


def test_an_sap_system_is_configured_by_its_source(load: Load) -> None:
    text = "connections: {sap: {sap_bw: {url: 'jdbc:sap://h:30015', password: 'env:SAP'}}}"
    system = load(text).connections.sap.sap_bw
    assert system is not None
    assert (system.look_back_days, system.log_table) == (7, "RSPCLOGCHAIN")


SCOPED = "connections: {jdbc: {shop: {url: 'jdbc:x:y', password: 'secret:s/k'}}}"


def test_a_secret_scope_without_a_workspace_is_refused_with_its_key(problems: Problems) -> None:
    [reported] = problems(f"logs: {{keep: 3}}\n{SCOPED}")
    assert reported == (
        "heartbeat.yml:2: connections.jdbc.shop.password: secret:s/k is in a Databricks workspace,"
        " and none is configured; set DATABRICKS_HOST and a way to log in, or write env:NAME."
    )


def test_every_secret_scope_without_a_workspace_is_reported_at_once(problems: Problems) -> None:
    reported = problems(
        "connections:\n"
        "  kafka: {a: {bootstrap_servers: 'a:1', password: 'secret:s/a'}}\n"
        "  jdbc: {b: {url: 'jdbc:x:y', password: 'secret:s/b'}}\n"
        "  sap: {sap_b4: {url: 'jdbc:x:y', password: 'secret:s/c'}}\n"
    )
    assert [each.split(": ")[1] for each in reported] == [
        "connections.kafka.a.password",
        "connections.jdbc.b.password",
        "connections.sap.sap_b4.password",
    ]


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("jobs: {target: databricks}\n", {}),
        ("", {"HEARTBEAT_TARGET": "databricks"}),
        ("", {"DATABRICKS_HOST": "https://example.cloud.databricks.com"}),
        ("", {"DATABRICKS_CONFIG_PROFILE": "production"}),
    ],
    ids=["jobs", "target", "host", "profile"],
)
def test_a_workspace_is_configured_in_several_ways(
    load: Load, text: str, environment: dict[str, str]
) -> None:
    assert load(text + SCOPED, **environment).has_workspace


@pytest.mark.parametrize("variable", ["HEARTBEAT_TARGET=local", "DATABRICKS_HOST="])
def test_without_the_name_of_a_workspace_none_is_configured(load: Load, variable: str) -> None:
    name, _, value = variable.partition("=")
    assert not load("", **{name: value}).has_workspace


def test_settings_do_not_change(load: Load) -> None:
    with pytest.raises(ValidationError):
        load("").jobs.starts_per_tick = 1  # type: ignore[misc]


REFERENCE = SecretReference(SecretStore.ENVIRONMENT, "KAFKA_PASSWORD")


def test_a_reference_is_masked_in_text_and_json(load: Load) -> None:
    kafka = load(KAFKA.format(servers="a:1", more="password: env:KAFKA_PW")).connections
    texts = [str(REFERENCE), repr(REFERENCE), repr(kafka), kafka.model_dump_json()]
    assert not any("KAFKA_PW" in text or "KAFKA_PASSWORD" in text for text in texts)
    assert json.loads(TypeAdapter(SecretReference).dump_json(REFERENCE)) == "env:***"


def test_a_pickled_reference_holds_no_value() -> None:
    secret = REFERENCE.resolve(EnvironmentSecrets({"KAFKA_PASSWORD": "hunter2"}))
    assert b"hunter2" not in pickle.dumps(REFERENCE)
    assert pickle.loads(pickle.dumps(REFERENCE)) == REFERENCE
    assert secret.get_secret_value() == "hunter2"


def test_a_resolved_secret_is_masked_in_text() -> None:
    secret = REFERENCE.resolve(EnvironmentSecrets({"KAFKA_PASSWORD": "hunter2"}))
    assert "hunter2" not in f"{secret} {secret!r}"


@pytest.mark.parametrize("environment", [{}, {"KAFKA_PASSWORD": ""}])
def test_a_secret_that_is_not_there_names_its_reference(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="env:KAFKA_PASSWORD is not set"):
        REFERENCE.resolve(EnvironmentSecrets(environment))


def test_a_secret_scope_needs_a_workspace() -> None:
    with pytest.raises(ConfigurationError, match="Databricks workspace"):
        SecretReference.parse("secret:scope/key").resolve(EnvironmentSecrets({}))


def test_every_key_has_a_meaning() -> None:
    assert [key.name for key in settings_keys() if not key.meaning.endswith(".")] == []


def test_the_examples_in_the_shipped_file_are_right_when_uncommented(load: Load) -> None:
    text = (PROJECT / "heartbeat.yml").read_text(encoding="utf-8")
    example = r"(\d+:$|(name|command|timeout_seconds|kafka|my_product|bootstrap_servers|user): ?"
    example += r"|(security_protocol|sasl_mechanism|password): |- \{)"
    settings = load(re.sub(rf"^( +)# ( *)(?={example})", r"\1\2", text, flags=re.MULTILINE))
    assert set(settings.local_jobs) == {111111111}
    assert settings.sensing.first_sight_of("delta_table", "sales.orders") is FirstSight.BASELINE
    assert settings.connections.kafka["my_product"].user == "heartbeat"


def test_a_limit_below_that_of_a_connection_is_refused(problems: Problems) -> None:
    [problem] = problems(
        "sensing: {limits: {jdbc: 10}}\n"
        "connections: {jdbc: {shop: {url: 'jdbc:x:y', timeout_seconds: 30}}}\n"
    )
    assert problem.endswith(
        "sensing.limits.jdbc is 10 s, less than timeout_seconds of its connections; write at"
        " least 30, or lower timeout_seconds."
    )


def test_a_limit_out_of_its_bounds_states_what_is_allowed(problems: Problems) -> None:
    [problem] = problems("sensing:\n  limits:\n    kafka: 0\n")
    assert problem == (
        "heartbeat.yml:3: sensing.limits.kafka: the number is out of bounds; allowed: number, over"
        " 0 to 3,600."
    )


def test_a_limit_of_no_source_names_the_sources_that_there_are(problems: Problems) -> None:
    [problem] = problems("sensing: {limits: {pigeon: 5}}\n")
    assert "sensing.limits.pigeon: unknown sensor_source; allowed are delta_" in problem


_TWO_CLUSTERS = """
connections:
  kafka:
    good:
      bootstrap_servers: broker.example.com:9092
    bad:
      bootstrap_server: broker.example.com:9092
"""


def test_a_wrong_connection_is_left_out_with_its_line_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "heartbeat.yml").write_text(_TWO_CLUSTERS)
    with pytest.raises(SettingsError):
        load_settings(tmp_path, {})
    settings = load_settings(tmp_path, {}, may_quarantine=True)
    assert list(settings.connections.kafka) == ["good"]
    assert all(each.startswith("heartbeat.yml:") for each in settings.quarantined)
    assert "connections.kafka.bad" in settings.quarantined[0]


@pytest.mark.parametrize("more", ["jobs:\n  starts_per_tick: none\n", "conections: {}\n"])
def test_a_wrong_setting_beside_a_wrong_connection_still_stops(tmp_path: Path, more: str) -> None:
    (tmp_path / "heartbeat.yml").write_text(_TWO_CLUSTERS + more)
    with pytest.raises(SettingsError):
        load_settings(tmp_path, {}, may_quarantine=True)
