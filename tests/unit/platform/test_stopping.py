"""Ctrl-C and SIGTERM: one line at once, nothing is started after it, and code 130."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.platform import stopping
from harness.platform.stopping import INTERRUPTED, Activity, Interrupted, Stop

PROJECT = Path(__file__).resolve().parents[3]

#: A command that only waits, at the place that its argument names; it prints what it does.
WAITS = """
import multiprocessing, sys, time
import typer
from harness.cli.common import stoppable

app = typer.Typer()

@app.command()
def wait(where: str) -> None:
    with stoppable() as stop:
        stop.activity.begin("deciding (3 of 5)")
        if where == "finishing":
            with stop.finishing("the starts that are sent already"):
                print("ready", flush=True)
                while not stop.is_wanted:
                    time.sleep(0.01)
                print("finished", flush=True)
        elif where == "failing":
            try:
                print("ready", flush=True)
                time.sleep(60)
            except KeyboardInterrupt:
                raise ConnectionError("the JVM is gone") from None
        elif where == "deaf":
            lock = multiprocessing.get_context("spawn").RLock()
            try:
                print("ready", flush=True)
                time.sleep(60)
            except KeyboardInterrupt:
                print("ignored", flush=True)
                time.sleep(60)
        else:
            print("ready", flush=True)
            time.sleep(60)
        print("went on", flush=True)

app()
"""


def begun(where: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, where],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_130_and_names_what_was_at_work(number: int) -> None:
    process = begun("waiting")
    os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert output == ""
    assert errors.splitlines() == [
        "stopping while deciding (3 of 5); no further job is started (Ctrl-C again ends at once)",
        "stopped; nothing is lost, the next tick continues from here",
    ]


def test_what_fails_because_of_the_signal_is_not_reported_as_an_error() -> None:
    process = begun("failing")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "JVM" not in errors


def test_what_has_to_be_finished_is_finished_and_named_and_nothing_follows_it() -> None:
    process = begun("finishing")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert output == "finished\n"
    assert errors.startswith("stopping: finishing the starts that are sent already; ")


def test_what_was_finished_is_named_also_when_the_line_comes_after_its_end(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    is_finished = threading.Event()

    def wait_for_a_signal(*arguments: Any) -> object:
        found = select.select(*arguments)
        is_finished.wait(60)
        return found

    monkeypatch.setattr(stopping, "select", SimpleNamespace(select=wait_for_a_signal))
    with pytest.raises(Interrupted), Stop() as stop:
        try:
            with stop.finishing("the starts"):
                os.kill(os.getpid(), signal.SIGINT)
                while not stop.is_wanted:
                    time.sleep(0.01)
        finally:
            is_finished.set()
    assert capfd.readouterr().err.startswith("stopping: finishing the starts; ")


def test_a_second_signal_ends_a_process_that_does_not_hear_the_first() -> None:
    process = begun("deaf")
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "ignored\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    # Locks that are still held, as dbt's are, add no line of Python's to it.
    assert errors.splitlines()[1:] == [
        "stopped at once; the next tick continues from what is recorded"
    ]


def test_what_runs_elsewhere_is_cancelled_after_the_signal_and_only_then() -> None:
    cancelled: list[float] = []
    with pytest.raises(Interrupted), Stop() as stop:
        stop.cancel = lambda: cancelled.append(time.monotonic())
        assert not cancelled
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        finally:
            while not cancelled:
                time.sleep(0.01)
    assert stop.is_wanted


def test_a_spark_that_starts_in_the_thread_of_a_probe_leaves_the_signals_as_they_are() -> None:
    with Stop() as stop, ThreadPoolExecutor(1) as probes:
        handled = signal.getsignal(signal.SIGINT)
        probes.submit(stop.listen).result()
        assert signal.getsignal(signal.SIGINT) is handled


def test_afterwards_the_signals_are_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Stop():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_came_in_a_part_to_be_finished_breaks_off_right_after_it() -> None:
    done = []
    with pytest.raises(Interrupted), Stop() as stop:
        with stop.finishing("the answers"):
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("finished")
        done.append("went on")
    assert done == ["finished"]


def test_an_activity_reports_each_phase_to_who_listens() -> None:
    activity, heard = Activity(), []
    with activity.heard_by(heard.append):
        activity.begin("starting Spark")
    activity.begin("deciding")
    assert (heard, activity.words) == (["starting Spark"], "deciding")
