"""Attack: a key pays for one question, and another question is asked under it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpselect as dps
from dpselect.ledger import Ledger

COUNTS = {"tea": 30, "milk": 10, "rum": 20}


class NaiveService:
    """Questions under keys: each key is charged once, so that a client may repeat what got lost."""

    def __init__(self) -> None:
        self.charged: dict[str, float] = {}

    def ask(self, key: str, epsilon: float, answer: Callable[[], Any]) -> Any:
        """Charge the key unless it was charged before, and answer."""
        self.charged.setdefault(key, epsilon)
        return answer()


def test_the_attack_gets_every_answer_for_the_price_of_the_cheapest() -> None:
    service = NaiveService()
    service.ask("monday", 0.01, lambda: dps.select(COUNTS, k=1, epsilon=0.01))
    exact = service.ask("monday", 1000.0, lambda: dps.select(COUNTS, k=3, epsilon=1000.0, ordered=True))
    assert exact.items == ["tea", "rum", "milk"]
    assert sum(service.charged.values()) == 0.01


CHANGED: list[dict[str, Any]] = [
    {"k": 2},
    {"epsilon": 0.02},
    {"epsilon": 5.0},
    {"mechanism": "oneshot"},
    {"ordered": True},
    {"values": 0.5},
    {"lowest": True},
    {"delta": 1e-6},
]


def test_another_question_under_a_used_key_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    asked = {"k": 1, "epsilon": 0.01}
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("drinks", epsilon=10.0)
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "drinks", "once": "monday"}
        answer = dps.select(COUNTS, **asked, **kept).items
        for changed in CHANGED:
            with pytest.raises(dps.KeyReused):
                dps.select(COUNTS, **asked | changed, **kept)
        with pytest.raises(dps.KeyReused):
            dps.select({**COUNTS, "cocoa": 5}, **asked, **kept)
        assert dps.select(COUNTS, **asked, **kept).items == answer
        assert ledger.spent("drinks").epsilon == 0.01
