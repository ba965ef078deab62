"""Knows how databases differ: names, types of columns, and the time limit of a login."""

from typing import Any

from harness.sense.database_queries import Case, Dialect, Kind

#: The codes of ``java.sql.Types``, and those that some drivers add.
_KINDS = {
    Kind.NUMBER: (-7, -6, 5, 4, -5, 2, 3),
    Kind.FLOAT: (6, 7, 8, 100, 101),
    Kind.TIME: (93,),
    Kind.ZONED: (2014, -101, -155),
    Kind.DATE: (91,),
    Kind.TEXT: (1, 12, -1, -15, -9, -16),
}
_KIND_OF_CODE = {code: kind for kind, codes in _KINDS.items() for code in codes}

#: What a driver calls its limits for reaching a server: properties, and their unit in a second.
_LOGIN_LIMITS = {
    "jdbc:postgresql:": (("loginTimeout", "connectTimeout", "cancelSignalTimeout"), 1),
    "jdbc:sqlserver:": (("loginTimeout",), 1),
    "jdbc:sap:": (("connectTimeout",), 1000),
    "jdbc:mysql:": (("connectTimeout",), 1000),
    "jdbc:mariadb:": (("connectTimeout",), 1000),
    "jdbc:oracle:": (("oracle.net.CONNECT_TIMEOUT",), 1000),
}


def kind_of(type_code: int, type_name: str) -> Kind:
    """Return how the values of a column are compared."""
    kind = _KIND_OF_CODE.get(type_code, Kind.OTHER)
    name = type_name.lower()
    if kind is Kind.TIME and (name == "timestamptz" or "with time zone" in name):
        # PostgreSQL's driver gives both kinds of time stamps one code.
        return Kind.ZONED
    return kind


def login_limits(url: str, seconds: float) -> dict[str, str]:
    """Return the properties that limit a login, for the drivers whose names for them we know."""
    for start, (names, factor) in _LOGIN_LIMITS.items():
        if url.startswith(start):
            return {name: str(max(1, int(seconds)) * factor) for name in names}
    return {}


def dialect_of(connection: Any) -> Dialect:
    """Ask a ``java.sql.Connection`` what its database is like."""
    about = connection.getMetaData()
    if about.storesUpperCaseIdentifiers():
        case = Case.UPPER
    elif about.storesLowerCaseIdentifiers():
        case = Case.LOWER
    else:
        case = Case.AS_WRITTEN
    return Dialect(
        quote=str(about.getIdentifierQuoteString()).strip() or '"',
        bare_names=case,
        time_functions=frozenset(
            name.strip().upper() for name in str(about.getTimeDateFunctions()).split(",")
        ),
    )
