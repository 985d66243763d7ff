"""Whether two data sets read the same rows, by their files and addresses alone: nothing is opened."""

from __future__ import annotations

import contextlib
import ipaddress
from dataclasses import dataclass
from typing import Self

from dpselect.errors import InvalidInput, how_to_install, plain
from dpselect.sources import files_of, share_file
from dpselect.sources.engine import name_parts

_USUAL = {"postgresql": (None, "public"), "duckdb": (None, "main"), "spark": ("spark_catalog", "default")}
"""The database (in Spark, the catalog) and the schema of a name that has none."""


def same_rows(source: str, table: str | None, other_source: str, other_table: str | None) -> bool | None:
    """Return whether two sources are the same rows; None if the addresses do not tell."""
    shared = share_file(files_of(source, table), files_of(other_source, other_table))
    in_duckdb = source.lower().startswith("duckdb://")
    if table is None or other_table is None or shared != in_duckdb:
        return shared
    return TableAddress.of(source, table).is_same(TableAddress.of(other_source, other_table))


@dataclass(frozen=True)
class TableAddress:
    """Where a table of an engine is; None for a part that is left out."""

    engine: str
    server: tuple[str, ...]
    database: str | None
    schema: str | None
    table: str

    @classmethod
    def of(cls, source: str, table: str) -> Self:
        """Read an address; raise InvalidInput if it is none."""
        scheme, _, rest = source.partition("://")
        scheme = scheme.casefold()
        if scheme.startswith("spark") and "/" in table:
            return cls("spark", (), None, None, table.rstrip("/"))  # a path is the same wherever the query runs
        *schemas, name = (part.casefold() for part in name_parts(table))
        schema = schemas[-1] if schemas else None
        if scheme in ("postgresql", "postgres"):
            server, database = _server(source)
            return cls("postgresql", server, database, schema, name)
        if scheme.startswith("spark"):
            catalog = schemas[-2] if len(schemas) > 1 else None
            return cls("spark", (rest if scheme == "spark" else "",), catalog, schema, name)
        return cls(scheme, (), None, schema, name)

    def is_same(self, other: TableAddress) -> bool | None:
        """Return whether two addresses are of one table; None if that depends on the servers and their settings."""
        if (self.engine, self.table) != (other.engine, other.table):
            return False
        usual_database, usual_schema = _USUAL.get(self.engine, (None, None))
        found = (
            self.server == other.server or None,  # one server can have many names
            _agree(self.database, other.database, usual_database),
            _agree(self.schema, other.schema, usual_schema),
        )
        return False if False in found else None if None in found else True


def _agree(one: str | None, other: str | None, usual: str | None) -> bool | None:
    if one == other or {one, other} == {None, usual}:
        return True
    return None if None in (one, other) else False


def _server(source: str) -> tuple[tuple[str, ...], str | None]:
    """Return the server and the database of an address, as libpq reads it, with its environment and its defaults."""
    try:
        import psycopg
    except ImportError:
        raise InvalidInput(
            "source", plain("a PostgreSQL URL"), f"the driver is not installed: {how_to_install('postgresql')}"
        ) from None
    try:
        stated = psycopg.conninfo.conninfo_to_dict(source)
    except psycopg.Error:
        raise InvalidInput("source", plain("another URL"), "must be postgresql://user@host:port/database") from None
    usual = {one.keyword.decode(): one.val.decode() for one in psycopg.pq.Conninfo.get_defaults() if one.val}
    known = {**usual, **{name: str(value) for name, value in stated.items() if value}}
    host, port, *others = (known.get(name, "") for name in ("host", "port", "hostaddr", "options", "service"))
    server = ("" if _is_this_machine(host) else host.casefold(), port, *others)
    # Without a database, libpq takes the one of the service, or the one that is named like the user.
    return server, known.get("dbname") or (None if "service" in known else known.get("user"))


def _is_this_machine(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.casefold() in ("", "localhost")
