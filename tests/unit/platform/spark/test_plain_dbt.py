"""Which process is given the engine, and which record it may trust; the server is a socket."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.platform.clock import RealClock
from harness.platform.process_tree import born
from harness.platform.spark import plain_dbt
from harness.platform.spark.engine import EngineFolder, EngineRecord, engine_folder
from harness.platform.spark.java import JavaHome
from harness.platform.spark.setup import PLAIN_DBT, startup_line

#: The head of the frame with which a server greets.
GREETING = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
PROJECT = "name: shop\nprofile: heartbeat\n"
REPORT = "; import json; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that greets each client."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(GREETING)

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of dbt with a program ``dbt`` that prints its variables, and waits."""
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    shutil.copy(plain_dbt.__file__, tmp_path / f"{PLAIN_DBT}.py")
    java = JavaHome(home=Path("/usr"), version=17, source="PATH")
    line = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {startup_line(java).strip()}"
    for name in ("dbt", "other"):
        (tmp_path / name).write_text(line + REPORT)
    return tmp_path


@pytest.fixture
def engine(project: Path, port: int) -> EngineFolder:
    """What an engine whose processes live has in the state directory."""
    folder = engine_folder(project / ".heartbeat")
    with folder.starting(), folder.users_lock():
        folder.write(record(port))
    return folder


def record(port: int, birth: str | None = None) -> EngineRecord:
    here, birth = os.getpid(), birth or born(os.getpid())
    return EngineRecord(
        owner=here,
        owner_born=birth,
        server=here,
        server_born=birth,
        port=port,
        token="secret",
        settings="",
        started_at="",
    )


def started(
    project: Path, *arguments: str, program: str = "dbt", **environ: str
) -> "subprocess.Popen[str]":
    """Start a program of the project, with no package at all but Python's own."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(project / program), *arguments],
        cwd=project,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def variables(process: "subprocess.Popen[str]") -> tuple[dict[str, str], str]:
    """The variables of a program, and what it printed beside them."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return json.loads(output), errors


def remote(project: Path, *arguments: str, program: str = "dbt", **environ: str) -> str | None:
    found, errors = variables(started(project, *arguments, program=program, **environ))
    assert errors == ""
    return found.get("SPARK_REMOTE")


def test_dbt_gets_the_address_and_the_token_of_the_engine(
    project: Path, engine: EngineFolder, port: int
) -> None:
    found, _ = variables(started(project, "seed", no_proxy="example.com"))
    assert found["SPARK_REMOTE"] == f"sc://localhost:{port}"
    assert found["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == "secret"
    assert found["no_grpc_proxy"] == "example.com,localhost"


def test_another_program_does_not_load_the_module(project: Path, engine: EngineFolder) -> None:
    (project / f"{PLAIN_DBT}.py").write_text("raise SystemExit(3)")
    assert remote(project, program="other") is None
    assert started(project).wait(timeout=60) == 3


def test_another_program_with_the_word_among_its_arguments_stays_as_it_is(
    project: Path, engine: EngineFolder
) -> None:
    assert remote(project, "dbt", program="other") is None


def test_dbt_as_a_module_gets_the_engine(project: Path, engine: EngineFolder) -> None:
    package = project / "packages" / "dbt" / "cli"
    package.mkdir(parents=True)
    startup = (project / "other").read_text().removesuffix(REPORT)
    (project / "packages" / "sitecustomize.py").write_text(startup)
    (package.parent / "__init__.py").touch()
    (package / "main.py").write_text(f"import os, sys{REPORT}")
    answer = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "seed"],
        cwd=project,
        env={"PYTHONPATH": str(project / "packages")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "SPARK_REMOTE" in json.loads(answer.stdout)


def test_dbt_in_a_folder_below_the_project_gets_the_engine(
    project: Path, engine: EngineFolder
) -> None:
    below = project / "models" / "marts"
    below.mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(project / "dbt")],
        cwd=below,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "SPARK_REMOTE" in json.loads(process.communicate(timeout=60)[0])


