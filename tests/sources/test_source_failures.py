"""Why an engine failed is told by its code, and never in its words."""

from __future__ import annotations

import logging
import pickle
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from dpselect.errors import InvalidInput, SourceError
from dpselect.sources.engine import Engine, EngineError, name_parts, reason_for, worker_thread
from dpselect.sources.spark import _is_of_others

REASONS = {
    "42501": "permission denied",
    "42P01": "no such table",
    "42703": "column",
    "57014": "stopped the query",
    "57P01": "connection to the server was lost",
    "08006": "connection to the server was lost",
    "22012": "could not compute with the values",
    "42883": "types do not match",
    "53100": "too little memory",
    "28P01": "refused the account",
}


def test_a_reason_follows_from_the_code_of_an_error_and_not_from_its_words() -> None:
    for code, words in REASONS.items():
        error = psycopg.errors.lookup(code)("row of Secret at postgresql://ann:password@host")

        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(SourceError, match=words) as caught:
            Engine(None).run(fail)
        assert "Secret" not in str(caught.value)
        assert "password" not in str(caught.value).partition("check")[0]
        assert caught.value.__context__ is None


def test_an_unknown_code_gives_no_reason() -> None:
    assert reason_for(psycopg.errors.lookup("XX000")("Secret")) is None
    assert reason_for(psycopg.OperationalError("Secret")) == reason_for(psycopg.errors.lookup("08006")())
    assert reason_for(ValueError("Secret")) is None


def test_the_error_crosses_process_boundaries() -> None:
    for error in (EngineError(), EngineError("the server is away")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is EngineError
        assert (again.reason, str(again)) == (error.reason, str(error))


def test_what_pyspark_prints_is_kept_back_for_our_threads_only() -> None:
    def passes() -> bool:
        record = logging.getLogger("SQLQueryContextLogger").makeRecord("x", logging.ERROR, "", 1, "Secret", (), None)
        return _is_of_others(record)

    with worker_thread() as ours, ThreadPoolExecutor(1, thread_name_prefix="theirs") as theirs:
        assert not ours.submit(passes).result()
        assert theirs.submit(passes).result()
    assert passes()


def test_names_of_tables_are_taken_apart() -> None:
    assert name_parts("orders") == ["orders"]
    assert name_parts("sales.orders") == ["sales", "orders"]
    assert name_parts('"big.sales"."my ""orders"""') == ["big.sales", 'my "orders"']
    assert name_parts("Ærø ☃") == ["Ærø ☃"]
    for name in ("", ".", "a.", ".a", "a..b", 'a"b', '"a', "a.b.c.d"):
        with pytest.raises(InvalidInput, match="table_name"):
            name_parts(name)
