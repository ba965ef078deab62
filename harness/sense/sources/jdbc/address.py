"""Translates the address of a database, a JDBC URL or one of SQLAlchemy, for its Python driver."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from harness.sense.database_queries import DatabaseDownError

if TYPE_CHECKING:
    from sqlalchemy import URL

#: Host, port and more of ``//host:port/database?properties``; a SQL Server has ``;`` instead.
_PLACE = re.compile(r"//(?P<hosts>[^/;?]*)(?:/(?P<name>[^/?;]*))?(?:[?;](?P<more>.*))?")
_ORACLE = re.compile(r"thin:@(?://)?(?P<host>[^:/@()]+):(?P<port>\d+):(?P<sid>\w+)")
#: Properties by which a JDBC driver is tuned, and which change no answer and no security.
_TUNING = re.compile(
    r".*(timeout|fetchsize|threshold|cache|prepare|prep|binary|keepalive|stringtype|autosave|log"
    r"|rewrite|readonly|buffer|reconnect|timezone|encoding|sendstring|selectmethod).*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The databases behind one kind of JDBC URL."""

    #: SQLAlchemy's name of the dialect and the driver.
    driver: str
    #: What the Python driver calls a property, here in lower case, and the form of its value.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Properties with a value that is another word, or no word, of the Python driver.
    values: Mapping[tuple[str, str], tuple[str, str] | None] = field(default_factory=dict)


_POSTGRESQL = _Family(
    driver="postgresql+psycopg",
    names={
        **{name: name for name in ("sslmode", "sslcert", "sslkey", "sslrootcert", "options")},
        "applicationname": "application_name",
        "currentschema": "options=-csearch_path={}",
        "targetservertype": "target_session_attrs",
    },
    values={
        ("ssl", "true"): ("sslmode", "verify-full"),
        ("ssl", "false"): None,
        ("targetservertype", "master"): ("target_session_attrs", "primary"),
        ("targetservertype", "secondary"): ("target_session_attrs", "standby"),
        ("targetservertype", "preferSecondary"): ("target_session_attrs", "prefer-standby"),
    },
)
_MYSQL_VALUES = {
    ("usessl", "false"): None,
    ("sslmode", "DISABLED"): None,
    ("sslmode", "disable"): None,
    ("sslmode", "PREFERRED"): None,
}
_FAMILIES = {
    "postgresql": _POSTGRESQL,
    "mysql": _Family(driver="mysql+pymysql", values=_MYSQL_VALUES),
    "mariadb": _Family(driver="mariadb+pymysql", values=_MYSQL_VALUES),
    "oracle": _Family(driver="oracle+oracledb"),
    "sqlserver": _Family(
        driver="mssql+pymssql",
        values={
            ("encrypt", "true"): ("encryption", "require"),
            ("encrypt", "false"): None,
            # FreeTDS, which the driver is built on, checks no certificate.
            ("trustservercertificate", "true"): None,
        },
    ),
    "sap": _Family(
        driver="hana+hdbcli",
        names={
            "encrypt": "encrypt",
            "validatecertificate": "sslValidateCertificate",
            "hostnameincertificate": "sslHostNameInCertificate",
            "currentschema": "currentSchema",
        },
    ),
    "sqlite": _Family(driver="sqlite"),
}


def sqlalchemy_url(address: str) -> "URL":
    """Return SQLAlchemy's address, without a password.

    Raises:
        DatabaseDownError: No Python driver is known for it, or it cannot be translated.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    if address.startswith("jdbc:"):
        return _translated(address)
    try:
        return make_url(address)
    except (ArgumentError, ValueError) as error:
        raise DatabaseDownError("its address in heartbeat.yml is no SQLAlchemy URL") from error


def _translated(address: str) -> "URL":
    from sqlalchemy import URL

    _, kind, place = address.split(":", 2)
    family = _FAMILIES.get(kind)
    if family is None:
        raise DatabaseDownError(
            f"no Python driver is known for jdbc:{kind}; install the database's SQLAlchemy dialect"
            " and write the address as its URL, dialect://host/database"
        )
    if kind == "sqlite":
        # As a file that is only read: SQLite would make one that is missing.
        query = {"mode": "ro", "uri": "true"}
        return URL.create(family.driver, database=f"file:{place}", query=query)
    if kind == "oracle":
        return _oracle(family, place)
    found = _PLACE.fullmatch(place if place.startswith("//") else f"///{place}")
    if found is None:
        raise DatabaseDownError(
            f"the address jdbc:{kind} has no host in it, as in //host:port/name"
        )
    return _at(family, found["hosts"], unquote(found["name"] or ""), found["more"] or "")


def _oracle(family: _Family, place: str) -> "URL":
    from sqlalchemy import URL

    if found := _ORACLE.fullmatch(place):
        port = int(found["port"])
        return URL.create(family.driver, host=found["host"], port=port, database=found["sid"])
    # Easy Connect, a description or an alias: the driver reads them as they are.
    start, _, dsn = place.partition("@")
    if start != "thin:":
        raise DatabaseDownError("of jdbc:oracle only thin is known, as in jdbc:oracle:thin:@host/x")
    return URL.create(family.driver, host=dsn.removeprefix("//"))


def _at(family: _Family, hosts: str, database: str, more: str) -> "URL":
    from sqlalchemy import URL

    user: str | None = None
    query: dict[str, str | tuple[str, ...]] = {}
    for name, value in parse_qsl(more.replace(";", "&"), keep_blank_values=True):
        if name.lower() == "user":
            user = value
        elif name.lower() in {"databasename", "database"}:
            database = value
        elif option := _option(family, name, value):
            query[option[0]] = option[1]
    host, port = None, None
    if "," in hosts:
        query["host"] = tuple(hosts.split(","))
    else:
        host, port = _host_and_port(hosts)
    return URL.create(
        family.driver, username=user, host=host, port=port, database=database or None, query=query
    )


def _host_and_port(text: str) -> tuple[str | None, int | None]:
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    return host.strip("[]") or None, int(port) if port else None


def _option(family: _Family, name: str, value: str) -> tuple[str, str] | None:
    key = name.lower()
    for (known, word), option in family.values.items():
        if (known, word.lower()) == (key, value.lower()):
            return option
    if key in family.names:
        known, _, form = family.names[key].partition("=")
        return known, form.format(value) if form else value
    if _TUNING.fullmatch(name):
        return None
    raise DatabaseDownError(
        f"its property {name} is one of JDBC alone; leave it out, or write the address as"
        f" SQLAlchemy does, {family.driver}://host/database"
    )
