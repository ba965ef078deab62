"""A store in memory, for unit tests of the steps."""

from collections.abc import Sequence
from dataclasses import asdict

from harness.tables import Ledger, LedgerRow


class MemoryStore:
    """Keeps every row that was appended, in order, and the number of commits."""

    def __init__(self) -> None:
        self.rows: dict[str, list[LedgerRow]] = {}
        self.commits: list[str] = []

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        if rows:
            self.commits.append(ledger)
            self.rows.setdefault(ledger, []).extend(rows)

    def read(
        self, table: str, *, where: Sequence[tuple[str, str, object]] = ()
    ) -> list[dict[str, object]]:
        assert not where, "not needed by the tests so far"
        return [asdict(row) for row in self.rows.get(table, [])]

    def exists(self, table: str) -> bool:
        return table in self.rows

    def fingerprint(self, table: str) -> str | None:
        return str(len(self.rows.get(table, [])))
