"""What starting the command line costs: nothing heavy is imported before a command needs it."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
HEAVY = ("pyspark", "dbt", "deltalake", "databricks", "pyarrow", "pandas", "py4j", "sqlglot")


def modules_after(statement: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules, sep='\\n')"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in answer.stdout.split()}


def test_the_command_line_starts_without_spark_dbt_and_the_sdk() -> None:
    loaded = modules_after("import harness.cli.app")
    assert "harness" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


def test_this_check_sees_what_is_imported() -> None:
    assert "pyspark" in modules_after("import pyspark.errors")


def test_a_command_searches_for_unreachable_cycles_seldom() -> None:
    command = "import atexit, gc, sys; atexit.register(lambda: print(*gc.get_threshold()))"
    answer = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{command}; from harness.__main__ import main; main()",
            "--version",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.splitlines()[-1] == "50000 10 10"
