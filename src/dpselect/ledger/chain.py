"""What a ledger holds, and the two hash chains that show whether any of it was changed.

Each entry of a data set holds the hash of the entry before it. A second chain runs through the ledger as a whole: every
creation and every spend, of whatever data set, has a number, its `event`, and a `seal`, the SHA-256 of the seal before,
the number, and the hash of what was created or spent. The ledger keeps the last number and seal, its `Tip`. So no data
set can lose its last entries, or be removed, without a trace.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from dpselect.errors import DpSelectError, SourceError
from dpselect.ledger.rules import RULES, Amount, Budget, Rule
from dpselect.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Account:
    """A data set of a ledger: its total, whom it protects, and where its chain of entries ends.

    See `Ledger.account`.

    Attributes
    ----------
    dataset, total, protects, neighbours, composition, created
        What was agreed when it was made.
    count
        The number of entries.
    head
        The hash of the last entry, or of the account itself if it has none. A copy of it, kept elsewhere, later proves
        that nothing before it was changed.
    every, lifetime
        With "day", "week" or "month" the total is that of each period, and `lifetime`, if it is not None, that of all
        periods together.
    """

    dataset: str
    total: Budget
    protects: str
    neighbours: str
    composition: str
    created: str
    count: int
    head: str
    every: str = ""
    lifetime: Budget | None = None

    @functools.cached_property
    def genesis(self) -> str:
        """Hash of what was agreed when the account was made; the first entry follows it, and every entry repeats it."""
        agreed = {
            "dataset": self.dataset,
            "epsilon": self.total.epsilon,
            "delta": self.total.delta,
            "rho": self.total.rho,
            "protects": self.protects,
            "neighbours": self.neighbours,
            "composition": self.composition,
            "created": self.created,
        }
        if self.every or self.lifetime:
            agreed |= {"every": self.every, "lifetime": lifetime_text(self.lifetime)}
        return digest(agreed)

    @property
    def rule(self) -> Rule:
        """The rule by which costs add up; a name that was changed from outside to an unknown one counts as basic."""
        return RULES.get(self.composition, RULES["basic"])

    @property
    def limit(self) -> Amount:
        """What the costs may add up to; in each period, if there are periods."""
        return self.rule.limit(self.total)

    @property
    def lifetime_limit(self) -> Amount | None:
        """What the costs of all periods may add up to, if that is limited."""
        return None if self.lifetime is None else self.rule.limit(self.lifetime)

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain data; `every` and `lifetime` only if it has periods."""
        data = {**asdict(self), "total": self.total.to_dict()}
        data["lifetime"] = None if self.lifetime is None else self.lifetime.to_dict()
        if not self.every:
            del data["every"], data["lifetime"]
        return data


CHARGE, ANSWER = "charge", "answer"
"""The kinds of entries: what a release costs, and the answer to one that is answered once, which costs nothing."""

_LATER_FIELDS = {"kind": CHARGE, "once": "", "question": "", "answer": "", "period": "", "period_spent": ""}
"""Fields that the first versions of the tables did not have, and what they hold if they say nothing."""


