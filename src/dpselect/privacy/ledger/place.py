"""Where a ledger is: a path or a URL, and what only looks like one."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from dpselect.errors import InvalidInput, plain

_ACCEPTED = "the path of a file, or a URL that starts with sqlite:/// or postgresql+psycopg:// is needed"

# A URL with a slash lost, libpq's key=value form, or user:password@host: a file of such a name is a mistake, and a
# message that shows it gives the password away.
_CONNECTION = re.compile(
    r"^\s*(postgres\w*(\+\w+)?:|[a-z][a-z0-9+.-]+:/)|password\s*=|:.*@|//[^/]*@"
    r"|\b(host|hostaddr|port|user|dbname|service)\s*=.*\s(host|hostaddr|port|user|dbname|service)\s*=",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_PATH = re.compile(r"\.{0,2}/(?!/)|[A-Za-z]:[\\/]|\.{1,2}\\")


def url_of(place: Any) -> URL:
    """Understand a path or URL; what is refused is never shown, as it can hold a password."""
    if not isinstance(place, str | os.PathLike):
        raise InvalidInput("ledger", plain(f"an object of type {type(place).__name__}"), _ACCEPTED)
    text = os.fspath(place)
    if not isinstance(text, str) or not text or "\0" in text or _is_no_text(text):
        raise InvalidInput("ledger", plain("such a path" if text else "an empty path"), _ACCEPTED)
    url = None
    if "://" not in text:
        if _CONNECTION.search(text) and not _PLAIN_PATH.match(text):
            raise InvalidInput(
                "ledger", plain("something like a connection string"), _ACCEPTED + "; start a path of that form with ./"
            )
        url = URL.create("sqlite", database=text)
    else:
        with contextlib.suppress(exc.ArgumentError, ValueError):
            url = make_url(text)
    if url is None:  # outside an except block, as the words of that error can hold a part of the password
        raise InvalidInput("ledger", plain("a URL that cannot be read"), _ACCEPTED)
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    # In sqlite://folder/file the folder would be taken for a host, and left out.
    more = (url.query, url.host, url.username, url.password, url.port) if url.drivername == "sqlite" else ()
    if url.drivername not in ("sqlite", "postgresql+psycopg") or any(more):
        raise InvalidInput("ledger", plain("another kind of URL"), _ACCEPTED)
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidInput("ledger", plain("a database in memory"), "a ledger must last; " + _ACCEPTED)
    return url


def _is_no_text(path: str) -> bool:
    """Whether a path holds bytes that are no UTF-8, which Python keeps as surrogates and SQLite cannot open."""
    return any("\ud800" <= mark <= "\udfff" for mark in path)
