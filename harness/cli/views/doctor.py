"""Shows what an examination of the installation has found: what is broken first."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from harness.cli.views.terminal import Cell, Column, print_sentence, print_table
from harness.inspect.doctor.findings import Finding, Level, worst

_TITLES = {
    Level.BROKEN: ("broken", "bold red"),
    Level.ATTENTION: ("needs attention", "bold yellow"),
    Level.OK: ("ok", "bold green"),
}


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the findings as one object for scripts, what is broken first."""
    counts = {level.value: _count(findings, level) for level in _TITLES}
    return {
        "level": worst(findings).value,
        **counts,
        "findings": [
            {
                "level": each.level.value,
                "about": each.about,
                "what": each.what,
                "where": each.where or None,
                "todo": each.todo or None,
            }
            for level in _TITLES
            for each in findings
            if each.level is level
        ],
    }


def show(console: Console, findings: Sequence[Finding], home: Path) -> None:
    """Print a page: the conclusion, then what is broken, what needs attention, and the rest.

    Args:
        console: Where it is shown.
        findings: What was found.
        home: The state directory; what lies in it is named by its place there.
    """
    print_sentence(console, *_verdict(findings))
    for level, title in _TITLES.items():
        found = [each for each in findings if each.level is level]
        if not found:
            continue
        print_sentence(console, (f"{title[0]} {len(found)}", title[1]))
        columns = (Column(title=""), Column(title="", may_wrap=True))
        print_table(console, columns, [*_rows(found, home)], has_header=False)


def _verdict(findings: Sequence[Finding]) -> list[Cell]:
    parts = {
        Level.BROKEN: f"{_count(findings, Level.BROKEN)} broken",
        Level.ATTENTION: f"{_count(findings, Level.ATTENTION)} to look at",
        Level.OK: f"{_count(findings, Level.OK)} ok",
    }
    message = ", ".join(text for level, text in parts.items() if _count(findings, level))
    return [(message, "bold")]


def _rows(findings: Iterable[Finding], home: Path) -> Iterable[Sequence[Cell]]:
    for each in findings:
        yield each.about, each.what
        if each.where and (each.todo or each.where == str(home)):
            yield "", (each.where.removeprefix(f"{home}{os.sep}"), "dim")
        if each.todo:
            yield "", (f"→ {each.todo}", "bold")


def _count(findings: Iterable[Finding], level: Level) -> int:
    return sum(each.level is level for each in findings)
