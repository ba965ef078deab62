"""Translates the address of a database, a JDBC URL or one of SQLAlchemy, for its Python driver."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from harness.sense.database_queries import DatabaseDownError

if TYPE_CHECKING:
    from sqlalchemy import URL

#: Hosts, database and properties of a JDBC URL; SQL Server's properties begin with ``;``.
_PLACE = re.compile(r"//(?P<hosts>[^/;?]*)(?:/(?P<name>[^/?;]*))?(?:[?;](?P<more>.*))?")
_ORACLE = re.compile(r"thin:@(?://)?(?P<host>[^:/@()]+):(?P<port>\d+):(?P<sid>\w+)")
#: SQLAlchemy's dialect and driver for each kind of JDBC URL.
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "oracle": "oracle+oracledb",
    "sqlserver": "mssql+pymssql",
    "sap": "hana+hdbcli",
    "sqlite": "sqlite",
}
#: Properties of JDBC, or properties with a value, in lower case, as the Python driver has them;
#: those that it needs no option for are empty.
_MYSQL = {
    "usessl=false": "",
    "sslmode=disabled": "",
    "sslmode=disable": "",
    "sslmode=preferred": "",
}
_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "postgresql": {
        **{
            each: f"{each}={{}}"
            for each in ("sslmode", "sslcert", "sslkey", "sslrootcert", "options")
        },
        "ssl=true": "sslmode=verify-full",
        "ssl=false": "",
        "applicationname": "application_name={}",
        "currentschema": "options=-csearch_path={}",
        "targetservertype": "target_session_attrs={}",
        "targetservertype=master": "target_session_attrs=primary",
        "targetservertype=secondary": "target_session_attrs=standby",
        "targetservertype=prefersecondary": "target_session_attrs=prefer-standby",
    },
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    # FreeTDS, which the driver is built on, checks no certificate.
    "sqlserver": {
        "encrypt=true": "encryption=require",
        "encrypt=false": "",
        "trustservercertificate=true": "",
    },
    "sap": {
        "encrypt": "encrypt={}",
        "validatecertificate": "sslValidateCertificate={}",
        "hostnameincertificate": "sslHostNameInCertificate={}",
        "currentschema": "currentSchema={}",
    },
}
#: Properties by which a JDBC driver is tuned, and which change no answer and no security.
_TUNING = re.compile(
    r".*(timeout|fetchsize|threshold|cache|prep|binary|keepalive|stringtype|autosave|log|rewrite"
    r"|readonly|buffer|reconnect|timezone|encoding|sendstring|selectmethod).*",
    re.IGNORECASE,
)


def sqlalchemy_url(address: str) -> "URL":
    """Return SQLAlchemy's address, without a password.

    Raises:
        DatabaseDownError: No Python driver is known for it, or it cannot be translated.
    """
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if not address.startswith("jdbc:"):
        try:
            return make_url(address)
        except (ArgumentError, ValueError) as error:
            raise DatabaseDownError(
                "its address in heartbeat.yml is not a SQLAlchemy URL"
            ) from error
    _, kind, place = address.split(":", 2)
    if kind not in _DRIVERS:
        raise DatabaseDownError(
            f"no Python driver is known for jdbc:{kind}; install the database's SQLAlchemy dialect"
            " and write the address as its URL, dialect://host/database"
        )
    if kind == "sqlite":
        # As a file that is only read: SQLite would make one that is missing.
        query = {"mode": "ro", "uri": "true"}
        return URL.create(_DRIVERS[kind], database=f"file:{place}", query=query)
    if kind == "oracle":
        return _oracle(place)
    found = _PLACE.fullmatch(place if place.startswith("//") else f"///{place}")
    if found is None:
        raise DatabaseDownError(
            f"the address jdbc:{kind} has no host in it, as in //host:port/name"
        )
    return _at(kind, found["hosts"], unquote(found["name"] or ""), found["more"] or "")


def _oracle(place: str) -> "URL":
    from sqlalchemy import URL

    driver = _DRIVERS["oracle"]
    if found := _ORACLE.fullmatch(place):
        return URL.create(
            driver, host=found["host"], port=int(found["port"]), database=found["sid"]
        )
    # Easy Connect, a description or an alias: the driver reads them as they are.
    start, _, dsn = place.partition("@")
    if start != "thin:":
        raise DatabaseDownError("of jdbc:oracle only thin is known, as in jdbc:oracle:thin:@host/x")
    return URL.create(driver, host=dsn.removeprefix("//"))


def _at(kind: str, hosts: str, database: str, more: str) -> "URL":
    from sqlalchemy import URL

    user: str | None = None
    query: dict[str, str | tuple[str, ...]] = {}
    for name, value in parse_qsl(more.replace(";", "&"), keep_blank_values=True):
        if name.lower() == "user":
            user = value
        elif name.lower() in {"databasename", "database"}:
            database = value
        else:
            query.update(_option(kind, name, value))
    host, port = hosts, None
    if "," in hosts:
        host, query["host"] = "", tuple(hosts.split(","))
    elif found := re.fullmatch(r"(.*):(\d+)", hosts):
        host, port = found[1], int(found[2])
    return URL.create(
        _DRIVERS[kind],
        username=user,
        host=host.strip("[]") or None,
        port=port,
        database=database or None,
        query=query,
    )


def _option(kind: str, name: str, value: str) -> dict[str, str]:
    known = _PROPERTIES[kind]
    form = known.get(f"{name}={value}".lower(), known.get(name.lower()))
    if form is None and not _TUNING.fullmatch(name):
        raise DatabaseDownError(
            f"its property {name} is one of JDBC alone; leave it out, or write the address as"
            f" SQLAlchemy does, {_DRIVERS[kind]}://host/database"
        )
    option, _, written = (form or "").partition("=")
    return {option: written.format(value)} if option else {}
