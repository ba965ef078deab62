"""Shows what housekeeping did."""

from rich.console import Console

from harness.maintain import Kept
from harness.show.terminal import Column, line, print_table
from harness.show.words import count


def as_json(kept: Kept) -> dict[str, object]:
    """Return what was done as one object for scripts."""
    return {
        "tables": [
            {
                "table": each.name,
                "files_before": each.files_before,
                "files_after": each.files_after,
                "removed": each.removed,
                "failure": each.failure,
            }
            for each in kept.tables
        ],
        "folded": kept.has_folded,
        "removed_files": kept.removed_files,
    }


def show(console: Console, kept: Kept) -> None:
    """Print the number of files of each table, before and after."""
    columns = (
        Column(title="table"),
        Column(title="files", is_number=True),
        Column(title="now", is_number=True),
        Column(title="removed", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            each.name,
            f"{each.files_before:,}",
            f"{each.files_after:,}",
            f"{each.removed:,}" if each.removed else "-",
            (each.failure or "", "red"),
        )
        for each in kept.tables
    ]
    before = sum(each.files_before for each in kept.tables)
    after = sum(each.files_after for each in kept.tables)
    said = f"{count(len(rows), 'table')}: {count(after, 'file')} instead of {before:,}"
    console.print(line((said, "bold")))
    print_table(console, columns, rows)
    if kept.has_folded:
        console.print(line("the ledgers are folded into the current state"))
    if kept.removed_files:
        console.print(line(f"{count(kept.removed_files, 'old file')} of runs removed"))
