"""Why an engine failed, in our own words, told by its error code alone: its own words can quote rows or credentials."""

from __future__ import annotations

from dpselect.errors import SourceError

LOST = "the connection to the server was lost; nothing was released; check the server and run again"
UNREACHABLE = "no connection: the server cannot be reached; check host and port, and that it runs"
NOT_ADMITTED = "no connection: the server did not admit the account; check user, password and database"

_MISSING_TABLE = "there is no such table, or it is gone; check the name and its schema"
_MISSING_COLUMN = "a column that is asked for is not there; check the names"
_NO_RIGHT = "permission denied: the account needs the right to read (GRANT SELECT) every table that is asked for"
_STOPPED = "the server stopped the query; its time limit for statements may be too short"
_VALUES = (
    "the engine could not compute with the values that it found; check the types of the columns, and that a filter "
    "cannot fail on any row"
)
_MISMATCH = "types do not fit; check the types of the columns, and what a filter compares"
_RESOURCES = "the server has too little memory, disk space or connections for the query"

_WITHHELD = (
    "the engine stopped while reading it, and its own message is withheld because it can quote rows; "
    "check that the file or table is complete and readable, and that memory and disk space suffice"
)

_POSTGRESQL = {
    "08": LOST,
    "22": _VALUES,
    "28": NOT_ADMITTED,
    "3D": NOT_ADMITTED,
    "40": "the server gave up the query in favour of others; run again",
    "53": _RESOURCES,
    "54": _RESOURCES,
    "25006": "the server is read-only, so that nothing temporary can be kept there",
    "25P03": LOST,
    "3F000": _MISSING_TABLE,
    "42P01": _MISSING_TABLE,
    "42501": _NO_RIGHT,
    "42703": _MISSING_COLUMN,
    "42804": _MISMATCH,
    "42883": _MISMATCH,
    "42846": _MISMATCH,
    "57014": _STOPPED,
    "57P": LOST,
    "55P03": "the table is locked by others; run again later",
}

_SPARK = {
    "TABLE_OR_VIEW_NOT_FOUND": _MISSING_TABLE,
    "SCHEMA_NOT_FOUND": _MISSING_TABLE,
    "PATH_NOT_FOUND": "there is no such path; check it",
    "FAILED_READ_FILE": "a file of the table cannot be read, or changed while it was read",
    "UNRESOLVED_COLUMN": _MISSING_COLUMN,
    "AMBIGUOUS_REFERENCE": "two columns have a name that is asked for; column names must differ",
    "INSUFFICIENT_PERMISSIONS": _NO_RIGHT,
    "INSUFFICIENT_TABLE_PERMISSIONS": _NO_RIGHT,
    "DATATYPE_MISMATCH": _MISMATCH,
    "ARITHMETIC_OVERFLOW": _VALUES,
    "CAST_INVALID_INPUT": _VALUES,
    "CAST_OVERFLOW": _VALUES,
    "DIVIDE_BY_ZERO": _VALUES,
    "NUMERIC_VALUE_OUT_OF_RANGE": _VALUES,
    "UNABLE_TO_INFER_SCHEMA": "there is no Parquet file there, or none that can be read",
}

_IBIS = {"TableNotFound": _MISSING_TABLE}


class EngineError(SourceError):
    """The failure of an engine, with the reason that its error code gives, or None."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(f"table: {_WITHHELD if reason is None else reason}")

    def __reduce__(self) -> tuple[type[EngineError], tuple[str | None]]:
        """Rebuild from the reason, so that the error crosses process boundaries."""
        return (type(self), (self.reason,))


def reason_for(error: BaseException) -> str | None:
    """Return why an engine failed, or None where its code tells nothing that is known here."""
    kind = type(error)
    if kind.__module__.startswith("psycopg"):
        code = getattr(error, "sqlstate", None)
        if code is None:
            return LOST if kind.__name__ == "OperationalError" else None
        return next((_POSTGRESQL[code[:length]] for length in (5, 3, 2) if code[:length] in _POSTGRESQL), None)
    if kind.__module__.startswith(("pyspark", "py4j")):
        code = _spark_code(error)
        if code is None:
            return LOST if kind.__name__ in ("Py4JNetworkError", "ConnectionRefusedError") else None
        return next((_SPARK[name] for name in (code, code.partition(".")[0]) if name in _SPARK), None)
    return _IBIS.get(kind.__name__) if kind.__module__.startswith("ibis") else None


def _spark_code(error: BaseException) -> str | None:
    for method in ("getCondition", "getErrorClass"):
        if hasattr(error, method):
            try:
                code = getattr(error, method)()
            except Exception:
                return None
            return str(code) if code else None
    return None
