"""Every engine recognises a question by the items that are listed, wherever the list is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_cases import BUYERS, LOOKALIKES
from engine_places import Place, rows_of

import dpselect as dps
from dpselect.ledger import Budget, Ledger

pytestmark = pytest.mark.slow


def test_the_list_is_part_of_the_question_and_its_place_is_not(place: Place, tmp_path: Path) -> None:
    place.put("orders", BUYERS)
    place.put("goods", rows_of(item=LOOKALIKES))
    place.put("fewer", rows_of(item=LOOKALIKES[1:]))
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=1.0)
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "shop", "once": "week 46"}
        asked: dict[str, Any] = {**place.source("orders"), "item": "item", "person": "person", "k": 3, "epsilon": 0.5}
        first = dps.top(domain="table:goods", **asked, **kept)
        for same in ("table:goods", LOOKALIKES[::-1], rows_of(item=LOOKALIKES)):
            again = dps.top(domain=same, **asked, **kept)
            assert again == first
            assert again.repeated
        for other in ("table:fewer", LOOKALIKES[1:]):
            with pytest.raises(dps.KeyReused):
                dps.top(domain=other, **asked, **kept)
        assert ledger.remaining("shop") == Budget(0.5)
