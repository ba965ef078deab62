"""How long a probe of each source may take."""

from harness.config.model import ConfigurationFile
from harness.sense.schedule import probe_limits


def limits_of(text: str) -> dict[str, float]:
    content = ConfigurationFile.model_validate_json(text)
    return probe_limits(content.sensing, content.connections)


def kafka(seconds: int, sensing: str = "{}") -> str:
    cluster = f'{{"bootstrap_servers": "a:1", "timeout_seconds": {seconds}}}'
    return f'{{"sensing": {sensing}, "connections": {{"kafka": {{"shop": {cluster}}}}}}}'


def database(seconds: int) -> str:
    system = f'{{"url": "jdbc:x:y", "timeout_seconds": {seconds}}}'
    return f'{{"connections": {{"sap": {{"sap_bw": {system}}}}}}}'


def test_a_source_without_a_connection_has_the_limit_of_the_project() -> None:
    assert limits_of("{}") == {}


def test_a_limit_that_is_written_down_holds() -> None:
    assert limits_of('{"sensing": {"limits": {"file": 7}}}') == {"file": 7}


def test_a_slow_cluster_is_given_time_for_every_request_of_a_probe() -> None:
    assert limits_of(kafka(100)) == {"kafka": 400}


def test_a_slow_database_is_given_time_for_its_queries_and_more() -> None:
    assert limits_of(database(100)) == {"sap_bw": 200}


def test_quick_connections_leave_the_limit_of_the_project() -> None:
    assert limits_of(kafka(5)) == {"kafka": 60}


def test_a_limit_that_is_written_down_goes_before_one_that_is_worked_out() -> None:
    assert limits_of(kafka(100, '{"limits": {"kafka": 150}}')) == {"kafka": 150}
