"""Releases that are answered once: charged once and answered once under a key, however often they are asked for.

Two entries of the data set's chain belong to a key. The charge holds the key and a salted hash of the question, which
the entries of further data sets that are charged the same hold too; the answer follows it, and is on the disk before
anybody sees it. Whoever stores an answer first decides it for all. A charge without an answer is what a crash leaves
behind: the same question under the same key then draws again, without a second charge, because no answer was seen.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpselect.errors import KeyReused
from dpselect.ledger.chain import ANSWER, CHARGE, Entry, Record, canonical_json, unreadable


@dataclass(frozen=True)
class OnceCharge:
    """The charge of a release that is answered once. See `Ledger.spend_once`.

    Attributes
    ----------
    entry
        The charge.
    answer, answered_at
        The answer, if the ledger keeps one, and when it was stored.
    """

    entry: Entry
    answer: dict[str, Any] | None = None
    answered_at: datetime | None = None


def hash_of(question: Mapping[str, Any]) -> str:
    """Return a salted hash of a question. The salt hides whether two data sets or keys have the same question."""
    salt = secrets.token_hex(16)
    return f"{salt}:{_salted(salt, question)}"


def check_same(record: Record, question: Mapping[str, Any]) -> None:
    """Refuse a question other than the one that was charged."""
    salt, _, kept = record.question.partition(":")
    if not hmac.compare_digest(kept, _salted(salt, question)):
        raise KeyReused(
            "once",
            record.once,
            "another question was asked under this key; ask the same question, or choose another key",
        )


def found_charge(found: Mapping[str, Record]) -> OnceCharge:
    """Return the charge and the answer, if there is one, of what is stored under a key."""
    answer = found.get(ANSWER)
    entry = found[CHARGE].entry(answered=answer is not None)
    if answer is None:
        return OnceCharge(entry)
    return OnceCharge(entry, stored_answer(answer), datetime.fromisoformat(answer.time))


def stored_answer(record: Record) -> dict[str, Any]:
    """Return the answer that an entry holds."""
    try:
        answer = json.loads(record.answer)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise unreadable()
    return answer


def _salted(salt: str, question: Mapping[str, Any]) -> str:
    return hmac.new(salt.encode(), canonical_json(dict(question)).encode(), hashlib.sha256).hexdigest()
