"""Databases that a test can change by any statement, whatever driver they have."""

from sqlalchemy import NullPool, create_engine

from harness.sense.sources.jdbc.address import sqlalchemy_url

_SQLITE = "jdbc:sqlite:"


class Writer:
    """A second connection to a database, which commits each statement at once."""

    def __init__(self, url: str) -> None:
        # Probes only read a file of SQLite.
        is_file = url.startswith(_SQLITE)
        address = f"sqlite:///{url.removeprefix(_SQLITE)}" if is_file else sqlalchemy_url(url)
        engine = create_engine(address, poolclass=NullPool, pool_reset_on_return=None)
        self.connection = engine.connect()
        self._is_open = False

    def run(self, *statements: str) -> "Writer":
        """Run each statement."""
        percent = "%%" if "format" in self.connection.dialect.paramstyle else "%"
        for text in statements:
            self.connection.exec_driver_sql(text.replace("%", percent))
            if not self._is_open:
                self.connection.commit()
        return self

    def begin(self) -> "Writer":
        """Open a transaction that stays open."""
        self._is_open = True
        return self

    def commit(self) -> None:
        """End it."""
        self.connection.commit()
        self._is_open = False

    def close(self) -> None:
        """End the connection."""
        self.connection.close()
