"""Tokens of analysts: made once, shown once, kept as hashes in the ledger's own database.

One backup therefore holds budgets and tokens, and all processes that share the ledger share the tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sql

from dpselect.errors import InvalidInput, SourceError
from dpselect.ledger import url_of

_FORM = re.compile(r"dps_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(b"no token has this hash").hexdigest()

_metadata = sql.MetaData()
_tokens = sql.Table(
    "dpselect_tokens",
    _metadata,
    sql.Column("id", sql.String(8), primary_key=True),
    sql.Column("analyst", sql.String(60), nullable=False),
    sql.Column("secret_hash", sql.String(64), nullable=False),
    sql.Column("datasets", sql.Text, nullable=True),
    sql.Column("scopes", sql.Text, nullable=False),
    sql.Column("created", sql.String(40), nullable=False),
    sql.Column("expires", sql.String(40), nullable=True),
    sql.Column("revoked", sql.String(40), nullable=True),
)


@dataclass(frozen=True)
class Token:
    """What is kept of a token; never its secret.

    Attributes
    ----------
    id, analyst
        Its public name, and whose it is.
    datasets, scopes
        The data sets that it allows, None for all, and what may be done with them.
    created, expires, revoked
        When that happened or will happen; None for never.
    """

    id: str
    analyst: str
    datasets: tuple[str, ...] | None
    scopes: tuple[str, ...]
    created: datetime
    expires: datetime | None
    revoked: datetime | None

    @property
    def state(self) -> str:
        """Whether it can be used: "valid", "expired" or "revoked"."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= datetime.now(UTC) else "valid"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "id": self.id,
            "analyst": self.analyst,
            "datasets": None if self.datasets is None else list(self.datasets),
            "scopes": list(self.scopes),
            "created": self.created.isoformat(),
            "expires": None if self.expires is None else self.expires.isoformat(),
            "state": self.state,
        }


class TokenStore:
    """The tokens in the database of a ledger, which must exist.

    Parameters
    ----------
    place : str
        The path or URL of the ledger.
    """

    def __init__(self, place: str) -> None:
        url = url_of(place)
        is_file = url.get_backend_name() == "sqlite"
        arguments: dict[str, Any] = {"timeout": 30} if is_file else {"prepare_threshold": None}
        self._engine = sql.create_engine(url, hide_parameters=True, connect_args=arguments, pool_pre_ping=not is_file)
        for attempt in (1, 2):  # another process may make the table at the same moment
            try:
                _metadata.create_all(self._engine)
                break
            except sql.exc.SQLAlchemyError:
                if attempt == 2:
                    raise _unusable() from None

    def create(
        self, analyst: str, *, scopes: Sequence[str], datasets: Sequence[str] | None = None, days: float | None = None
    ) -> tuple[str, Token]:
        """Make a token; return its text, which is kept nowhere, and what is kept."""
        check_days(days)
        identity, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        row = {
            "id": identity,
            "analyst": analyst,
            "secret_hash": _hash(secret),
            "datasets": None if datasets is None else json.dumps(list(datasets)),
            "scopes": json.dumps(list(scopes)),
            "created": now.isoformat(),
            "expires": None if days is None else (now + timedelta(days=days)).isoformat(),
            "revoked": None,
        }
        self._execute(sql.insert(_tokens).values(**row))
        return f"dps_{identity}_{secret}", _token(row)

    def check(self, text: str) -> Token | None:
        """Return the token of this text if it is valid; an unknown one takes the same comparison as a wrong one."""
        match = _FORM.fullmatch(text)
        identity, secret = match.groups() if match else ("", "")
        rows = self._execute(sql.select(_tokens).where(_tokens.c.id == identity))
        row = rows[0] if rows else None
        is_same = hmac.compare_digest(_hash(secret), _NOBODY if row is None else row["secret_hash"])
        if row is None or not is_same:
            return None
        token = _token(row)
        return token if token.state == "valid" else None

    def all(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        return [_token(row) for row in self._execute(sql.select(_tokens).order_by(_tokens.c.created))]

    def revoke(self, identity: str) -> Token:
        """Revoke a token for good; from the next request on it is refused."""
        found = [token for token in self.all() if token.id == identity]
        if not found:
            raise InvalidInput("id", identity, "must be the ID of a token; `dpselect desk token list` shows them")
        now = datetime.now(UTC).isoformat()
        self._execute(
            sql.update(_tokens).where(_tokens.c.id == identity, _tokens.c.revoked.is_(None)).values(revoked=now)
        )
        return next(token for token in self.all() if token.id == identity)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _execute(self, statement: Any) -> list[Any]:
        try:
            with self._engine.begin() as connection:
                result = connection.execute(statement)
                return [dict(row) for row in result.mappings()] if result.returns_rows else []
        except sql.exc.SQLAlchemyError:
            raise _unusable() from None


def check_days(days: float | None) -> None:
    """Refuse a lifetime of a token that cannot be used."""
    if days is not None and not 0 < days <= 36500:
        raise InvalidInput("days", days, "must be above 0 and at most 36500")


def _unusable() -> SourceError:
    return SourceError("tokens: the ledger's database cannot be used; check its place and permissions")


def _hash(secret: str) -> str:
    """Return the SHA-256 of a secret of 256 random bits, which needs no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> Token:
    def moment(text: str | None) -> datetime | None:
        return None if text is None else datetime.fromisoformat(text)

    return Token(
        id=row["id"],
        analyst=row["analyst"],
        datasets=None if row["datasets"] is None else tuple(json.loads(row["datasets"])),
        scopes=tuple(json.loads(row["scopes"])),
        created=datetime.fromisoformat(row["created"]),
        expires=moment(row["expires"]),
        revoked=moment(row["revoked"]),
    )
