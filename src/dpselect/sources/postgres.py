"""PostgreSQL: scores are kept in a temporary table, or computed anew in one snapshot without the right to make one."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

from dpselect.errors import InvalidInput, SourceError, how_to_install, plain
from dpselect.sources.conditions import Condition
from dpselect.sources.engine import (
    LOST,
    NOT_ADMITTED,
    UNREACHABLE,
    EngineError,
    Progress,
    ThreadedEngine,
    attempt,
    quoted_identifier,
    worker_thread,
)
from dpselect.sources.frames import check_columns, neutral_name

_MAY_STORE = """
SELECT has_database_privilege(current_database(), 'TEMPORARY')
   AND NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'
"""
_LOOSE_EQUALITY = """
    SELECT CASE WHEN kind.typcategory = 'S' AND kind.typname NOT IN ('text', 'varchar', 'bpchar', 'name')
        THEN 'type ' || kind.typname ELSE 'collation ' || pg_collation_for(text) END
    FROM (SELECT 1) AS one LEFT JOIN ({column}) AS texts ON true
    JOIN pg_type AS kind ON kind.oid = pg_typeof(text)
    LEFT JOIN pg_collation AS rule ON kind.typcollation <> 0 AND rule.oid = to_regcollation(pg_collation_for(text))
    WHERE NOT rule.collisdeterministic
        OR kind.typcategory = 'S' AND kind.typname NOT IN ('text', 'varchar', 'bpchar', 'name')
