"""Which process is meant by a number, between real processes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.platform.process_tree import born, is_alive, is_own


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that waits, and that has a child of its own whose number it prints."""
    code = (
        "import subprocess, sys;"
        "child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL);"
        "print(child.pid, flush=True); sys.stdin.read(); child.kill()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.communicate()


def test_a_process_that_goes_on_is_alive_with_its_birth_and_without(
    child: subprocess.Popen[str],
) -> None:
    assert born(child.pid) == born(child.pid) is not None
    assert is_alive(child.pid, born(child.pid))
    assert is_alive(child.pid, None)


def test_a_process_that_has_got_the_number_of_another_is_not_that_one(
    child: subprocess.Popen[str],
) -> None:
    assert born(child.pid) != born(os.getpid())
    assert not is_alive(child.pid, born(os.getpid()))


def test_a_process_that_has_ended_is_not_alive_even_before_its_exit_status_is_read(
    child: subprocess.Popen[str],
) -> None:
    birth = born(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid, birth)
    assert not is_alive(child.pid, None)
    child.wait()
    assert not is_alive(child.pid, birth)
    assert born(child.pid) is None


@pytest.mark.parametrize(
    "pid", [0, -1, -os.getpgrp(), 2**70], ids=["own group", "all", "group", "large"]
)
def test_a_number_that_is_none_of_a_process_is_not_alive(pid: int) -> None:
    assert not is_alive(pid, None)


def test_what_a_process_started_is_its_own_directly_or_not(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    assert is_own(os.getpid())
    assert is_own(child.pid)
    assert is_own(grandchild)


@pytest.mark.parametrize("pid", [1, os.getppid(), 2**22 + 1], ids=["first", "parent", "none"])
def test_what_it_did_not_start_is_not_its_own(pid: int) -> None:
    assert not is_own(pid)


@pytest.mark.parametrize("name", ["a) b (c", "x y", ")"], ids=["brackets", "space", "bracket"])
def test_the_name_of_a_process_may_be_anything(name: str) -> None:
    code = "import sys; open('/proc/self/comm', 'w').write(sys.argv[1]); print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert is_alive(process.pid, born(process.pid))
        assert is_own(process.pid)
    finally:
        process.communicate("\n")
