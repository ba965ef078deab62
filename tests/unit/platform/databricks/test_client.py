"""The client over the real SDK, with answers from a list: no socket, no server."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
import requests
from databricks.sdk import WorkspaceClient
from requests.adapters import BaseAdapter

from harness.errors import JobsApiError, ThrottledError, UnreportedRunsError
from harness.platform.databricks.api import Accepted, NotAllowed, Unknown
from harness.platform.databricks.client import (
    LOG_IN_AGAIN_AFTER,
    MOST_PAGES,
    ClientSettings,
    DatabricksJobs,
    connect,
)
from harness.platform.databricks.rate_limit import TokenBucket
from tests.support.fake_clock import FakeClock

HOST = "http://127.0.0.1:9"
RUN = {"run_id": 5, "job_id": 1, "state": {"life_cycle_state": "RUNNING"}}
STARTED = {"run_id": 5}
PAGE = "<html><title>Sign in</title></html>"


@dataclass(slots=True, kw_only=True)
class Answer:
    """What comes back for one request."""

    body: object = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> requests.Response:
        reported = requests.Response()
        reported.status_code = self.status
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        reported._content = text.encode()
        is_page = text.startswith("<")
        reported.headers["Content-Type"] = "text/html" if is_page else "application/json"
        reported.headers.update(self.headers)
        return reported


class Line(BaseAdapter):
    """Answers one request after the other, and keeps what came; the last answer stays."""

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__()
        self._answers = answers
        self._lock = threading.Lock()
        self.requests: list[requests.PreparedRequest] = []

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:  # type: ignore[override]
        with self._lock:
            self.requests.append(request)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        reported = answer.response()
        reported.request, reported.url = request, str(request.url)
        return reported

    def close(self) -> None: ...


class Desk:
    """A client, and how often it has logged in; each login brings a secret of its own."""

    def __init__(self, *answers: Answer) -> None:
        self.line = Line(list(answers))
        self.clock = FakeClock(datetime(2026, 3, 1, 8, tzinfo=UTC))
        self.logins = 0
        self.may_log_in = True
        self.jobs = DatabricksJobs(ClientSettings(host=HOST), clock=self.clock, login=self._login)

    def _login(self, settings: ClientSettings) -> WorkspaceClient:
        self.logins += 1
        if not self.may_log_in:
            raise JobsApiError("there are no credentials any more")
        client = connect(ClientSettings(host=settings.host, token=f"secret-{self.logins}"))
        client.api_client._api_client._session.mount("http://", self.line)
        return client

    def run_now(self) -> object:
        return self.jobs.run_now(job_id=1, token="t", parameters={})

    def secrets(self) -> list[str]:
        return [str(r.headers["Authorization"]) for r in self.line.requests]


def refusal(status: int) -> Answer:
    code = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}.get(status, "SOME_ERROR")
    return Answer(status=status, body={"error_code": code, "message": "Invalid access token."})


CALLS = {
    "run_now": lambda jobs: jobs.run_now(job_id=1, token="t", parameters={}),
    "get_run": lambda jobs: jobs.get_run(5),
    "list_runs": lambda jobs: list(jobs.list_runs(1)),
    "cancel_run": lambda jobs: jobs.cancel_run(5),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_is_renewed_once_and_used_by_the_next_request(
    call: str, status: int
) -> None:
    desk = Desk(refusal(status))
    for _ in range(3):
        try:
            CALLS[call](desk.jobs)
        except JobsApiError as error:
            assert "Invalid access token" in str(error)
    assert desk.logins == 2
    # One request for each call: the caller sends it again in its own time.
    assert desk.secrets() == ["Bearer secret-1", "Bearer secret-2", "Bearer secret-2"]


def test_a_renewed_login_that_works_starts_the_run() -> None:
    desk = Desk(refusal(401), Answer(body=STARTED))
    assert isinstance(desk.run_now(), NotAllowed)
    assert desk.run_now() == Accepted(run_id=5)


def test_a_login_that_stays_refused_is_renewed_again_after_a_while() -> None:
    desk = Desk(refusal(403))
    desk.run_now()
    desk.clock.sleep(LOG_IN_AGAIN_AFTER.total_seconds() - 1)
    desk.run_now()
    assert desk.logins == 2
    desk.clock.sleep(1)
    desk.run_now()
    assert desk.logins == 3


def test_a_login_that_cannot_be_renewed_leaves_the_old_one() -> None:
    desk = Desk(refusal(401), Answer(body=STARTED))
    desk.may_log_in = False
    assert isinstance(desk.run_now(), NotAllowed)
    assert desk.run_now() == Accepted(run_id=5)


def test_many_refusals_at_once_renew_the_login_once() -> None:
    desk = Desk(refusal(401))
    threads = [threading.Thread(target=desk.run_now) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert desk.logins == 2


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_no_other_answer_renews_the_login(status: int) -> None:
    desk = Desk(refusal(status))
    desk.run_now()
    assert desk.logins == 1


def test_the_workspace_keeps_its_name_when_the_login_is_renewed() -> None:
    desk = Desk(refusal(401))
    before = desk.jobs.workspace
    desk.run_now()
    assert desk.jobs.workspace == before == HOST


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_an_answer_that_sends_the_client_elsewhere_is_not_followed_and_renews_the_login(
    status: int,
) -> None:
    elsewhere = {"Location": f"{HOST}/oidc/login?code=secret"}
    desk = Desk(Answer(status=status, headers=elsewhere), Answer(body=STARTED))
    answer = desk.run_now()
    assert isinstance(answer, NotAllowed)
    assert "127.0.0.1/oidc/login" in answer.message
    assert "secret" not in answer.message
    assert (len(desk.line.requests), desk.logins) == (1, 2)
    assert desk.run_now() == Accepted(run_id=5)


def test_a_login_page_states_nothing_about_a_run() -> None:
    desk = Desk(Answer(body=PAGE))
    with pytest.raises(JobsApiError, match="run 5: the answer is not JSON"):
        desk.jobs.get_run(5)


@pytest.mark.parametrize(
    "body",
    [{}, {"state": {"life_cycle_state": "RUNNING"}}, {**RUN, "run_id": 7}, {**RUN, "run_id": 5.0}],
    ids=str,
)
def test_an_answer_that_is_not_about_the_run_states_nothing_about_it(body: object) -> None:
    with pytest.raises(JobsApiError, match="did not report on run 5"):
        Desk(Answer(body=body)).jobs.get_run(5)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"runs": None},
        {"runs": {}},
        {"has_more": None},
        {"has_more": True},
        {"next_page_token": ""},
        {"runs": [RUN], "has_more": True},
        {"runs": [{**RUN, "job_id": 2}], "has_more": False},
        PAGE,
    ],
    ids=str,
)
def test_an_answer_that_is_no_whole_list_does_not_mean_that_there_are_no_more_runs(
    body: object,
) -> None:
    with pytest.raises(JobsApiError, match="did not list the runs of job 1"):
        list(Desk(Answer(body=body)).jobs.list_runs(1))


@pytest.mark.parametrize(
    "body", [{"has_more": False}, {"runs": []}, {"runs": [], "has_more": False}]
)
def test_a_job_without_runs_has_none(body: object) -> None:
    assert list(Desk(Answer(body=body)).jobs.list_runs(1)) == []


@pytest.mark.parametrize("body", [{}, "", {"runs": None}, {"next_page_token": ""}])
def test_an_answer_that_states_nothing_of_runs_proves_nothing_although_the_api_has_the_job(
    body: object,
) -> None:
    desk = Desk(Answer(body=body), Answer(body={"job_id": 1}))
    with pytest.raises(UnreportedRunsError, match="has job 1, and lists none of its runs"):
        list(desk.jobs.list_runs(1))
    assert [str(r.url).split("?")[0] for r in desk.line.requests] == [
        f"{HOST}/api/2.2/jobs/runs/list",
        f"{HOST}/api/2.2/jobs/get",
    ]


def test_an_empty_answer_about_a_job_that_is_gone_proves_nothing_as_runs_outlive_their_job() -> (
    None
):
    missing = {"error_code": "INVALID_PARAMETER_VALUE", "message": "Job 1 does not exist."}
    desk = Desk(Answer(body={}), Answer(status=400, body=missing))
    with pytest.raises(
        UnreportedRunsError, match="does not have job 1, and lists none of its runs"
    ):
        list(desk.jobs.list_runs(1))


@pytest.mark.parametrize("about", [{}, {"job_id": 2}, {"job_id": 1.0}, [], PAGE], ids=str)
def test_an_empty_answer_of_what_does_not_recognize_the_job_states_nothing_of_its_runs(
    about: object,
) -> None:
    with pytest.raises(JobsApiError, match="did not list the runs of job 1"):
        list(Desk(Answer(body={}), Answer(body=about)).jobs.list_runs(1))


def _page(number: int) -> Answer:
    return Answer(body={"runs": [RUN], "has_more": True, "next_page_token": str(number)})


def test_a_list_ends_at_a_bound_and_reports_that_it_is_not_whole() -> None:
    desk = Desk(*map(_page, range(MOST_PAGES + 1)))
    reports = desk.jobs.list_runs(1)
    assert [next(reports).run_id for _ in range(MOST_PAGES)] == [RUN["run_id"]] * MOST_PAGES
    with pytest.raises(UnreportedRunsError, match="the older ones were not read"):
        next(reports)
    assert len(desk.line.requests) == MOST_PAGES


def test_every_page_of_a_list_waits_for_the_rate_of_questions() -> None:
    desk = Desk(_page(1), _page(2), Answer(body={"runs": [RUN], "has_more": False}))
    bucket = TokenBucket(desk.clock, per_second=1, burst=1)
    jobs = DatabricksJobs(
        ClientSettings(host=HOST), clock=desk.clock, login=desk._login, before_page=bucket.take
    )
    bucket.take()
    began = desk.clock.now()
    assert len(list(jobs.list_runs(1))) == 3
    assert desk.clock.now() - began == timedelta(seconds=2)


def test_a_list_whose_pages_come_round_again_ends_with_an_error() -> None:
    first = Answer(body={"runs": [RUN], "has_more": True, "next_page_token": "a"})
    second = Answer(body={"runs": [RUN], "has_more": True, "next_page_token": "b"})
    desk = Desk(first, second, first)
    with pytest.raises(JobsApiError, match="the same page again"):
        list(desk.jobs.list_runs(1))
    assert len(desk.line.requests) == 3


@pytest.mark.parametrize("call", ["get_run", "list_runs"])
def test_too_many_requests_are_reported_with_the_wait_within_bounds(call: str) -> None:
    desk = Desk(replace(refusal(429), headers={"Retry-After": "3600"}))
    with pytest.raises(ThrottledError) as raised:
        CALLS[call](desk.jobs)
    assert raised.value.wait_seconds == 600


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {}, 1),
        (429, {"Retry-After": "0"}, 0),
        (429, {"Retry-After": "2"}, 2),
        (429, {"Retry-After": "3600"}, 600),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 1),
        (503, {}, 30),
        (503, {"Retry-After": "2"}, 30),
        (503, {"Retry-After": "3600"}, 600),
        (500, {}, 30),
        (501, {}, 30),
        (502, {}, 30),
        (504, {}, 30),
    ],
)
def test_the_wait_that_an_answer_requests_is_bounded(
    status: int, headers: Mapping[str, str], seconds: float
) -> None:
    answer = Desk(replace(refusal(status), headers=headers)).run_now()
    assert isinstance(answer, Unknown)
    assert answer.wait_seconds <= 600
    assert (answer.wait_seconds, answer.is_throttled) == (seconds, status == 429)