"""
"""What lets different texts of a column be equal; no row if nothing does."""

_CANCEL_SECONDS = 10.0
_CONNECT_SECONDS = 30
_POSITION_DIGITS = 10
_ROWS_AT_ONCE = 100_000

_log = logging.getLogger("dpselect")


class PostgresEngine(ThreadedEngine):
    """A PostgreSQL server; `may_store` is whether the account may make temporary tables, which is public."""

    computes_shared_parts_once = True
    """Ibis writes shared parts as WITH, and the server computes these once if they are used twice."""

    may_store = True

    @property
    def connection(self) -> Any:
        """The psycopg connection itself."""
        return self.backend.con

    @property
    def casts_text_safely(self) -> bool:
        """A cast of text that is not a number is an error, although Ibis says otherwise."""
        return False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries of the block see one state of the database if nothing can be stored."""
        self._check_encoding()
        self.may_store = self.run(lambda: bool(self.connection.execute(_MAY_STORE).fetchone()[0]))
        if self.may_store:
            yield
            return
        if not self._is_idle():
            raise SourceError(
                "table: the account may not make temporary tables, and the connection has an open transaction; end the "
                "transaction, or grant TEMPORARY on the database"
            )
        self.run(lambda: self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                self.connection.execute("ROLLBACK")

    def loose_equality(self, table: Any, name: str) -> str | None:
        """Return the collation of a column if it is not deterministic, or a type with rules of its own as citext."""
        column = f"SELECT {quoted_identifier(name)} AS text FROM ({self.backend.compile(table)}) AS source WHERE false"
        query = _LOOSE_EQUALITY.format(column=column)
        found = self.run(lambda: self.connection.execute(query).fetchone())
        return None if found is None else str(found[0])

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Keep the result of an expression as a temporary table, or compute it anew for each query in the snapshot."""
        if not self.may_store:
            _log.warning(
                "the account may not make temporary tables, so scores are computed anew for each query; "
                "GRANT TEMPORARY ON DATABASE would make it faster"
            )
            yield expression
            return
        query = self.backend.compile(expression)
        columns = {name: str(kind) for name, kind in expression.schema().items()}
        with self._temporary(lambda name: f"CREATE TEMPORARY TABLE {name} AS {query}", columns) as table:
            yield table

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition is true.

        PostgreSQL stops at a row on which a condition fails. Comparisons of columns with constants never fail; any
        other condition is put into a temporary function that returns null if it fails.
        """
        # System columns such as ctid depend on other rows.
        check_columns("where", condition.folded_columns, list(table.columns))
        if not self.may_store:
            return super().where(stack, table, condition, text)
        source = self.source(table)
        query = f"SELECT * FROM {source} AS source WHERE ({text}\n)"
        self.run(lambda: self._execute(f"{query} LIMIT 0"))
        if not condition.compares_with_constants:
            query = f"SELECT * FROM {source} AS source WHERE {self._lenient(stack, source, condition)}"
        columns = dict(table.schema().items())
        create = self._temporary(lambda name: f"CREATE TEMPORARY VIEW {name} AS {query}", columns, "VIEW")
        return stack.enter_context(create)

    def _lenient(self, stack: contextlib.ExitStack, source: str, condition: Condition) -> str:
        """Return the call of a temporary function of the columns that a condition uses.

        Its arguments have neutral names, since some names have a meaning of their own in such a function. A conflict of
        collations is an error, because it does not depend on the row.
        """
        import ibis

        def types(columns: str) -> list[str]:
            with self.connection.cursor() as cursor, self.connection.transaction():
                found = cursor.execute(f"SELECT {columns} FROM {source} AS source LIMIT 0").description
                codes = [column.type_code for column in found]
                return [cursor.execute("SELECT format_type(%s, NULL)", (code,)).fetchone()[0] for code in codes]

        names = {name: neutral_name(place) for place, name in enumerate(condition.folded_columns)}
        columns = [quoted_identifier(name) for name in condition.folded_columns]
        name = f'pg_temp."{ibis.util.gen_name("dpselect")}"'
        kinds = self.run(lambda: types(", ".join(columns))) if columns else []
        arguments = ", ".join(f"{name} {kind}" for name, kind in zip(names.values(), kinds, strict=True))
        signature = f"{name}({', '.join(kinds)})"
        body = (
            f"BEGIN RETURN ({condition.with_names(names, folded=True)}\n); "
            "EXCEPTION WHEN indeterminate_collation THEN RAISE; WHEN OTHERS THEN RETURN NULL; END"
        )
        stack.callback(self._drop, f"FUNCTION IF EXISTS {signature}")
        self.run(
            lambda: self._execute(
                f"CREATE FUNCTION {name}({arguments}) RETURNS boolean LANGUAGE plpgsql AS {_dollar_quoted(body)}"
            )
        )
        return f"{name}({', '.join(columns)})"

    def _drop(self, what: str) -> None:
        with contextlib.suppress(Exception):
            self._execute(f"DROP {what}")

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Copy a public Arrow table (key, text, position) to the server for the time of the block."""
        import ibis

        schema = ibis.memtable(rows).schema()
        if not self.may_store:
            yield _as_literals(rows, schema["key"])
            return
        mapper = self.backend.compiler.type_mapper
        definitions = ", ".join(f'"{name}" {mapper.to_string(kind)}' for name, kind in schema.items())
        columns = {name: str(kind) for name, kind in schema.items()}
        with self._temporary(lambda name: f"CREATE TEMPORARY TABLE {name} ({definitions})", columns) as table:
            self._copy(table.get_name(), rows)
            yield table

    @contextlib.contextmanager
    def _temporary(self, create: Any, columns: dict[str, Any], kind: str = "TABLE") -> Iterator[Any]:
        import ibis

        name = ibis.util.gen_name("dpselect")
        # Dropped in any case: an interrupt can come after the table was made and before `run` returns.
        try:
            self.run(lambda: self._execute(create(f'"{name}"')))
            yield self.known_table(name, ibis.schema(columns))
        finally:
            self._drop(f'{kind} IF EXISTS pg_temp."{name}"')

    def _copy(self, name: str, rows: Any) -> None:
        import pyarrow.csv

        def work() -> None:
            # Arrow and PostgreSQL agree: an empty field without quotes is a null, and with quotes the empty text.
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
            columns = ", ".join(f'"{column}"' for column in rows.column_names)
            command = f'COPY "{name}" ({columns}) FROM STDIN (FORMAT csv)'
            with self.connection.transaction(), self.connection.cursor() as cursor, cursor.copy(command) as copy:
                for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
                    text = pyarrow.BufferOutputStream()
                    pyarrow.csv.write_csv(batch, text, options)
                    copy.write(text.getvalue().to_pybytes())

        try:
            self.run(work)
            return
        except EngineError as error:
            if error.reason == LOST:
                raise
        raise InvalidInput(
            "domain", plain("a list"), "must hold items that fit the type of the table's column of items"
        )

    def _execute(self, query: str) -> None:
        with self.connection.cursor() as cursor, self.connection.transaction():
            cursor.execute(query)

    def _rows(self, expression: Any) -> list[dict[str, Any]]:
        names = list(expression.as_table().columns)
        return [dict(zip(names, row, strict=True)) for row in self._tuples(expression)]

    def _arrow(self, expression: Any) -> Any:
        import pyarrow

        schema = expression.as_table().schema().to_pyarrow()
        columns = list(zip(*self._tuples(expression), strict=True)) or [()] * len(schema)
        return pyarrow.table(
            [pyarrow.array(column, type=kind) for column, kind in zip(columns, schema.types, strict=True)],
            schema=schema,
        )

    def _tuples(self, expression: Any) -> list[Any]:
        self.backend._run_pre_execute_hooks(expression)
        query = self.backend.compile(expression)
        with self.connection.cursor() as cursor, self.connection.transaction():
            return cursor.execute(query).fetchall()  # type: ignore[no-any-return]

    def _check_encoding(self) -> None:
        """Refuse a connection on which the text of a row might not be fetched."""
        if self.connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            raise SourceError(
                "table: the database must have a text encoding, and SQL_ASCII is none; use a database in UTF8"
            )
        if self.connection.info.encoding != "utf-8":
            raise SourceError("table: the connection must use UTF-8; SET client_encoding TO 'UTF8'")

    def _is_idle(self) -> bool:
        return bool(self.connection.autocommit and self.connection.info.transaction_status.name == "IDLE")

    def _cancel(self) -> None:
        self.connection.cancel_safe(timeout=_CANCEL_SECONDS)


@contextlib.contextmanager
def postgres_engine(backend: Any, progress: Progress | None) -> Iterator[PostgresEngine]:
    """Use the connection of an Ibis table, and leave it open and as it was."""
    with worker_thread() as worker:
        engine = PostgresEngine(backend, worker, progress)
        with engine.snapshot():
            yield engine


@contextlib.contextmanager
def postgres_server(url: str, progress: Progress | None) -> Iterator[PostgresEngine]:
    """Connect to a server, as libpq understands the URL and its environment (PGPASSWORD, ~/.pgpass, PGSSLMODE, …)."""
    try:
        import pandas  # noqa: F401 (Ibis' backend needs it)
        import psycopg
    except ImportError:
        raise InvalidInput(
            "table", plain("a PostgreSQL URL"), f"the driver is not installed: {how_to_install('postgresql')}"
        ) from None
    import ibis

    connection = attempt(lambda: _connected(psycopg, url), progress, lambda late: late.close())
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        yield stack.enter_context(postgres_engine(ibis.postgres.from_connection(connection), progress))


def _connected(psycopg: Any, url: str) -> Any:
    """Connect; errors do not repeat libpq's message, which can quote the URL."""
    failure = "the URL is invalid; write postgresql://user@host:port/database"
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        patience = given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or _CONNECT_SECONDS
        # In another encoding, text that it cannot represent would be an error.
        return psycopg.connect(
            url, autocommit=True, application_name="dpselect", client_encoding="UTF8", connect_timeout=patience
        )
    except psycopg.ProgrammingError:
        pass
    except psycopg.Error as error:
        failure = _refusal(error)
    raise SourceError(f"table: {failure}")


def _refusal(error: Any) -> str:
    """Return why connecting failed; libpq gives no error code for that, so its message is searched for known words."""
    said = str(error)
    if "remaining connection slots" in said or "too many c" in said:
        return "no connection: the server has too many connections; run again later"
    if "the database system is" in said:
        return "no connection: the server is starting or stopping; run again later"
    if "SSL" in said and "FATAL:" not in said:
        return "no connection: server and URL disagree on encryption or certificates; check sslmode"
    if "FATAL:" in said or "password" in said or "authentication" in said:
        return NOT_ADMITTED
    return UNREACHABLE


def _dollar_quoted(body: str) -> str:
    """Return a text as a dollar-quoted SQL literal with a mark that the text does not contain."""
    mark = "$dpselect$"
    while mark in body:
        mark = f"{mark[:-1]}_$"
    return f"{mark}{body}{mark}"


def _as_literals(rows: Any, kind: Any) -> Any:
    """Return (key, text, position) as a table written into the query itself.

    Each entry is its position in ten digits, k or t for whether there is a key, and the text of the key or item.
    """
    import ibis

    entries = [
        f"{position:0{_POSITION_DIGITS}}{'t' if key is None else 'k'}{text if key is None else key}"
        for key, text, position in zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True)
    ]
    table = ibis.array(entries).unnest().name("entry").as_table()
    rest = table.entry.substr(_POSITION_DIGITS + 1)
    has_key = table.entry.substr(_POSITION_DIGITS, 1) == "k"
    return table.select(
        key=ibis.ifelse(has_key, rest, ibis.null("string")).cast(kind),
        text=ibis.ifelse(has_key, "", rest),
        position=table.entry.left(_POSITION_DIGITS).cast("int64"),
    )
