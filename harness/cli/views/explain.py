"""Shows the answer of `explain`: the verdict, its reasons, the next steps."""

import json
from datetime import datetime

from rich.console import Console
from rich.text import Text

from harness.cli.views.terminal import Column, line, print_sentence, print_table
from harness.cli.views.words import change_in_words, outcome_of, short_reason, short_run_id
from harness.inspect.attention import reason_beside
from harness.inspect.catch_up import Healing
from harness.inspect.explain import Answer, Verdict, answer_to
from harness.inspect.job_history import Dependency, History
from harness.platform.format import age, count, instant
from harness.store.rows import Row, Run, RunStatus

_STYLES = {
    Verdict.RUNNING: "bold green",
    Verdict.STARTING: "bold yellow",
    Verdict.HELD: "bold red",
    Verdict.BACKING_OFF: "bold yellow",
    Verdict.READY: "bold green",
    Verdict.WAITING: "bold yellow",
}


def show(console: Console, history: History) -> None:
    """Print the answer for a person."""
    answer = answer_to(history)
    console.print(_headline(history, answer))
    print_sentence(console, (f"  {_as_of(history)}", "dim"))
    _show_dependencies(console, history)
    _show_runs(console, history)
    if history.healing:
        _show_healing(console, history.healing, history.at)
    heading = "next" if history.is_now else "next, as it stood then"
    console.print(line((heading, "bold")))
    for step in answer.next_steps:
        print_table(console, (Column(title="", may_wrap=True),), [(step,)], has_header=False)


def _headline(history: History, answer: Answer) -> Text:
    name = f"{history.job_name} ({history.job_id})" if history.job_name else str(history.job_id)
    verb = "is" if history.is_now else "was"
    word = answer.verdict.value.replace("_", " ")
    since = f" for {age(answer.since, history.at)}" if answer.since else ""
    style = _STYLES.get(answer.verdict, "bold")
    return line(
        (name, "bold"),
        f" {verb} ",
        (word + since, style),
        f": {answer.sentence.removesuffix('.')}.",
    )


def _as_of(history: History) -> str:
    ticked = (
        f"the last tick with changes was {history.tick_number}, "
        f"{age(history.tick_at, history.at)} {'ago' if history.is_now else 'before'}"
        if history.tick_at
        else "no tick had recorded anything"
    )
    return f"As of {instant(history.at)}; {ticked}."


def _show_dependencies(console: Console, history: History) -> None:
    if not history.dependencies:
        return
    is_described = any(each.description for each in history.dependencies)
    rows = [
        (
            ("hard" if each.is_required else "soft", "" if each.is_required else "dim"),
            each.sensor_id,
            *((each.description or "",) if is_described else ()),
            age(each.event_at, history.at),
            *_dependency_in_words(each, history.at),
        )
        for each in history.dependencies
    ]
    columns = (
        Column(title=""),
        Column(title="upstream", keeps_end=True),
        *((Column(title="what it is", may_shrink=True),) if is_described else ()),
        Column(title="last event", is_number=True),
        Column(title="what"),
        Column(title="", may_wrap=True),
    )
    console.print(line(("depends on", "bold")))
    print_table(console, columns, rows)


def _dependency_in_words(each: Dependency, at: datetime) -> tuple[str, str | tuple[str, str]]:
    what = "" if each.event is None else _event_in_words(each.event)
    if each.is_paused:
        return what, ("PAUSED", "yellow")
    if each.failure:
        reason = reason_beside(each.sensor_id, each.failure)
        return what, (f"cannot be read for {age(each.failing_since, at)}: {reason}", "red")
    if not each.is_probed:
        return what, "not probed yet"
    if each.event_at is not None and each.consumed_by is None:
        return what, ("new: not consumed yet", "green")
    if each.waiting:
        more = f" (and {len(each.waiting) - 1} more)" if len(each.waiting) > 1 else ""
        return what, (f"{each.waiting[0].in_words}{more}", "yellow")
    return what, _taker_in_words(each.consumed_by) if each.consumed_by else "nothing has come yet"


def _taker_in_words(run: Run) -> str:
    if run.run_status is RunStatus.ACQUIRED:
        return "passed to the job, not processed yet"
    if run.run_status is RunStatus.RELEASED:
        return "released by an operator"
    if run.run_id:
        return short_reason(f"consumed by run {run.run_id}")
    is_own = run.run_status is RunStatus.SUCCEEDED
    return "consumed by a run of its own" if is_own else "consumed by a start without an answer"


def _event_in_words(event: Row) -> str:
    tags = event["tags"]
    rows = str(tags.get("rows_written", "")) if isinstance(tags, dict) else ""
    parts = [change_in_words(str(event["operation_type"]), tags)]
    if event["table_format"] == "DELTA" and event["snapshot_id"] is not None:
        parts.append(f"v{event['snapshot_id']}")
    partition = event["partition"]
    if isinstance(partition, list):
        parts.append("/".join(str(json.loads(str(value))) for value in partition))
    if rows.isdigit():
        parts.append(count(int(rows), "row"))
    return " ".join(parts)


def _show_runs(console: Console, history: History) -> None:
    if not history.runs:
        console.print(line(("runs", "bold"), "  never started"))
        return
    rows = [
        (
            short_run_id(run.run_id),
            str(run.attempt),
            outcome_of(run),
            age(run.started_at or run.decided_at, history.at),
            _took(run, history.at),
            f"{run.event_count:,}",
            run.message or "",
        )
        for run in history.runs
    ]
    columns = (
        Column(title="run"),
        Column(title="attempt", is_number=True),
        Column(title="outcome"),
        Column(title="started", is_number=True),
        Column(title="took", is_number=True),
        Column(title="events", is_number=True),
        Column(title="", may_wrap=True),
    )
    console.print(line(("last runs", "bold")))
    print_table(console, columns, rows)


def _show_healing(console: Console, healing: Healing, at: datetime) -> None:
    """Print what the newest further attempt received in one list: whose events, since when."""
    run, had, since = healing.run, healing.event_ids_of_failed, healing.event_ids_since
    which = f"run {short_run_id(run.run_id)}" if run.run_id else "a start without an answer"
    message = (
        f"  {which} is attempt {run.attempt}, and received"
        f" {count(len(had) + len(since), 'event')} in one list:"
        f" {len(had):,} of the attempts before it, {len(since):,} that came since"
    )
    print_sentence(console, ("caught up", "bold"), message)
    rows = [
        (
            each.table,
            f"{each.of_failed:,}",
            f"{each.since:,}",
            instant(each.first_at, at),
            instant(each.last_at, at),
        )
        for each in healing.tables
    ]
    columns = (
        Column(title="table", may_wrap=True),
        Column(title="of failed runs", is_number=True),
        Column(title="since", is_number=True),
        Column(title="found from"),
        Column(title="to"),
    )
    print_table(console, columns, rows)


def _took(run: Run, at: datetime) -> str:
    if run.started_at is None:
        return "-"
    if run.is_open:
        return f"{age(run.started_at, at)} so far"
    return age(run.started_at, run.ended_at) if run.ended_at else "-"
