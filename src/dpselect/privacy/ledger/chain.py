"""What a ledger holds, and the hash that ties every entry to all entries before it."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from dpselect.errors import DpSelectError, SourceError
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.ledger.amounts import Amount, Budget


@dataclass(frozen=True)
class Account:
    """A data set of a ledger: its budget, whom it protects, and where its chain of entries ends.

    `head` is the hash of the last entry, or of the account itself when there is none. Kept elsewhere, it later proves
    that nothing before it was changed.
    """

    dataset: str
    total: Budget
    protects: str
    neighbours: str
    composition: str
    created: str
    count: int
    head: str

    @functools.cached_property
    def genesis(self) -> str:
        """Hash of what was agreed when the account was made; the first entry follows it, and all repeat it."""
        return digest(
            {
                "dataset": self.dataset,
                "epsilon": self.total.epsilon,
                "delta": self.total.delta,
                "rho": self.total.rho,
                "protects": self.protects,
                "neighbours": self.neighbours,
                "composition": self.composition,
                "created": self.created,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain data."""
        return {**asdict(self), "total": self.total.to_dict()}


@dataclass(frozen=True)
class Record:
    """An entry as it is stored: texts and numbers only, so that what was hashed is what is kept.

    `agreed` is the genesis of the account it was charged to: the last entry alone shows that the total is the old one.
    `event` and `seal` are its place in the chain through the ledger as a whole.
    """

    dataset: str
    sequence: int
    time: str
    purpose: str
    parameters: str
    guarantee: str
    epsilon: float
    delta: float
    rho: str
    secure: int
    spent_epsilon: str
    spent_delta: str
    spent_rho: str
    agreed: str
    previous: str
    hash: str = ""
    event: int = 0
    seal: str = ""

    def expected_hash(self) -> str:
        """SHA-256 of all fields with the hash of the entry before, so that no entry can change or move unseen."""
        fields = dict(self.__dict__)
        del fields["hash"], fields["event"], fields["seal"]
        fields["secure"] = _TRUTH.get(self.secure, self.secure)
        return digest(fields)

    @property
    def spent(self) -> Amount:
        """What had been spent when this entry was made, itself included."""
        try:
            return Amount.parse(self.spent_epsilon, self.spent_delta, self.spent_rho)
        except (ValueError, TypeError, ZeroDivisionError):
            raise unreadable() from None

    def entry(self) -> Entry:
        """Return the entry in the words of the package."""
        try:
            return Entry(
                dataset=self.dataset,
                sequence=self.sequence,
                time=datetime.fromisoformat(self.time),
                purpose=self.purpose,
                parameters=json.loads(self.parameters),
                guarantee=_guarantee(self.guarantee),
                secure=bool(self.secure),
                previous=self.previous,
                hash=self.hash,
            )
        except (ValueError, TypeError, DpSelectError):
            raise unreadable() from None


@dataclass(frozen=True)
class Entry:
    """One recorded release: when, what for, with which parameters, and at what cost.

    `secure` is False when the release was drawn with a seed: it was recorded, but protects nobody.
    """

    dataset: str
    sequence: int
    time: datetime
    purpose: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    secure: bool
    previous: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data that json.dumps accepts."""
        return {
            "dataset": self.dataset,
            "sequence": self.sequence,
            "time": self.time.isoformat(),
            "purpose": self.purpose,
            "parameters": self.parameters,
            "guarantee": self.guarantee.to_dict(),
            "secure": self.secure,
            "previous": self.previous,
            "hash": self.hash,
        }


@dataclass(frozen=True)
class Fault:
    """Something in a ledger that cannot have come about by spending.

    `sequence` is None if it is not one entry's, and `dataset` is empty if it is not one data set's.
    """

    dataset: str
    sequence: int | None
    problem: str

    def __str__(self) -> str:
        """Say where the fault is, and what."""
        place = "" if self.sequence is None else f", entry {self.sequence}"
        return f"{self.dataset or 'the ledger'}{place}: {self.problem}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as plain data."""
        return asdict(self)


_TRUTH = {0: False, 1: True}
"""`secure` is hashed as JSON's true or false; anything else that stands there is hashed as it is, and so is found."""


def unreadable() -> SourceError:
    """Return the error for something in a ledger that no spend can have written."""
    return SourceError(
        "ledger: a part of the record cannot be read; nothing was released. See which with `dpselect ledger check`, "
        "and restore a copy"
    )


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def canonical(data: Any) -> str:
    """Return the one JSON text of plain data: sorted keys, no spaces, ASCII; what JSON does not know as its text."""
    return _ENCODER.encode(data)


def digest(data: Any) -> str:
    """Return the SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def utc_now() -> str:
    """Return the time in UTC, in a form whose alphabetical order is the order of time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@functools.lru_cache(maxsize=256)
def _guarantee(text: str) -> Guarantee:
    return Guarantee(**json.loads(text))