@dataclass(frozen=True)
class Record:
    """An entry as it is stored: texts and numbers only, so that what was hashed is what is kept.

    `agreed` is the genesis of the account that was charged, so the last entry alone shows whether the total changed.
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
    kind: str = CHARGE
    once: str = ""
    question: str = ""
    answer: str = ""
    period: str = ""
    period_spent: str = ""

    def expected_hash(self) -> str:
        """SHA-256 of all fields and the previous hash, so that no entry can be changed or moved unnoticed.

        Fields of later versions are left out as long as they say nothing, so that older entries keep their hashes.
        """
        fields = dict(self.__dict__)
        del fields["hash"], fields["event"], fields["seal"]
        for name, nothing in _LATER_FIELDS.items():
            if fields[name] == nothing:
                del fields[name]
        # Hashed as JSON's true or false. Any other value is hashed as it is, so that the hash does not match.
        fields["secure"] = {0: False, 1: True}.get(self.secure, self.secure)
        return digest(fields)

    @property
    def spent(self) -> Amount:
        """What had been spent when this entry was made, this entry included."""
        try:
            return Amount.parse(self.spent_epsilon, self.spent_delta, self.spent_rho)
        except (ValueError, TypeError, ZeroDivisionError):
            raise unreadable() from None

    @property
    def spent_in_period(self) -> Amount:
        """What had been spent in the period of this entry when it was made, this entry included."""
        try:
            return Amount.parse(*self.period_spent.split())
        except (ValueError, TypeError, ZeroDivisionError, AttributeError):
            raise unreadable() from None

    def entry(self, *, answered: bool = False) -> Entry:
        """Return the public form of a charge; `answered` is whether the ledger keeps its answer."""
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
                once=self.once or None,
                answered=answered,
                period=self.period or None,
            )
        except (ValueError, TypeError, DpSelectError):
            raise unreadable() from None


@dataclass(frozen=True)
class Entry:
    """One recorded release. See `Ledger.entries`.

    Attributes
    ----------
    dataset, sequence, time, purpose, parameters, guarantee
        Its data set, its number in it, and what was recorded of the release.
    secure
        False if the release was drawn with a seed: it was recorded, but it protects nobody.
    previous, hash
        The hash of the entry before it, and its own.
    once, answered
        The key of a release that is answered once, and whether the ledger keeps its answer.
    period
        The one that is charged, in a data set with periods.
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
    once: str | None = None
    answered: bool = False
    period: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data that json.dumps accepts; without key and period if it has none."""
        data = {**self.__dict__, "time": self.time.isoformat(), "guarantee": self.guarantee.to_dict()}
        if self.once is None:
            del data["once"], data["answered"]
        if self.period is None:
            del data["period"]
        return data


@dataclass(frozen=True)
class Fault:
    """Something in a ledger that no spend can have written. See `Ledger.check`.

    Attributes
    ----------
    dataset
        The data set, empty if the fault is not in one.
    sequence
        The number of the entry, None if the fault is not in one.
    problem
        What is wrong.
    """

    dataset: str
    sequence: int | None
    problem: str

    def __str__(self) -> str:
        """Say where the fault is, and what it is."""
        place = "" if self.sequence is None else f", entry {self.sequence}"
        return f"{self.dataset or 'the ledger'}{place}: {self.problem}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as plain data."""
        return asdict(self)


class Tip:
    """The end of the chain through the ledger: the number of creations and spends, and the seal of the last one."""

    def __init__(self, events: int = 0, seal: str = "") -> None:
        self.events = events
        self.seal = seal

    def add(self, hash_of_record: str) -> tuple[int, str]:
        """Append a creation or a spend; return its event and its seal."""
        self.events += 1
        self.seal = sealed(self.seal, self.events, hash_of_record)
        return self.events, self.seal

    def follows(self, earlier: Tip) -> bool:
        """Whether the ledger can have grown from `earlier` to this: more events, or the same end."""
        return self.events > earlier.events or (self.events, self.seal) == (earlier.events, earlier.seal)


def sealed(previous: str, event: int, hash_of_record: str) -> str:
    """Return the SHA-256 of "previous event hash", in hexadecimal."""
    return hashlib.sha256(f"{previous} {event} {hash_of_record}".encode()).hexdigest()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def canonical_json(data: Any) -> str:
    """Return the canonical JSON text of plain data: sorted keys, no spaces, ASCII; other objects as their str()."""
    return _ENCODER.encode(data)


def digest(data: Any) -> str:
    """Return the SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def lifetime_text(lifetime: Budget | None) -> str:
    """Return a total over all periods as it is stored; empty if there is none."""
    return "" if lifetime is None else canonical_json(lifetime.to_dict())


def utc_now() -> str:
    """Return the time in UTC as text whose alphabetical order is the order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def unreadable() -> SourceError:
    """Return the error for something in a ledger that no spend can have written."""
    return SourceError(
        "ledger: a part of the record cannot be read; nothing was released. Find it with `dpselect ledger check`, and "
        "restore a copy"
    )


@functools.lru_cache(maxsize=256)
def _guarantee(text: str) -> Guarantee:
    return Guarantee(**json.loads(text))
