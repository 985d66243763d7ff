"""Numbers and nesting that Python cannot read are refused over HTTP as any other mistake, and charge nothing."""

from __future__ import annotations

import json
from pathlib import Path

from desks import QUESTION, served, write_config

from dpselect.ledger import Ledger

BODIES = {
    "deep": 100_000 * "[",
    "deep field": '{"item": "film", "k": 1, "epsilon": ' + 50_000 * "[" + 50_000 * "]" + "}",
    **{
        f"{digits} digits": json.dumps({**QUESTION, "epsilon": 0}).replace("0}", "1" + digits * "0" + "}")
        for digits in (400, 5000)
    },
    "k": json.dumps({**QUESTION, "k": 0}).replace('"k": 0', '"k": 1' + 400 * "0"),
    "smallest": json.dumps({**QUESTION, "epsilon": 5e-324}),
    "infinite": json.dumps(QUESTION).replace("0.25", "1e400"),
}


def test_such_a_question_is_refused_and_not_charged(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk:
        for call in ("releases", "estimate", "preview"):
            for number, body in enumerate(BODIES.values()):
                status, _, answer = desk.send("POST", f"/v1/datasets/views/{call}", body.encode(), key=f"key-{number}")
                assert (status, answer["error"]["code"]) == (400, "invalid-input")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.entries("views") == []
