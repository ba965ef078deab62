"""What an engine reports becomes one sentence with the way out."""

import pytest

from harness.platform.sql.refusals import refused


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "[INSUFFICIENT_PERMISSIONS] Insufficient privileges:\nUser does not have MODIFY on Table 'prod-eu.hb.inbox'."
            " SQLSTATE: 42501",
            "The principal that this process logs in as lacks MODIFY on the table `prod-eu`.`hb`.`inbox`; its owner can "
            "run: grant modify on table `prod-eu`.`hb`.`inbox` to the principal that this process logs in as",
        ),
        (
            "PERMISSION_DENIED: User `ann@example.com` does not have USE SCHEMA on Schema 'main.hb'.",
            "ann@example.com lacks USE SCHEMA on the schema `main`.`hb`; its owner can run: "
            "grant use schema on schema `main`.`hb` to `ann@example.com`",
        ),
        (
            "[NO_SUCH_CATALOG_EXCEPTION] Catalog 'main' was not found. Please verify. SQLSTATE: 42704",
            "There is no catalog 'main', or it is not shown to this principal; set HEARTBEAT_CATALOG to the catalog of "
            "the tables, or have USE CATALOG on it granted",
        ),
        (
            "[CONFIG_NOT_AVAILABLE] Configuration a.b is not available. SQLSTATE: 42K0I",
            "[CONFIG_NOT_AVAILABLE] Configuration a.b is not available; this compute lets few settings be set: use "
            "dedicated compute",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\nselect 1 / 0",
            "[DIVIDE_BY_ZERO] Division by zero",
        ),
        (
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "
            '"failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:54035: Connection refused"',
            "Spark does not answer: its engine has ended, or the network is away; try again",
        ),
    ],
)
def test_a_refusal_states_what_is_wrong_and_what_to_do(message: str, sentence: str) -> None:
    assert str(refused(message)) == sentence


def test_a_table_that_is_not_there_is_distinguished_from_one_that_may_not_be_read() -> None:
    assert refused("[TABLE_OR_VIEW_NOT_FOUND] no such table").is_not_there
    assert not refused("[INSUFFICIENT_PERMISSIONS] no").is_not_there
    assert not refused("[NO_SUCH_CATALOG_EXCEPTION] Catalog 'x' was not found").is_not_there


def test_a_message_that_repeats_a_statement_of_a_megabyte_is_read_as_far_as_it_means_something() -> (
    None
):
    error = refused("[PARSE_SYNTAX_ERROR] Syntax error at 'x'.\n== SQL ==\n" + "A" * 2**20)
    assert error.condition == "PARSE_SYNTAX_ERROR"
    assert len(str(error)) < 400
