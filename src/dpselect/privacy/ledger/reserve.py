"""How select() and top() record a release before they answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.ledger.ledger import Ledger


@dataclass(frozen=True)
class Reservation:
    """Where a release is to be recorded; without a ledger, nowhere."""

    ledger: Ledger | str | os.PathLike[str] | None
    dataset: str
    purpose: str

    def record(self, guarantee: Guarantee, parameters: Mapping[str, Any], *, secure: bool) -> None:
        """Charge the release; when this returns, the record is on the disk and the answer may be drawn.

        Failing later gives nothing back. A failure can depend on the data, and a process that dies cannot tell
        whether its answer was seen. A record without an answer costs budget; an answer without a record costs privacy.
        """
        if self.ledger is None:
            return
        if isinstance(self.ledger, Ledger):
            self.ledger.spend(self.dataset, guarantee, self.purpose, parameters, secure=secure)
            return
        with Ledger(self.ledger) as opened:
            opened.spend(self.dataset, guarantee, self.purpose, parameters, secure=secure)


def reservation(ledger: Any, dataset: str | None, purpose: str) -> Reservation:
    """Check the three arguments that say where a release is recorded."""
    if ledger is None:
        for argument, given in (("dataset", dataset), ("purpose", purpose)):
            if given:
                raise InvalidInput(argument, given, "it is written into a ledger; name that too, or leave this out")
        return Reservation(None, "", "")
    if not isinstance(ledger, Ledger | str | os.PathLike):
        raise InvalidInput(
            "ledger",
            plain(f"an object of type {type(ledger).__name__}"),
            "a dpselect.privacy.Ledger, or the path or URL of one, is needed",
        )
    if not dataset:
        raise InvalidInput("dataset", dataset, "name the data set of the ledger that the release is charged to")
    return Reservation(ledger, dataset, purpose)