@pytest.mark.parametrize("joined", [True, False])
def test_the_folder_that_dbt_is_given_counts(
    project: Path, engine: EngineFolder, tmp_path_factory: pytest.TempPathFactory, joined: bool
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "dbt_project.yml").write_text(PROJECT)
    words = [f"--project-dir={elsewhere}"] if joined else ["--project-dir", str(elsewhere)]
    assert remote(project, "build", *words) is None
    assert remote(project, "build", *words, HEARTBEAT_HOME=str(project / ".heartbeat"))


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["build", "--target", "databricks"], {}),
        (["build", "-t", "databricks"], {}),
        (["build", "--target=databricks"], {}),
        (["build"], {"DBT_TARGET": "databricks"}),
        (["build"], {"HEARTBEAT_TARGET": "databricks"}),
        (["build", "--profile", "another"], {}),
        (["build"], {"DBT_PROFILE": "another"}),
    ],
)
def test_dbt_on_another_target_or_profile_stays_as_it_is(
    project: Path, engine: EngineFolder, arguments: list[str], environ: dict[str, str]
) -> None:
    assert remote(project, *arguments, **environ) is None


def test_the_target_on_the_command_line_is_stronger_than_the_variable(
    project: Path, engine: EngineFolder
) -> None:
    assert remote(project, "build", "--target", "local", HEARTBEAT_TARGET="databricks")


@pytest.mark.parametrize("text", ["profile: another\n", "name: shop\n"])
def test_a_project_with_another_profile_stays_as_it_is(
    project: Path, engine: EngineFolder, text: str
) -> None:
    (project / "dbt_project.yml").write_text(text)
    assert remote(project) is None


def test_the_address_that_a_person_has_set_stays(project: Path, engine: EngineFolder) -> None:
    assert remote(project, SPARK_REMOTE="sc://other:1") == "sc://other:1"


def test_without_a_state_directory_dbt_stays_as_it_is(project: Path) -> None:
    assert remote(project) is None
    assert not (project / ".heartbeat").exists()


def test_a_record_of_a_process_that_has_ended_is_left_alone(
    project: Path, engine: EngineFolder, port: int
) -> None:
    engine.write(record(port, birth=f"{born(os.getpid())}0"))
    assert remote(project) is None


@pytest.mark.parametrize("mode", [0o644, 0o620])
def test_a_record_that_others_can_read_or_write_is_left_alone(
    project: Path, engine: EngineFolder, mode: int
) -> None:
    engine.record_file.chmod(mode)
    assert remote(project) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")
def test_a_record_of_another_user_is_left_alone(project: Path, engine: EngineFolder) -> None:
    os.chown(engine.record_file, 1, -1)
    assert remote(project) is None


def test_a_record_that_is_a_link_is_left_alone(project: Path, engine: EngineFolder) -> None:
    engine.record_file.rename(project / "record")
    engine.record_file.symlink_to(project / "record")
    assert remote(project) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": "x"}'])
def test_a_damaged_record_is_left_alone(project: Path, engine: EngineFolder, content: str) -> None:
    engine.record_file.write_text(content)
    assert remote(project) is None


def test_an_engine_that_does_not_answer_is_named_and_not_used(
    project: Path, engine: EngineFolder
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    engine.write(record(port))
    found, errors = variables(started(project))
    assert "SPARK_REMOTE" not in found
    assert errors.startswith(f"warning: The engine of {project / '.heartbeat'} does not answer")
    assert errors.count("\n") == 1


def test_the_engine_has_a_user_while_dbt_runs(project: Path, engine: EngineFolder) -> None:
    process = started(project)
    assert process.stdout is not None
    process.stdout.readline()
    assert engine.has_users
    process.communicate(timeout=60)
    assert not engine.has_users


def test_dbt_waits_for_an_engine_that_is_just_ending(project: Path, engine: EngineFolder) -> None:
    with engine.users_lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = started(project)
        wait_until_it_waits(process.pid)
        engine.record_file.unlink()
    assert "SPARK_REMOTE" not in variables(process)[0]


def test_dbt_waits_for_an_engine_that_is_just_started(
    project: Path, engine: EngineFolder, port: int
) -> None:
    engine.record_file.unlink()
    with engine.starting():
        process = started(project)
        wait_until_it_waits(process.pid)
        engine.write(record(port))
    assert "SPARK_REMOTE" in variables(process)[0]


def wait_until_it_waits(pid: int) -> None:
    for _ in range(3_000):
        blocked = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        if any(f" {pid} " in line for line in blocked):
            return
        RealClock().sleep(0.01)
    raise AssertionError("it waits for nothing")
